/** Changing and removing structure and data. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createChain, startTestHub, type TestHub } from "./fixture.ts";

let hub: TestHub;
beforeAll(async () => {
  hub = await startTestHub();
});
afterAll(() => hub.close());

const DATES = ["2026-03-01T00:00:00Z", "2026-03-01T01:00:00Z", "2026-03-01T02:00:00Z"];
const push = (variableId: number, values = [1, 2, 3]) =>
  hub.push([{ variableId, data: values.map((value, at) => ({ date: DATES[at] ?? "", value })) }]);
const one = async (path: string) => (await hub.call("GET", path)).body;

describe("PUT", () => {
  it("changes the given fields, in any case, and leaves the others", async () => {
    const { sourceId } = await createChain(hub, { source: { serialNumber: "S-1", ean: "541", tags: ["a"] } });
    const changed = await hub.ok("PUT", "/sources", { body: { Id: sourceId, NAME: "Renamed", ean: null } });
    expect(changed).toMatchObject({
      id: sourceId,
      name: "Renamed",
      serialNumber: "S-1",
      ean: "541",
      tags: ["a"],
    });
    await hub.ok("PUT", `/sources/${sourceId}`, { body: { tags: ["b"], meterNumber: "M" } });
    expect(await one(`/sources/${sourceId}`)).toMatchObject({
      name: "Renamed",
      tags: ["b"],
      meterNumber: "M",
    });
  });

  it("moves a source to another site of the account, and to no other", async () => {
    const { sourceId } = await createChain(hub);
    const other = await hub.post("/sites", { name: "Other", typeId: 1, timeZoneId: "UTC" });
    expect(await hub.ok("PUT", `/sources/${sourceId}`, { body: { siteId: other } })).toMatchObject({
      siteId: other,
      siteName: "Other",
    });
    const foreign = await hub.post("/sites", { name: "F", typeId: 1, timeZoneId: "UTC" }, { account: 2 });
    const refused = await hub.call("PUT", `/sources/${sourceId}`, { body: { siteId: foreign } });
    expect([refused.status, refused.body.errors[0].path]).toEqual([400, "siteId"]);
  });

  it("of a variable below its source answers 204", async () => {
    const { sourceId, variableIds } = await createChain(hub);
    const path = `/sources/${sourceId}/variables/${variableIds[0]}`;
    expect((await hub.call("PUT", path, { body: { mappingConfig: "kWh" } })).status).toBe(204);
    expect(await one(`/variables/${variableIds[0]}`)).toMatchObject({ mappingConfig: "kWh", name: "Energy" });
    expect((await hub.call("PUT", `/sources/999/variables/${variableIds[0]}`, { body: {} })).status).toBe(404);
  });

  it("names the field that is wrong, and then changes nothing", async () => {
    const { siteId } = await createChain(hub);
    const { status, body } = await hub.call("PUT", `/sites/${siteId}`, {
      body: { name: "New", timeZoneId: "Mars/Base" },
    });
    expect([status, body.errors[0].path]).toEqual([400, "timeZoneId"]);
    expect(await one(`/sites/${siteId}`)).toMatchObject({ name: "Site" });
    expect((await hub.call("PUT", "/sites", { body: { name: "New" } })).status).toBe(400);
  });

  it("needs the right, and finds nothing of another account", async () => {
    const { sourceId } = await createChain(hub);
    expect((await hub.call("PUT", `/sources/${sourceId}`, { as: "plain", body: { name: "X" } })).status).toBe(403);
    for (const method of ["PUT", "PATCH", "DELETE"])
      expect((await hub.call(method, `/sources/${sourceId}`, { account: 2, body: { name: "X" } })).status).toBe(404);
  });
});

describe("PATCH", () => {
  const headers = { "content-type": "application/json-patch+json" };

  it("refuses a value that is nested thousands of levels deep", async () => {
    const { siteId } = await createChain(hub);
    const depth = 20_000;
    const nested = `${"[".repeat(depth)}${"]".repeat(depth)}`;
    const body = `[{"op":"replace","path":"/clientData","value":${nested}}]`;
    const { status, body: problem } = await hub.call("PATCH", `/sites/${siteId}`, { raw: body, headers });
    expect([status, problem.detail]).toEqual([400, "the body is nested more than 64 levels deep"]);
    const merge = `{"clientData":${'{"a":'.repeat(depth)}1${"}".repeat(depth)}}`;
    const merged = await hub.call("PATCH", `/sites/${siteId}`, { raw: merge });
    expect([merged.status, merged.body.detail]).toEqual([400, "the body is nested more than 64 levels deep"]);
  });

  it("takes a JSON Patch", async () => {
    const { sourceId } = await createChain(hub, {
      source: { ean: "541", tags: ["a"], clientData: { F: { G: { x: 1 } } } },
    });
    const body = [
      { op: "test", path: "/Ean", value: "541" },
      { op: "remove", path: "/ean" },
      { op: "add", path: "/TAGS/-", value: "b" },
      { op: "replace", path: "/clientData/F/G/x", value: 2 },
    ];
    await hub.ok("PATCH", `/sources/${sourceId}`, { body, headers });
    expect(await one(`/sources/${sourceId}`)).toMatchObject({
      ean: null,
      tags: ["a", "b"],
      clientData: { F: { G: { x: 2 } } },
    });
  });

  it("takes an object of fields, in which null clears", async () => {
    const { siteId } = await createChain(hub);
    await hub.ok("PATCH", `/sites/${siteId}`, { body: { city: "Oslo", street: "A" } });
    await hub.ok("PATCH", `/sites/${siteId}`, { body: { city: null } });
    expect(await one(`/sites/${siteId}`)).toMatchObject({ city: null, street: "A" });
  });

  it("applies all of a patch or nothing, and names the operation that fails", async () => {
    const { siteId } = await createChain(hub);
    const body = [
      { op: "replace", path: "/name", value: "New" },
      { op: "remove", path: "/nothing/here" },
    ];
    const { status, body: problem } = await hub.call("PATCH", `/sites/${siteId}`, { body, headers });
    expect([status, problem.detail]).toEqual([400, expect.stringContaining("operation 1 of the patch")]);
    expect(await one(`/sites/${siteId}`)).toMatchObject({ name: "Site" });
  });

  it("refuses a patch that makes the entity larger than a body may be, before it is applied completely", async () => {
    const { sourceId } = await createChain(hub, {
      source: { clientData: { F: { G: { x: "0123456789" } } } },
    });
    const doubling = Array.from({ length: 40 }, (_, round) => ({
      op: "copy",
      from: "/clientData",
      path: `/clientData/c${round}`,
    }));
    const grown = await hub.call("PATCH", `/sources/${sourceId}`, { body: doubling, headers });
    expect([grown.status, grown.body.detail]).toEqual([
      400,
      expect.stringMatching(/^operation 1\d of the patch makes the document larger than 4000000 bytes/),
    ]);
    const many = Array.from({ length: 1_001 }, () => ({ op: "test", path: "/name", value: "Source" }));
    expect(await hub.call("PATCH", `/sources/${sourceId}`, { body: many, headers })).toMatchObject({
      status: 400,
      body: { detail: expect.stringContaining("1001 operations") },
    });
    expect(await one(`/sources/${sourceId}`)).toMatchObject({
      clientData: { F: { G: { x: "0123456789" } } },
    });
  });

  it.each([
    { op: "add", path: "/__proto__/admin", value: true },
    { op: "add", path: "/clientData/__proto__", value: { admin: true } },
    { op: "replace", path: "/constructor/prototype/admin", value: true },
    { op: "add", path: "/constructor/headgateTest", value: true },
    { op: "add", path: "/name/constructor/headgateTest", value: true },
    { op: "add", path: "/toString/headgateTest", value: true },
    { op: "replace", path: "/toString", value: 1 },
    { op: "copy", from: "/valueOf", path: "/clientData/x" },
    { op: "move", from: "/constructor", path: "/clientData/x" },
    { op: "test", path: "/hasOwnProperty", value: null },
    { op: "replace", path: "", value: {} },
    { op: "copy", from: "/clientData/F~1G", path: "/clientData/x" },
  ])("answers 400 to $op $path, which names no field of the entity", async (operation) => {
    const { sourceId } = await createChain(hub, { source: { clientData: { F: {} } } });
    const answer = await hub.call("PATCH", `/sources/${sourceId}`, { body: [operation], headers });
    expect([answer.status, answer.body.code]).toEqual([400, "invalid-request"]);
    expect(answer.body.detail).toContain("operation 0 of the patch");
    for (const touched of [Object, String, Object.prototype.toString, Object.prototype, hub])
      expect(Object.hasOwn(touched, "headgateTest") || Object.hasOwn(touched, "admin")).toBe(false);
  });
});

describe("a variable with data", () => {
  it("changes its unit with a warning, since stored values are not converted", async () => {
    const { variableIds } = await createChain(hub);
    const id = variableIds[0] ?? 0;
    expect(
      (await hub.call("PATCH", `/variables/${id}`, { body: { unitId: 9 } })).headers.get("x-headgate-warning"),
    ).toBeNull();
    await push(id);
    const { headers } = await hub.call("PATCH", `/variables/${id}`, { body: { unitId: 7 } });
    expect(headers.get("x-headgate-warning")).toContain("the 3 values stored so far were pushed in unit 9");
  });

  it("does not change its history", async () => {
    const { variableIds } = await createChain(hub);
    const path = `/variables/${variableIds[0]}`;
    await hub.ok("PATCH", path, { body: { isVersioned: true } });
    await push(variableIds[0] ?? 0);
    const { status, body } = await hub.call("PATCH", path, { body: { isVersioned: false } });
    expect([status, body.code]).toEqual([409, "conflict"]);
  });
});

describe("DELETE of structure", () => {
  it("removes entities without data, with everything below them", async () => {
    const { siteId, sourceId, variableIds } = await createChain(hub, { variables: [{}, {}] });
    expect(await hub.ok("DELETE", `/sites/${siteId}`)).toEqual({
      removed: { site: siteId, sources: 1, variables: 2, points: 0 },
    });
    for (const path of [`/sites/${siteId}`, `/sources/${sourceId}`, `/variables/${variableIds[0]}`])
      expect((await hub.call("GET", path)).status).toBe(404);
  });

  it.each(["site", "source", "variable"] as const)(
    "keeps a %s with data unless its removal is requested too",
    async (entity) => {
      const { siteId, sourceId, variableIds } = await createChain(hub, {
        variables: [{ isVersioned: true }],
      });
      const id = variableIds[0] ?? 0;
      await push(id);
      await push(id, [4]);
      const path = { site: `/sites/${siteId}`, source: `/sources/${sourceId}`, variable: `/variables/${id}` }[entity];
      const refused = await hub.call("DELETE", path);
      expect([refused.status, refused.body.detail]).toEqual([
        409,
        expect.stringContaining("holds 3 points in 1 variables"),
      ]);
      expect(await hub.get("/data", { VariableId: id })).toHaveLength(3);
      expect(await hub.ok("DELETE", path, { query: { withData: true } })).toMatchObject({
        removed: { points: 3 },
      });
      expect((await hub.call("GET", `/variables/${id}`)).status).toBe(404);
      expect((await push(id)).discarded).toMatchObject([{ reason: "no such variable in this account", count: 3 }]);
    },
  );
});

describe("DELETE /data", () => {
  it("reports with WhatIf what it would remove, and then removes exactly that", async () => {
    const { variableIds } = await createChain(hub, { variables: [{}, { isVersioned: true }, {}] });
    const [plain = 0, versioned = 0, other = 0] = variableIds;
    for (const id of variableIds) await push(id);
    await push(versioned, [7, 8]);
    const body = { VariableIds: [plain, versioned], FromDateUtc: DATES[1], ToDateUtc: DATES[2] };
    const expected = {
      points: 2,
      versions: 2,
      variables: [
        {
          variableId: plain,
          points: 1,
          versions: 0,
          from: "2026-03-01T01:00:00.000Z",
          to: "2026-03-01T01:00:00.000Z",
        },
        {
          variableId: versioned,
          points: 1,
          versions: 2,
          from: "2026-03-01T01:00:00.000Z",
          to: "2026-03-01T01:00:00.000Z",
        },
      ],
      results: [plain, versioned].map((variableId) => ({ variableId, datapointCount: 1 })),
    };
    expect(await hub.ok("DELETE", "/data", { body: { ...body, whatIf: true } })).toEqual({
      whatIf: true,
      ...expected,
    });
    expect(await hub.get("/data", { VariableId: plain })).toHaveLength(3);
    expect(await hub.ok("DELETE", "/data", { body })).toEqual({ whatIf: false, ...expected });
    const left = await Promise.all(
      [plain, versioned, other].map((id) => hub.get("/data", { VariableId: id, AllVersions: true })),
    );
    expect(left.map((rows) => rows.map(({ rawValue }: { rawValue: number }) => rawValue))).toEqual([
      [1, 3],
      [1, 7, 3],
      [1, 2, 3],
    ]);
  });

  it("removes more than one transaction can, and takes its parameters from the query as well", async () => {
    const { variableIds } = await createChain(hub);
    const id = variableIds[0] ?? 0;
    const data = Array.from({ length: 12_001 }, (_, minute) => ({
      date: new Date(Date.UTC(2026, 0, 1, 0, minute)).toISOString(),
      value: minute,
    }));
    await hub.push([{ variableId: id, data }]);
    const query = { variableids: id, ToDateUtc: "2026-01-09T07:00:00" };
    expect(await hub.ok("DELETE", "/data", { query })).toMatchObject({
      points: 11_940,
      variables: [{ from: "2026-01-01T00:00:00.000Z", to: "2026-01-09T06:59:00.000Z" }],
    });
    expect(await hub.get("/data", { VariableId: id })).toHaveLength(61);
  });

  it("names variables that do not exist rather than skip them, and needs the right", async () => {
    const { variableIds } = await createChain(hub);
    await push(variableIds[0] ?? 0);
    const body = { VariableIds: [variableIds[0], 999_999] };
    expect((await hub.call("DELETE", "/data", { body })).body.detail).toContain("no variable 999999");
    expect((await hub.call("DELETE", "/data", { body: {} })).status).toBe(400);
    const mine = { VariableIds: variableIds };
    expect((await hub.call("DELETE", "/data", { as: "plain", body: mine })).status).toBe(403);
    expect((await hub.call("DELETE", "/data", { account: 2, body: mine })).status).toBe(400);
    expect(await hub.get("/data", { VariableId: variableIds[0] ?? 0 })).toHaveLength(3);
  });
});
