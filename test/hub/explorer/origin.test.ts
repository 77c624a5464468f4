/** GET /data/origin: where the versions of a point came from. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { createChain, startTestHub, type TestHub } from "../fixture.ts";

const DATE = "2026-03-01T00:00:00Z";
const LINK = "https://gateway.example.org/console/readings";

let hub: TestHub;
beforeAll(async () => {
  hub = await startTestHub();
});
afterAll(() => hub.close());

const reading = (value: number, version?: string) => ({
  date: DATE,
  value,
  ...(version === undefined ? {} : { version }),
});

async function push(
  operationId: string,
  elements: unknown,
  more: { as?: string; headers?: Record<string, string> } = {},
) {
  const answer = await hub.call("POST", "/push/api/data", { ...more, query: { operationId }, body: elements });
  await hub.settled(operationId);
  return answer;
}

async function chain(isVersioned: boolean, serialNumber: string) {
  const variables = [{ isVersioned, mappingConfig: "kWh" }, { isVersioned }];
  const { variableIds } = await createChain(hub, { source: { serialNumber }, variables });
  return { id: variableIds[0] ?? 0, other: variableIds[1] ?? 0 };
}

const originOf = (VariableId: number, more = {}) => hub.get("/data/origin", { VariableId, Date: DATE, ...more });

test("each version names the operation, the person, the moment and the sender's link, the latest first", async () => {
  const { id, other } = await chain(true, "M-1");
  await push("first", [{ variableId: id, data: [reading(1)] }], { as: "pusher", headers: { "x-trace-link": LINK } });
  // In one operation with another variable, and with a second version of the point.
  const second = [
    { variableId: other, data: [reading(7)] },
    { variableId: id, data: [reading(2, "a"), reading(3)] },
  ];
  await push("second", second);
  const rows = await originOf(id);
  expect(rows).toMatchObject([
    { value: 3, version: null, operationId: "second", user: "manager", link: null, file: null, row: null },
    { value: 2, version: "a", operationId: "second", tags: { version: "a" } },
    { value: 1, operationId: "first", user: "pusher", variableId: id, unitId: 8, date: "2026-03-01T01:00:00+01:00" },
  ]);
  const link = new URL(rows[2].link);
  expect(link.origin + link.pathname).toBe(LINK);
  expect(Object.fromEntries(link.searchParams)).toEqual({
    target: expect.stringMatching(new RegExp(`^variableId=${id} .*sourceSerialNumber=M-1 .*mappingConfig=kWh`)),
    date: "2026-03-01T00:00:00.000Z",
    operationId: "first",
  });
  for (const { receivedAt, versionTimestamp } of rows)
    expect(Date.parse(receivedAt)).toBeLessThanOrEqual(Date.parse(versionTimestamp));
  const stamps = (await hub.get("/data", { VariableId: id, AllVersions: true })) as { versionTimestamp: string }[];
  expect(rows.map((row: { versionTimestamp: string }) => row.versionTimestamp).reverse()).toEqual(
    stamps.map(({ versionTimestamp }) => versionTimestamp),
  );
});

test("without versions, a point has the operation that stored its value; a repeat of it changes nothing", async () => {
  const { id } = await chain(false, "M-2");
  await push("plain", [{ variableId: id, data: [reading(1), { date: "2026-03-02T00:00:00Z", value: 5 }] }]);
  expect(await originOf(id)).toMatchObject([{ value: 1, versionTimestamp: null, operationId: "plain" }]);
  await push("changed", [{ variableId: id, data: [reading(2), { date: "2026-03-02T00:00:00Z", value: 5 }] }]);
  expect(await originOf(id)).toMatchObject([{ value: 2, operationId: "changed" }]);
  expect(await originOf(id, { Date: "2026-03-02T00:00:00Z" })).toMatchObject([{ value: 5, operationId: "plain" }]);
  // Of a group of operations each has its own readings.
  const many = Array.from({ length: 20 }, (_, at) => `many-${at}`);
  await Promise.all(many.map((one, at) => push(one, [{ variableId: id, data: [{ date: dayOf(at), value: at }] }])));
  for (const [at, operationId] of many.entries())
    expect(await originOf(id, { Date: dayOf(at) })).toMatchObject([{ value: at, operationId }]);
});

const dayOf = (at: number) => `2026-04-${String(at + 1).padStart(2, "0")}T00:00:00Z`;

test("a local date is of the zone that is asked for, and a point that is not there has no rows", async () => {
  const { id } = await chain(true, "M-3");
  await push("local", [{ variableId: id, data: [reading(1)] }]);
  const local = { Date: "2026-03-01T01:00", TimeZoneId: "Europe/Paris" };
  expect(await originOf(id, local)).toMatchObject([{ operationId: "local", date: "2026-03-01T01:00:00+01:00" }]);
  expect(await originOf(id, { Date: "2026-03-01T01:00" })).toEqual([]);
  for (const query of [{ VariableId: id }, { VariableId: id, Date: "then" }, { Date: DATE }])
    expect((await hub.call("GET", "/data/origin", { query })).status).toBe(400);
});

test("readings with a link that no browser should open are stored, and the link is not kept", async () => {
  const { id } = await chain(false, "M-4");
  for (const [at, link] of [
    "javascript:alert(1)",
    "https://a:b@example.org/",
    `https://${"x".repeat(2_000)}.org`,
  ].entries()) {
    const elements = [{ variableId: id, data: [reading(at)] }];
    const { status, headers } = await push(`link-${at}`, elements, { headers: { "x-trace-link": link } });
    expect([status, headers.get("x-headgate-warning")]).toEqual([200, expect.stringContaining("x-trace-link")]);
    expect(await originOf(id)).toMatchObject([{ operationId: `link-${at}`, link: null }]);
  }
});

test("another account has no such variable", async () => {
  const { id } = await chain(true, "M-5");
  await push("walls", [{ variableId: id, data: [reading(1)] }]);
  const more = { as: "second", account: 2 };
  const { status, body } = await hub.call("GET", "/data/origin", { ...more, query: { VariableId: id, Date: DATE } });
  expect([status, JSON.stringify(body).includes("walls")]).toEqual([404, false]);
});

test("origins survive a restart", async () => {
  const { id } = await chain(true, "M-6");
  await push("before", [{ variableId: id, data: [reading(1)] }]);
  await hub.restart();
  await push("after", [{ variableId: id, data: [reading(2)] }]);
  expect(await originOf(id)).toMatchObject([{ operationId: "after" }, { operationId: "before" }]);
});
