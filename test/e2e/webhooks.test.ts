/** How the gateway learns what became of its pushes when webhooks do not come. */
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { expectStoredOnce } from "./kill-scenario.ts";
import { readingsOf } from "./readings.ts";
import { quickPush, Rig, type Settings, standardTrigger } from "./rig.ts";
import { PATIENTLY, until } from "./waiting.ts";

vi.setConfig(PATIENTLY);

let rig: Rig;
beforeAll(async () => {
  rig = await Rig.start();
});
afterAll(() => rig.close());

const quickly: Settings = { ...quickPush, confirm: { pollEvery: "100ms", webhookWait: "500ms" } };

test.each([
  { name: "passed", by: "webhook", change: {} },
  { name: "doubled", by: "webhook", change: {} },
  { name: "late", by: "webhook", change: {} },
  { name: "lost", by: "read-back", change: { push: quickly } },
  { name: "unreachable", by: "read-back", change: { operations: { listen: "127.0.0.1:0" } } },
] as const)("where the webhook is $name, outcomes are known by $by", async ({ name, by, change }) => {
  const stage = await rig.stage(name, change);
  stage.lane.fateOfWebhook = () => (name === "unreachable" ? "passed" : name);
  const readings = readingsOf(await rig.variable(name), 100);
  await stage.put("standard_one.csv", readings.csv);
  const { code, stdout, stderr } = await stage.untilIdle();
  expect(code, stderr).toBe(0);
  expect(JSON.parse(stdout)).toMatchObject({
    files: { delivered: 1 },
    points: { mapped: 100, accepted: 100, stored: 100 },
  });
  expect(stage.lane.webhooks > 0).toBe(name !== "unreachable");
  await stage.inspect(async (ledger) => {
    const [run] = await ledger.recentRuns(1);
    expect(run).toMatchObject({ state: "confirmed", points: { stored: 100 } });
    const batches = await ledger.batches(run?.id ?? "");
    expect(batches.map((batch) => batch.outcome?.by)).toEqual([by, by, by]);
  });
  await expectStoredOnce(rig, [readings]);
});

test("readings of an unknown variable end discarded, also where only reading back can tell", async () => {
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

test("a run whose outcome nobody tells stays accepted, says why, and counts in health", async () => {
  const stage = await rig.stage("unread", {
    push: { ...quickPush, confirm: { pollEvery: "100ms", within: "1s" } },
  });
  stage.lane.fateOfWebhook = () => "lost";
  stage.lane.mayRead = false;
  const readings = readingsOf(await rig.variable("unread"), 30);
  await stage.put("standard_one.csv", readings.csv);
  const daemon = stage.gateway([]);
  const url = (await daemon.said("stderr", /"operations":"([^"]+)"/))[1] ?? "";
  const outcomes = await until("health to tell", async () => {
    const answer = (await (await fetch(`${url}/health/ready`)).json()) as {
      parts: { part: string; reason: string }[];
    };
    return answer.parts.find(({ part }) => part === "outcomes");
  });
  expect(outcomes.reason).toMatch(/^1 accepted and never confirmed, the latest standard_one\.csv: .*403/);
  await daemon.end("SIGTERM");
  await stage.inspect(async (ledger) =>
    expect((await ledger.recentRuns(1))[0]).toMatchObject({
      state: "accepted",
      reason: { code: "HG-RUN-005" },
    }),
  );
  await expectStoredOnce(rig, [readings]);
});
