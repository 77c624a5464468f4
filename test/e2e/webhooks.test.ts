/** How the gateway learns what became of its pushes when webhooks do not come. */
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { expectStoredOnce } from "./kill-scenario.ts";
import { readingsOf } from "./readings.ts";
import { askOperations, quickPush, Rig, type Settings, standardTrigger } from "./rig.ts";
import { PATIENTLY, until } from "./wait.ts";

vi.setConfig(PATIENTLY);

let rig: Rig;
beforeAll(async () => {
  rig = await Rig.start();
});
afterAll(() => rig.close());

const quickly: Settings = { ...quickPush, confirm: { pollEvery: "100ms", webhookWait: "500ms" } };

const patiently: Settings = {
  ...quickPush,
  confirm: { pollEvery: "100ms", webhookWait: "10m", within: "1h" },
};
/** An address that the hub of the rig does not send outcomes to. */
const REFUSED = {
  listen: "127.0.0.1:0",
  webhook: { publicUrl: "http://10.255.255.1:9/hook", secret: "a-secret-that-nobody-needs" },
};

test.each([
  { name: "passed", by: "webhook", change: {} },
  { name: "doubled", by: "webhook", change: {} },
  { name: "late", by: "webhook", change: {} },
  { name: "lost", by: "read-back", change: { push: quickly } },
  { name: "unreachable", by: "read-back", change: { operations: { listen: "127.0.0.1:0" } } },
  // Without a word of the service, the gateway would wait for its webhook for minutes.
  { name: "refused", by: "read-back", change: { operations: REFUSED, push: patiently } },
] as const)("where the webhook is $name, outcomes are known by $by", async ({ name, by, change }) => {
  const stage = await rig.stage(name, change);
  stage.lane.fateOfWebhook = () => (name === "unreachable" || name === "refused" ? "passed" : name);
  const readings = readingsOf(await rig.variable(name), 100);
  await stage.put("standard_one.csv", readings.csv);
  const { code, stdout, stderr } = await stage.untilIdle();
  expect(code, stderr).toBe(0);
  expect(JSON.parse(stdout)).toMatchObject({
    files: { delivered: 1 },
    points: { mapped: 100, accepted: 100, stored: 100 },
  });
  expect(stage.lane.webhooks > 0).toBe(name !== "unreachable" && name !== "refused");
  await stage.inspect(async (ledger) => {
    const [run] = await ledger.recentRuns(1);
    expect(run).toMatchObject({ state: "confirmed", points: { stored: 100 } });
    const batches = await ledger.batches(run?.id ?? "");
    expect(batches.map((batch) => batch.outcome?.by)).toEqual([by, by, by]);
  });
  await expectStoredOnce(rig, [readings]);
});

test("readings of an unknown variable end discarded, also where only a read-back shows it", async () => {
  const stage = await rig.stage("unknown", {
    triggers: [{ ...standardTrigger, guard: "push" }],
    operations: { listen: "127.0.0.1:0" },
    push: { ...quickPush, confirm: { pollEvery: "100ms", within: "1s" } },
  });
  await stage.put("standard_lost.csv", readingsOf(99_999_999, 3).csv);
  const { code, stdout, stderr } = await stage.untilIdle();
  expect(code, "something needs a person").toBe(1);
  expect(stderr).toContain("99999999");
  expect(JSON.parse(stdout)).toMatchObject({ files: { discarded: 1 }, points: { accepted: 3, stored: 0 } });
});

test("a run without an outcome is unconfirmed, with its reason and in health; a late webhook confirms it", async () => {
  const stage = await rig.stage("unread", {
    push: { ...quickPush, confirm: { pollEvery: "100ms", within: "1s" } },
  });
  const held = Promise.withResolvers<void>();
  stage.lane.fateOfWebhook = () => held.promise;
  stage.lane.mayRead = false;
  const readings = readingsOf(await rig.variable("unread"), 30);
  await stage.put("standard_one.csv", readings.csv);
  const daemon = stage.gateway([]);
  const url = (await daemon.said("stderr", /"operations":"([^"]+)"/))[1] ?? "";
  const outcomes = await until("health to tell", async () => {
    const answer = (await (await askOperations(url, "/health/ready")).json()) as {
      parts: { part: string; reason: string }[];
    };
    return answer.parts.find(({ part }) => part === "outcomes");
  });
  expect(outcomes.reason).toMatch(/^1 accepted and not confirmed, the latest standard_one\.csv: .*403/);
  const metrics = async () => await (await askOperations(url, "/metrics")).text();
  expect(await metrics()).toMatch(/headgate_runs_needing_a_person\{.*state="unconfirmed".*\} 1/);
  const stateOf = () => stage.inspect(async (ledger) => (await ledger.recentRuns(1))[0]);
  expect(await stateOf()).toMatchObject({ state: "unconfirmed", reason: { code: "HG-RUN-005" } });
  stage.lane.gateway = url;
  held.resolve();
  await until("the late webhook to be taken", async () => (await stateOf())?.state === "confirmed");
  await daemon.end("SIGTERM");
  expect(await stateOf()).toMatchObject({ reason: null, points: { stored: 30 } });
  await expectStoredOnce(rig, [readings]);
});
