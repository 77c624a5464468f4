/** The parts of a hub for a gateway in its process. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createChain, startTestHub, type TestHub } from "./fixture.ts";

let hub: TestHub;
beforeAll(async () => {
  hub = await startTestHub({ customerLimits: { requestsPerMinute: 60 } });
});
afterAll(() => hub.close());

const bearer = async (account: number) => ({ authorization: `Bearer ${(await hub.inside().mint(account)).value}` });

test("the accounts are listed in the order of their ids", async () => {
  expect(await hub.inside().accountIds()).toEqual([1, 2]);
});

describe("a minted token", () => {
  test("pushes to its account and reads it, and no other", async () => {
    const { variableIds } = await createChain(hub, { variables: [{ name: "own", mappingConfig: "kWh" }] });
    const [variableId = 0] = variableIds;
    const own = await bearer(1);
    const data = [{ date: "2026-03-01T00:00:00Z", value: 7 }];
    expect(await hub.push([{ variableId, data }], own)).toMatchObject({ status: "stored", stored: 1 });
    const query = { VariableIds: variableId, DisplayLevel: "ValueVariableDate" };
    expect(await hub.get("/data", query, own)).toMatchObject([{ rawValue: 7 }]);
    const other = await bearer(2);
    expect(await hub.get("/data", query, other)).toEqual([]);
    expect(await hub.push([{ variableId, data }], other)).toMatchObject({ stored: 0 });
  });

  test("may not change the structure, and lives for minutes", async () => {
    const own = await bearer(1);
    expect((await hub.call("POST", "/sites", { ...own, body: { name: "x", typeId: 3 } })).status).toBe(403);
    expect((await hub.inside().mint(1)).lifetimeMs).toBeLessThanOrEqual(600_000);
  });

  test("counts for no limit of requests of its account", async () => {
    const own = await bearer(2);
    for (let at = 0; at < 70; at += 1) expect((await hub.call("GET", "/sites", own)).status).toBe(200);
    const status = async () => (await hub.call("GET", "/sites", { as: "second", account: 2 })).status;
    expect(await status()).toBe(200);
  });
});

test("the version of an account's triggers changes with each change of them, and not with another's", async () => {
  const { fileTriggers } = hub.inside().store;
  const versions = [await fileTriggers.version(1)];
  const body = { name: "t", ingestionType: "SendViaHttp", mapping: "any" };
  const id = await hub.post("/fileTrigger", body);
  versions.push(await fileTriggers.version(1));
  await hub.ok("PUT", "/fileTrigger", { body: { id, state: "Inactive" } });
  versions.push(await fileTriggers.version(1));
  await hub.ok("DELETE", "/fileTrigger", { query: { ids: id } });
  versions.push(await fileTriggers.version(1));
  expect(new Set(versions).size).toBe(4);
  expect(await fileTriggers.version(2)).toBe(0);
});
