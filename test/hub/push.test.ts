import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { pushAccepted } from "#wire/index.ts";
import { createChain, startTestHub, type TestHub } from "./fixture.ts";

let hub: TestHub;
beforeAll(async () => {
  hub = await startTestHub({ limits: { body: "100KB" } });
});
afterAll(() => hub.close());

const DATE = "2026-03-01T00:00:00Z";
const data = [{ date: DATE, value: 1 }];
const read = async (variableId: number | undefined) =>
  hub.get("/data", { VariableId: variableId ?? 0, DisplayLevel: "ValueVariableDate", TimeZoneId: "UTC" });

describe("the response", () => {
  test("contains accepted, with the operationId of the query or a generated one", async () => {
    const named = await hub.post("/push/api/data", [], { query: { OperationId: "Run 7/1" } });
    expect(pushAccepted.parse(named)).toEqual({ operationId: "Run 7/1", status: "accepted", received: 0 });
    const generated = await hub.post("/push/api/data/", []);
    expect(pushAccepted.parse(generated).operationId).not.toBe("");
    expect(await hub.settled("Run 7/1")).toMatchObject({ operationId: "Run 7/1", status: "stored" });
  });

  test("accepts an operationId as a bare query string", async () => {
    expect(await hub.post("/push/api/data?older%20client", [])).toMatchObject({
      operationId: "older client",
    });
  });

  test.each([
    ["no JSON", "{", "JSON"],
    ["no UTF-8", new Uint8Array([0x5b, 0x22, 0xff, 0x22, 0x5d]), "UTF-8"],
    ["no array", '{"data":[]}', "array"],
    ["an element that is not an object", "[1]", "[0]"],
    ["an element without data", '[{"variableId":1}]', "[0].data"],
    [
      "a value that is text",
      '[{"variableId":1,"data":[{"date":"2026-01-01T00:00:00Z","value":"1"}]}]',
      "[0].data[0].value",
    ],
    ["a null value", '[{"variableId":1,"data":[{"date":"2026-01-01T00:00:00Z","value":null}]}]', "[0].data[0].value"],
    ["a reading without date", '[{"variableId":1,"data":[{"value":1}]}]', "[0].data[0].date"],
    ["tags that are not text", '[{"variableId":1,"tags":{"a":1},"data":[]}]', "[0].tags"],
    ["an accountId in the body", '[{"variableId":1,"AccountId":2,"data":[]}]', "AccountId"],
    ["a userId in the body", '[{"variableId":1,"userId":2,"data":[]}]', "userId"],
    ["a role in a reading", '[{"variableId":1,"data":[{"date":"2026-01-01T00:00:00Z","value":1,"role":"x"}]}]', "role"],
  ])("is 400 with the path for %s", async (_, raw, words) => {
    const answer = await hub.call("POST", "/push/api/data", { raw });
    expect(answer.status).toBe(400);
    expect(answer.body.detail).toContain(words);
  });

  test("is 413 beyond the limit of the body, and 415 for a compressed one", async () => {
    const raw = JSON.stringify([{ variableId: 1, data: [], sourceName: "x".repeat(110_000) }]);
    expect(await hub.call("POST", "/push/api/data", { raw })).toMatchObject({ status: 413 });
    const headers = { "content-encoding": "gzip" };
    expect(await hub.call("POST", "/push/api/data", { raw: "[]", headers })).toMatchObject({ status: 415 });
  });
});

describe("targets", () => {
  test("every combination of identifiers finds its variable", async () => {
    const source = { name: "N-1", serialNumber: "S-1", ean: "E-1", meterNumber: "M-1" };
    const { sourceId, variableIds } = await createChain(hub, {
      source,
      variables: [{ mappingConfig: "kWh", variableTypeId: 130 }],
    });
    const [variableId] = variableIds;
    const sources = [
      { sourceId },
      { sourceSerialNumber: "S-1" },
      { sourceEan: "E-1" },
      { sourceName: "N-1" },
      { meterNumber: "M-1" },
    ];
    const targets: object[] = [{ variableId }];
    for (const one of sources) targets.push({ ...one, mappingConfig: "kWh" }, { ...one, variableTypeId: 130 });
    for (const [hour, target] of targets.entries()) {
      const date = `2026-03-01T${String(hour).padStart(2, "0")}:00:00Z`;
      expect(await hub.push([{ ...target, data: [{ date, value: hour }] }]), JSON.stringify(target)).toMatchObject({
        status: "stored",
        stored: 1,
      });
    }
    expect((await read(variableId)).map((row: { rawValue: number }) => row.rawValue)).toEqual([...targets.keys()]);
  });

  test("names in any case find it, values in another case do not; nulls are ignored", async () => {
    const { variableIds } = await createChain(hub, {
      source: { serialNumber: "Case-1" },
      variables: [{ mappingConfig: "kWh" }],
    });
    const raw = (serial: string) =>
      `[{"VARIABLEID":null,"SourceSerialNumber":"${serial}","mappingconfig":"kWh","Tags":null,"DATA":[{"Date":"${DATE}","VALUE":4}]}]`;
    await hub.ok("POST", "/push/api/data?operationId=case-a", { raw: raw("Case-1") });
    await hub.ok("POST", "/push/api/data?operationId=case-b", { raw: raw("CASE-1") });
    expect(await hub.settled("case-a")).toMatchObject({ stored: 1 });
    expect(await hub.settled("case-b")).toMatchObject({ stored: 0, status: "discarded" });
    expect(await read(variableIds[0])).toMatchObject([{ rawValue: 4 }]);
  });

  test("with several sources under one serial number, the first variable with that mappingConfig wins", async () => {
    await createChain(hub, { source: { serialNumber: "TWIN" }, variables: [{ mappingConfig: "other" }] });
    const second = await createChain(hub, {
      source: { serialNumber: "TWIN" },
      variables: [{ mappingConfig: "kWh" }],
    });
    const third = await createChain(hub, {
      source: { serialNumber: "TWIN" },
      variables: [{ mappingConfig: "kWh" }],
    });
    await hub.push([{ sourceSerialNumber: "TWIN", mappingConfig: "kWh", data }]);
    expect(await read(second.variableIds[0])).toHaveLength(1);
    expect(await read(third.variableIds[0])).toHaveLength(0);
  });

  test(
    "one kind of identifier a call: the first kind met is used, the others are discarded with the " + "reason",
    async () => {
      const { variableIds } = await createChain(hub, {
        source: { serialNumber: "KIND" },
        variables: [{ mappingConfig: "kWh" }],
      });
      const outcome = await hub.push([
        { sourceSerialNumber: "KIND", mappingConfig: "kWh", data },
        { variableId: variableIds[0], data },
        { sourceSerialNumber: "KIND", data },
      ]);
      expect(outcome).toMatchObject({ received: 3, stored: 1, status: "partly-discarded" });
      expect(outcome.discarded).toMatchObject([
        { target: `variableId=${variableIds[0]}`, reason: expect.stringContaining("one kind"), count: 1 },
        { target: "sourceSerialNumber=KIND", reason: expect.stringContaining("mappingConfig"), count: 1 },
      ]);
    },
  );

  test("a variable that does not exist is answered by 200 and discarded with its count", async () => {
    const outcome = await hub.push([
      { variableId: 999_999, data: [...data, { date: "2026-03-02T00:00:00Z", value: 2 }] },
    ]);
    expect(outcome).toMatchObject({
      received: 2,
      stored: 0,
      discarded: [{ target: "variableId=999999", reason: "no such variable in this account", count: 2 }],
    });
  });

  test("beyond the limit of entries, discards are summed up and none is uncounted", async () => {
    const few = await startTestHub({ limits: { discards: 3 } });
    try {
      const elements = Array.from({ length: 10 }, (_, id) => ({ variableId: 5_000 + id, data }));
      const outcome = await few.push(elements);
      expect(outcome.discarded).toHaveLength(4);
      expect(outcome.discarded[3]).toMatchObject({ target: "(further targets)", count: 7 });
    } finally {
      await few.close();
    }
  });
});

describe("readings", () => {
  test(
    "a designator is binding; without one the source's zone reads the date, the repeated hour as its " + "second pass",
    async () => {
      const { variableIds } = await createChain(hub, {
        zone: "UTC",
        source: { timeZoneId: "Romance Standard Time" },
      });
      const dates = [
        "2026-07-01T00:00:00",
        "2026-07-01T00:00:00+05:30",
        "2026-10-25T02:30:00",
        "2026-12-01T00:00:00.0000000Z",
      ];
      await hub.push([{ variableId: variableIds[0], data: dates.map((date, value) => ({ date, value })) }]);
      expect((await read(variableIds[0])).map((row: { date: string }) => row.date)).toEqual([
        "2026-06-30T18:30:00+00:00",
        "2026-06-30T22:00:00+00:00",
        "2026-10-25T01:30:00+00:00",
        "2026-12-01T00:00:00+00:00",
      ]);
    },
  );

  test("dates and values that cannot be stored are discarded one by one, with reason and count", async () => {
    const { variableIds } = await createChain(hub);
    const raw = `[{"variableId":${variableIds[0]},"data":[{"date":"${DATE}","value":1e999},{"date":"01/03/2026","value":1},{"date":"02/03/2026","value":1},
      {"date":"2026-02-30T00:00:00Z","value":1},{"date":"2026-03-29T02:30:00","value":1},{"date":"${DATE}","value":-7.25}]}]`;
    await hub.ok("POST", "/push/api/data?operationId=unfit", { raw });
    const outcome = await hub.settled("unfit");
    expect(outcome).toMatchObject({ received: 6, stored: 1 });
    const reasons = outcome.discarded.map(
      ({ reason, count }: { reason: string; count: number }) => `${count} ${reason}`,
    );
    expect(reasons).toEqual([
      "1 the value is beyond the range of a number",
      '2 the date is not ISO 8601: "01/03/2026"',
      '1 the date does not exist: "2026-02-30T00:00:00Z"',
      '1 the local date does not exist in Europe/Paris (the clocks skip it): "2026-03-29T02:30:00"',
    ]);
    expect(await read(variableIds[0])).toMatchObject([{ rawValue: -7.25 }]);
  });

  test("dates finer than a millisecond are cut to it, which the outcome says once", async () => {
    const { variableIds } = await createChain(hub, { zone: "UTC" });
    const dates = [
      "2026-03-01T00:00:00.123456Z",
      "2026-03-01T00:00:01.1234567+00:00",
      "2026-03-01t00:00:02,123456789z",
      "2026-03-01T00:00:03.9999999",
      "2026-03-01T00:00:04.5000000000Z",
      "2026-03-01T00:00:05Z",
    ];
    const outcome = await hub.push([
      { variableId: variableIds[0], data: dates.map((date, value) => ({ date, value })) },
    ]);
    expect(outcome).toMatchObject({ status: "stored", stored: 6, discarded: [] });
    expect(outcome.notices).toEqual([
      '4 dates finer than a millisecond were cut to it, the first: "2026-03-01T00:00:00.123456Z"',
    ]);
    expect((await read(variableIds[0])).map((row: { date: string }) => row.date)).toEqual([
      "2026-03-01T00:00:00.123+00:00",
      "2026-03-01T00:00:01.123+00:00",
      "2026-03-01T00:00:02.123+00:00",
      "2026-03-01T00:00:03.999+00:00",
      "2026-03-01T00:00:04.500+00:00",
      "2026-03-01T00:00:05+00:00",
    ]);
    const period = { From: "2026-03-01T00:00:00.123999Z", To: "2026-03-01t00:00:03,9999z" };
    expect(await hub.get("/data", { VariableId: variableIds[0] ?? 0, ...period })).toHaveLength(3);
    const removal = {
      VariableIds: variableIds[0] ?? 0,
      ToDateUtc: "2026-03-01T00:00:01.1239Z",
      WhatIf: true,
    };
    expect(await hub.ok("DELETE", "/data", { query: removal })).toMatchObject({ points: 1 });
  });

  test.each([
    { isVersioned: false, versions: [undefined, undefined], points: 0 },
    { isVersioned: false, versions: ["a", "b"], points: 0 },
    { isVersioned: true, versions: [undefined, undefined], points: 0 },
    { isVersioned: true, versions: ["a", "a"], points: 0 },
    { isVersioned: true, versions: ["a", "b"], points: 2 },
  ])(
    "dates that are the same once cut are discarded, both, where their values differ (versioned: " +
      "$isVersioned, versions $versions)",
    async ({ isVersioned, versions, points }) => {
      const { variableIds } = await createChain(hub, { zone: "UTC", variables: [{ isVersioned }, {}] });
      const [variableId, other] = variableIds;
      const [first, second] = versions;
      const outcome = await hub.push([
        { variableId, version: first, data: [{ date: "2026-03-01T00:00:00.123Z", value: 1 }] },
        { variableId: other, data: [{ date: "2026-03-01T00:00:00.1239Z", value: 7 }] },
        {
          variableId,
          version: second,
          data: [
            { date: "2026-03-01T00:00:00.123999Z", value: 2 },
            // Alike once cut, and of the same value: one reading, told twice.
            { date: "2026-03-01T00:00:01.1231Z", value: 5 },
            { date: "2026-03-01T00:00:01.1239Z", value: 5 },
            // The same date again is no collision: the later value counts.
            { date: "2026-03-01T00:00:02.1239Z", value: 5 },
            { date: "2026-03-01T00:00:02.123900Z", value: 6 },
          ],
        },
      ]);
      const reason = expect.stringMatching(/^the date, cut to the millisecond, is that of another reading/);
      expect(outcome).toMatchObject({ received: 7, stored: 5 + points });
      expect(outcome.discarded).toEqual(points === 0 ? [{ target: `variableId=${variableId}`, reason, count: 2 }] : []);
      const rows = await hub.get("/data", { VariableId: variableId ?? 0, AllVersions: true });
      const at = (value: number) => rows.filter(({ rawValue }: { rawValue: number }) => rawValue === value).length;
      expect([at(1) + at(2), at(6)]).toEqual([points, 1]);
    },
  );

  test("pushes to one variable are stored in the order of their responses", async () => {
    const { variableIds } = await createChain(hub);
    for (let value = 1; value <= 20; value += 1)
      await hub.post("/push/api/data", [{ variableId: variableIds[0], data: [{ date: DATE, value }] }], {
        query: { operationId: `order-${value}` },
      });
    await hub.settled("order-20");
    expect(await read(variableIds[0])).toMatchObject([{ rawValue: 20 }]);
  });
});

describe("Idempotency-Key", () => {
  test("the same key with the same body gets the same response and is stored once", async () => {
    const { variableIds } = await createChain(hub, { variables: [{ isVersioned: true }] });
    const more = { headers: { "idempotency-key": "key-1" } };
    const body = [{ variableId: variableIds[0], data }];
    const first = await hub.post("/push/api/data", body, more);
    const again = await hub.post("/push/api/data", body, { ...more, query: { operationId: "other" } });
    expect(again).toEqual(first);
    const repeated = await hub.call("POST", "/push/api/data", { ...more, body });
    expect(repeated.headers.get("idempotent-replayed")).toBe("true");
    await hub.push([{ variableId: variableIds[0], data: [{ date: "2026-03-02T00:00:00Z", value: 1 }] }]);
    expect(await hub.get("/data", { VariableId: variableIds, AllVersions: true, To: "2026-03-02" })).toHaveLength(1);
    expect(await hub.call("GET", "/operations/other")).toMatchObject({ status: 404 });
  });

  test("the same key with another body is refused by 422; another account has keys of its own", async () => {
    const more = { headers: { "idempotency-key": "key-2" } };
    const first = await hub.post("/push/api/data", [], more);
    const other = await hub.call("POST", "/push/api/data", { ...more, body: [{ variableId: 1, data }] });
    expect(other).toMatchObject({
      status: 422,
      body: { code: "idempotency-conflict", detail: expect.stringContaining(first.operationId) },
    });
    const elsewhere = await hub.post("/push/api/data", [], { ...more, as: "second", account: 2 });
    expect(elsewhere.operationId).not.toBe(first.operationId);
  });
});
