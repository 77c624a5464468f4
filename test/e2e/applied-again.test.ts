/** An operation that failed at the service, and was applied again there by a person. */
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { expectStoredOnce } from "./kill-scenario.ts";
import { readingsOf } from "./readings.ts";
import { Rig } from "./rig.ts";
import { PATIENTLY, until } from "./wait.ts";

vi.setConfig(PATIENTLY);

let rig: Rig;
beforeAll(async () => {
  rig = await Rig.start();
});
afterAll(() => rig.close());

/** Of the hub: it cannot store anything for a while. */
function changeStore(sql: string): void {
  const store = new DatabaseSync(join(rig.folder, "hub.sqlite"), { timeout: 5_000 });
  store.exec(sql);
  store.close();
}

async function applyAgain(operationId: string): Promise<number> {
  const base = `${rig.proxy.url}/person`;
  const form = { grant_type: "password", client_id: "gateway", client_secret: "gateway-secret" };
  const fields = { ...form, username: "pusher", password: "pusher-password", scope: "datahub-api push-data" };
  const answer = await fetch(`${base}/token`, {
    method: "POST",
    body: new URLSearchParams({ ...fields, acr_values: "accountid:1" }),
  });
  const { access_token: token } = (await answer.json()) as { access_token: string };
  const applied = await fetch(`${base}/base/operations/${encodeURIComponent(operationId)}`, {
    method: "POST",
    headers: { authorization: `Bearer ${token}` },
  });
  return applied.status;
}

test("a discarded run is confirmed when the service applied the operation again, with both outcomes", async () => {
  const stage = await rig.stage("again");
  const readings = readingsOf(await rig.variable("again"), 30);
  changeStore("CREATE TRIGGER fault BEFORE INSERT ON point BEGIN SELECT RAISE(ABORT, 'on purpose'); END");
  await stage.put("standard_one.csv", readings.csv);
  const daemon = stage.gateway([]);
  const url = (await daemon.said("stderr", /"operations":"([^"]+)"/))[1] ?? "";
  stage.lane.gateway = url;
  const runNow = () => stage.inspect(async (ledger) => (await ledger.recentRuns(1))[0]);
  await until("it is discarded", async () => (await runNow())?.state === "discarded");

  changeStore("DROP TRIGGER fault");
  expect(await applyAgain(stage.lane.pushes[0]?.operationId ?? "")).toBe(200);
  await until("it is confirmed", async () => (await runNow())?.state === "confirmed");
  await daemon.end("SIGTERM");
  expect(await runNow()).toMatchObject({ reason: null, points: { stored: 30, discarded: 0 } });
  const told = await stage.inspect(async (ledger) =>
    (await ledger.trace("standard_one.csv")).flatMap(({ events }) =>
      events.filter(({ what }) => what === "outcome.webhook").map(({ detail }) => detail),
    ),
  );
  expect(told).toEqual([expect.stringContaining("0 of 30 stored"), "30 of 30 stored"]);
  await expectStoredOnce(rig, [readings]);
});
