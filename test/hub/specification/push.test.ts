import { afterAll, beforeAll, expect } from "vitest";
import { createChain, holdWriter, type Query, startReceiver, startTestHub, type TestHub, until } from "../fixture.ts";
import { rule } from "./rule.ts";

let hub: TestHub;
let id = 0;
beforeAll(async () => {
  hub = await startTestHub();
  const { variableIds } = await createChain(hub, {
    source: { serialNumber: "SN-1" },
    variables: [
      { mappingConfig: "kWh", variableTypeId: 6 },
      { mappingConfig: "m3", variableTypeId: 41, unitId: 19 },
    ],
  });
  [id = 0] = variableIds;
});
afterAll(() => hub.close());

let hours = 0;
/** A reading at a time that no other has. */
const reading = (more: object = {}) => {
  hours += 1;
  return { date: new Date(Date.UTC(2026, 0, 1) + hours * 3_600_000).toISOString(), value: hours, ...more };
};
const stored = (date: string, query: Query = {}) =>
  hub.get("/data", {
    VariableId: id,
    From: date,
    To: date,
    IncludeToBoundary: true,
    AllVersions: true,
    ...query,
  });
const refused = async (body: unknown) => {
  const answer = await hub.call("POST", "/push/api/data", { body });
  expect(answer.status).toBe(400);
  return answer.body.detail as string;
};

rule("push.operation-id", async () => {
  const query = { operationId: "import of march/7" };
  const accepted = await hub.call("POST", "/push/api/data", {
    query,
    body: [{ variableId: id, data: [reading()] }],
  });
  expect(accepted.body).toMatchObject(query);
  expect(await hub.settled("import of march/7")).toMatchObject({ ...query, status: "stored" });
});
rule("push.timeout", async () => {
  const { variableIds } = await createChain(hub);
  const one = reading();
  const call = (operationTimeoutSec: string) =>
    hub.call("POST", "/push/api/data", {
      query: { operationTimeoutSec, operationId: `within ${operationTimeoutSec}` },
      body: [{ variableId: variableIds[0], data: [one] }],
    });
  for (const text of ["soon", "0", "1.5"]) expect(await call(text)).toMatchObject({ status: 400 });
  const { released } = await holdWriter(hub.directory, 1_500);
  expect(await call("1")).toMatchObject({ status: 200 });
  await released;
  expect(await hub.settled("within 1")).toMatchObject({
    status: "failed",
    stored: 0,
    discarded: [{ count: 1, reason: expect.stringContaining("operationTimeoutSec of 1 s") }],
  });
  expect(await stored(one.date, { VariableId: variableIds[0] ?? 0 })).toEqual([]);
  expect(await call("30")).toMatchObject({ status: 200 });
  expect(await hub.settled("within 30")).toMatchObject({ status: "stored", stored: 1 });
});
rule("push.variable-id", async () => {
  const one = reading();
  await hub.push([{ variableId: id, data: [one] }]);
  expect(await stored(one.date)).toMatchObject([{ rawValue: one.value }]);
});
rule("push.serial-mapping", async () => {
  const one = reading();
  await hub.push([{ sourceSerialNumber: "SN-1", mappingConfig: "kWh", data: [one] }]);
  expect(await stored(one.date)).toMatchObject([{ rawValue: one.value }]);
});
rule("push.serial-type", async () => {
  const one = reading();
  await hub.push([{ sourceSerialNumber: "SN-1", variableTypeId: 6, data: [one] }]);
  expect(await stored(one.date)).toMatchObject([{ rawValue: one.value }]);
});
rule("push.element-version", async () => {
  const own = reading({ version: "own" });
  const plain = reading();
  await hub.push([{ variableId: id, version: "all", data: [own, plain] }]);
  expect(await stored(plain.date)).toMatchObject([{ version: "all" }]);
  expect(await stored(own.date)).toMatchObject([{ version: "own" }]);
});
rule("push.element-tags", async () => {
  const readings = [reading(), reading()];
  await hub.push([{ variableId: id, tags: { batch: "7" }, data: readings }]);
  for (const { date } of readings) expect(await stored(date)).toMatchObject([{ tags: { batch: "7" } }]);
});
rule("push.data-required", async () => expect(await refused([{ variableId: id }])).toContain("data"));
rule("push.nulls", async () => {
  const one = reading({ version: null, tags: null });
  const outcome = await hub.push([
    { variableId: id, sourceSerialNumber: null, tags: null, version: null, data: [one] },
  ]);
  expect(outcome).toMatchObject({ stored: 1 });
  expect(await stored(one.date)).toMatchObject([{ version: null, tags: null }]);
});
rule("push.identity", async () => {
  for (const field of ["accountId", "userId", "role"])
    expect(await refused([{ [field]: 1, variableId: id, data: [] }])).toContain(field);
});
rule("push.unknown", async () => {
  const query = { operationId: "unknown" };
  const body = [{ variableId: 987_654, data: [reading()] }];
  expect(await hub.call("POST", "/push/api/data", { query, body })).toMatchObject({ status: 200 });
  const outcome = await hub.settled("unknown");
  expect(outcome).toMatchObject({ status: "discarded", stored: 0, discarded: [{ count: 1 }] });
});
rule("push.outcome", async () => {
  const receiver = await startReceiver();
  try {
    const query = { operationId: "told", webhookUrl: receiver.url };
    await hub.ok("POST", "/push/api/data", { query, body: [{ variableId: id, data: [reading()] }] });
    const { text } = await until(async () => receiver.received[0]);
    expect(JSON.parse(text)).toMatchObject({ operationId: "told", received: 1, stored: 1, discarded: [] });
  } finally {
    await receiver.close();
  }
});
rule("errors.push-200", async () => {
  const query = { operationId: "accepted only" };
  const body = [{ variableId: 987_654, data: [reading()] }];
  const answer = await hub.call("POST", "/push/api/data", { query, body });
  expect(answer).toMatchObject({ status: 200, body: { status: "accepted" } });
  expect(await hub.settled("accepted only")).toMatchObject({ stored: 0 });
});
rule("errors.retry", async () => {
  // With versions, storing it twice would show.
  const { variableIds } = await createChain(hub, { variables: [{ isVersioned: true }] });
  const VariableId = variableIds[0] ?? 0;
  const one = reading();
  const push = (operationId: string) =>
    hub.ok("POST", "/push/api/data", {
      query: { operationId },
      headers: { "idempotency-key": "lost answer" },
      body: [{ variableId: VariableId, data: [one] }],
    });
  const first = await push("first");
  expect(await push("again")).toEqual(first);
  await hub.settled("first");
  expect(await push("and again")).toEqual(first);
  expect(await hub.call("GET", "/operations/again")).toMatchObject({ status: 404 });
  // What came before the last push is applied when that one is.
  await hub.push([{ variableId: VariableId, data: [reading()] }]);
  expect(await stored(one.date, { VariableId })).toHaveLength(1);
});
rule("silent.unit", async () => {
  const one = reading({ unitId: 7 });
  await hub.push([{ variableId: id, data: [one] }]);
  expect(await stored(one.date)).toMatchObject([{ rawValue: one.value, unitId: 8 }]);
});
