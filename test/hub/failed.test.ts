/** Operations that failed keep their bodies until a person decides: nothing that was accepted with 200 is lost. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { breakStore, createChain, startReceiver, startTestHub, type TestHub, until } from "./fixture.ts";

const DATE = "2026-03-01T00:00:00Z";
const FAULTY = 666;
const NAMES = ["wanted/1", "unwanted", "theirs"];
let hub: TestHub;
let receiver: Awaited<ReturnType<typeof startReceiver>>;
let id = 0;

beforeAll(async () => {
  hub = await startTestHub();
  receiver = await startReceiver();
  const { variableIds } = await createChain(hub);
  [id = 0] = variableIds;
  const { mended } = await breakStore(hub.directory, FAULTY);
  for (const operationId of NAMES) {
    const query = { operationId, webhookUrl: receiver.url };
    await hub.post("/push/api/data", [{ variableId: id, data: [{ date: DATE, value: FAULTY }] }], { query });
  }
  // One that comes after them is stored none the less.
  await hub.push([{ variableId: id, data: [{ date: "2026-03-02T00:00:00Z", value: 1 }] }]);
  await mended();
});
afterAll(async () => {
  await hub.close();
  await receiver.close();
});

const at = (operationId: string) => `/operations/${encodeURIComponent(operationId)}`;
const failedNames = async () =>
  (await hub.get("/operations", { State: "Failed" })).map(({ operationId }: { operationId: string }) => operationId);
const told = (operationId: string) =>
  receiver.received
    .map(({ text }) => JSON.parse(text))
    .filter((outcome: { operationId: string }) => outcome.operationId === operationId);
const values = async () =>
  (await hub.get("/data", { VariableId: id })).map((row: { rawValue: number }) => row.rawValue);

test("failed operations are listed with their reason, also after a restart, and the webhook reports them", async () => {
  await hub.restart();
  expect(await failedNames()).toEqual(NAMES);
  expect(await hub.get("/operations", { State: "Failed" })).toMatchObject(
    NAMES.map(() => ({
      status: "failed",
      received: 1,
      stored: 0,
      discarded: [{ target: "(all)", count: 1, reason: expect.stringContaining("failed to apply") }],
    })),
  );
  const page = { State: "failed", "Paging.PageNumber": 1, "Paging.ItemsPerPage": 2, IncludeItemsCount: true };
  const second = await hub.call("GET", "/operations", { query: page });
  expect(second.body).toMatchObject([{ operationId: "theirs" }]);
  expect(second.headers.get("x-total-count")).toBe("3");
  expect(await hub.get("/operations", { State: "accepted" })).toEqual([]);
  expect(await hub.get("/health")).toMatchObject({ pendingOperations: 0, failedOperations: 3 });
  expect(await values()).toEqual([1]);
  expect(await until(async () => told("wanted/1")[0])).toMatchObject({ received: 1, stored: 0 });
});

test("only managers of the account decide about a failed operation", async () => {
  for (const method of ["POST", "DELETE"]) {
    expect(await hub.call(method, at("theirs"), { as: "plain" })).toMatchObject({ status: 403 });
    const other = { as: "second", account: 2 };
    expect(await hub.call(method, at("theirs"), other)).toMatchObject({ status: 404 });
  }
  expect(await failedNames()).toContain("theirs");
});

test("a failed operation that is applied again is stored, and the webhook reports it", async () => {
  const again = await hub.call("POST", at("wanted/1"), { query: { operationTimeoutSec: 30 } });
  expect(again).toMatchObject({ status: 200, body: { operationId: "wanted/1", waiting: 1 } });
  expect(await hub.settled("wanted/1")).toMatchObject({ status: "stored", stored: 1, discarded: [] });
  expect(await values()).toEqual([FAULTY, 1]);
  // A delivery that the restart cut short may have come twice.
  await until(async () => told("wanted/1").find(({ stored }: { stored: number }) => stored === 1));
  expect(await failedNames()).toEqual(["unwanted", "theirs"]);
});

test("a failed operation that is dropped is discarded permanently", async () => {
  const dropped = await hub.call("DELETE", at("unwanted"));
  expect(dropped).toMatchObject({ status: 200, body: { operationId: "unwanted", dropped: 1 } });
  expect(await hub.get(at("unwanted"))).toMatchObject({ status: "discarded", stored: 0 });
  expect(await failedNames()).toEqual(["theirs"]);
});

test("operations that have not failed are neither applied again nor dropped", async () => {
  for (const method of ["POST", "DELETE"])
    for (const name of ["wanted/1", "unwanted"])
      expect(await hub.call(method, at(name))).toMatchObject({ status: 409, body: { code: "conflict" } });
  expect(await hub.call("POST", at("theirs"), { query: { operationTimeoutSec: 0 } })).toMatchObject({
    status: 400,
  });
});
