import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { view } from "#wire/index.ts";
import { createChain, startTestHub, type TestHub } from "./fixture.ts";

let hub: TestHub;
beforeAll(async () => {
  hub = await startTestHub();
});
afterAll(() => hub.close());

const SECOND = { as: "second", account: 2 };

describe("views", () => {
  test("are created, listed, shown and removed", async () => {
    const body = { Name: "Roofs", entitytype: "source", customFilter: "Tags = 'roof'", colour: "red" };
    const id = await hub.post("/views", body);
    expect(id).toEqual(expect.any(Number));
    const made = { id, name: "Roofs", entityType: "Source", customFilter: "Tags = 'roof'" };
    expect(view.parse(await hub.get(`/views/${id}`))).toEqual(made);
    expect(await hub.get("/views", { EntityType: "Source" })).toContainEqual(made);
    expect(await hub.get("/views", { EntityType: "Site" })).not.toContainEqual(made);
    expect(await hub.call("DELETE", `/views/${id}`)).toMatchObject({ status: 204 });
    expect(await hub.call("GET", `/views/${id}`)).toMatchObject({ status: 404 });
    expect(await hub.call("DELETE", `/views/${id}`)).toMatchObject({ status: 404 });
  });

  test("serve as ViewId, together with the other filters, and survive a restart", async () => {
    const roof = await createChain(hub, { source: { tags: ["roof"], serialNumber: "R" }, variables: [] });
    await createChain(hub, { source: { tags: ["cellar"] }, variables: [] });
    const sources = await hub.post("/views", {
      name: "v",
      entityType: "Source",
      customFilter: "Tags = 'roof'",
    });
    const sites = await hub.post("/views", {
      name: "v",
      entityType: "Site",
      customFilter: "Source.SerialNumber = 'R'",
    });
    await hub.restart();
    const ids = async (path: string, query: Parameters<TestHub["get"]>[1]) =>
      (await hub.get(path, query)).map((row: { id: number }) => row.id);
    expect(await ids("/sources", { viewid: sources })).toEqual([roof.sourceId]);
    expect(await ids("/sources", { ViewId: sources, SerialNumber: "none" })).toEqual([]);
    expect(await ids("/sites", { ViewId: sites })).toEqual([roof.siteId]);
  });

  test("of other accounts do not exist", async () => {
    const id = await hub.post("/views", { name: "v", entityType: "Site", customFilter: "Id > 0" });
    expect(await hub.get("/views", undefined, SECOND)).toEqual([]);
    expect(await hub.call("GET", `/views/${id}`, SECOND)).toMatchObject({ status: 404 });
    expect(await hub.call("DELETE", `/views/${id}`, SECOND)).toMatchObject({ status: 404 });
    expect(await hub.call("GET", "/sites", { ...SECOND, query: { ViewId: id } })).toMatchObject({
      status: 400,
    });
    expect(await hub.get(`/views/${id}`)).toMatchObject({ id });
  });

  test.each([
    [{ name: "v", entityType: "Site", customFilter: "Nam = 'x'" }, "position 1"],
    [{ name: "v", entityType: "Site", customFilter: "Name = " }, "customFilter"],
    [{ name: "v", entityType: "Variable", customFilter: "Id = 1" }, "entityType"],
    [{ entityType: "Site", customFilter: "Id = 1" }, "name"],
  ])("%j is refused, and the response says why", async (body, words) => {
    const answer = await hub.call("POST", "/views", { body });
    expect(answer).toMatchObject({ status: 400, body: { detail: expect.stringContaining(words) } });
  });

  test("that do not fit the list, or do not exist, are refused rather than skipped", async () => {
    const id = await hub.post("/views", { name: "v", entityType: "Site", customFilter: "Id > 0" });
    for (const ViewId of [id, 999_999]) {
      const answer = await hub.call("GET", "/sources", { query: { ViewId } });
      expect(answer).toMatchObject({ status: 400, body: { errors: [{ path: "ViewId" }] } });
    }
  });
});

describe("ids of referentials in bodies", () => {
  test.each([
    ["/sites", { name: "S", typeId: 17, timeZoneId: "UTC" }, "typeId", "/sitetypes"],
    ["/sources", { name: "S", siteId: 1, sourceTypeId: 9_999 }, "sourceTypeId", "/sourceTypes"],
    ["/sources", { name: "S", siteId: 1, sourceTypeId: 1, energyTypeId: 12 }, "energyTypeId", "/energyTypes"],
    ["/sources", { name: "S", siteId: 1, sourceTypeId: 1, energyUsageId: 99 }, "energyUsageId", "/energyUsages"],
    ["/sources", { name: "S", siteId: 1, sourceTypeId: 1, gatewayTypeId: 99 }, "gatewayTypeId", "/gatewayTypes"],
    ["/variables", { name: "V", sourceId: 1, variableTypeId: 999, unitId: 8 }, "variableTypeId", "/variableTypes"],
    ["/variables", { name: "V", sourceId: 1, variableTypeId: 0, unitId: 999 }, "unitId", "/units"],
    [
      "/variables",
      { name: "V", sourceId: 1, variableTypeId: 0, unitId: 8, granularityTimeBase: 8 },
      "granularityTimeBase",
      "/timePeriods",
    ],
    [
      "/variables",
      { name: "V", sourceId: 1, variableTypeId: 0, unitId: 8, quantityType: 7 },
      "quantityType",
      "/quantityTypes",
    ],
    ["/variables", { name: "V", sourceId: 1, variableTypeId: 0, unitId: 8, aggregate: 8 }, "aggregate", "/aggregates"],
  ])("POST %s %j: the 400 names %s and %s", async (path, body, field, list) => {
    const answer = await hub.call("POST", path, { body });
    expect(answer).toMatchObject({ status: 400, body: { errors: [{ path: field }] } });
    expect(answer.body.detail).toContain(list);
  });

  test("are checked by changes, too, and nothing is changed", async () => {
    const { sourceId } = await createChain(hub);
    const answer = await hub.call("PATCH", `/sources/${sourceId}`, {
      body: { name: "New", gatewayTypeId: 999 },
    });
    expect(answer).toMatchObject({ status: 400, body: { errors: [{ path: "gatewayTypeId" }] } });
    expect(await hub.get(`/sources/${sourceId}`)).toMatchObject({ name: "Source" });
  });
});
