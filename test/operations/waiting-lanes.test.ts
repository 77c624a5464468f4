/**
 * A lane whose first run does not move: in the log, in health, in the notifications, among what waits, and as
 * metrics.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Registry } from "prom-client";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Clock } from "#core/clock.ts";
import { createLog } from "#core/log.ts";
import type { Ledger } from "#gateway/ledger/ledger.ts";
import { openLedger } from "#gateway/ledger/open.ts";
import type { Run } from "#gateway/model.ts";
import { findAttention } from "#gateway/operations/attention.ts";
import { healthOf, waitingFiles } from "#gateway/operations/state-of-work.ts";
import { LaneLog, WaitingLanes } from "#gateway/operations/waiting-lanes.ts";
import { measureWork } from "#gateway/operations/work-metrics.ts";
import { HeadgateProcess } from "../e2e/processes.ts";
import { claimed, deliver, record } from "../ledger/fixtures.ts";
import { drop, GatewayRig, until } from "../runs/gateway-rig.ts";
import { askOperations } from "../support/operations.ts";

const LANE = '["main","field","monthly"]';
const HOUR_MS = 3_600_000;
const MINUTE_MS = 60_000;

let folder: string;
let ledger: Ledger;
let nowMs: number;
let lines: string[];
let down: string[];
const clock: Clock = {
  now: () => Temporal.Instant.fromEpochMilliseconds(nowMs),
  monotonicMs: () => nowMs,
  sleep: async () => false,
};
const log = createLog("info", {
  write(line: string) {
    const { level, msg } = JSON.parse(line) as { readonly level: string; readonly msg: string };
    lines.push(`${level}: ${msg}`);
  },
});

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "headgate-"));
  nowMs = Date.parse("2026-03-01T00:00:00.000Z");
  lines = [];
  down = [];
  ledger = await openLedger({ kind: "sqlite", path: join(folder, "l.sqlite") }, { clock });
});
afterEach(async () => {
  await ledger.close();
  rmSync(folder, { recursive: true });
});

const open = () =>
  new WaitingLanes({
    ...{ ledger, clock, afterMs: HOUR_MS },
    waitReason: () => undefined,
    isDown: (service) => down.includes(service),
  });

async function mappedRun(path: string): Promise<Run> {
  const run = await claimed(ledger, path, LANE);
  await ledger.advanceRun(run.id, "claimed", "fetched");
  await ledger.advanceRun(run.id, "fetched", "mapping");
  return ledger.recordMapped(run.id, record(["A"]));
}

/** Notes why it waits, as a step does that is tried again. */
const note = (run: Run, message: string) =>
  ledger.noteRun(run.id, {
    reason: { code: "HG-DROP-008", message },
    event: "run.waiting",
    detail: message,
  });

describe("a run that cannot be fetched, with two behind it", () => {
  let first: Run;
  let lanes: WaitingLanes;
  let words: string;
  beforeEach(async () => {
    first = await claimed(ledger, "a.csv", LANE);
    await mappedRun("b.csv");
    await claimed(ledger, "c.csv", LANE);
    lanes = open();
    await lanes.all();
    for (let passedMs = 0; passedMs < HOUR_MS; passedMs += MINUTE_MS) {
      nowMs += MINUTE_MS;
      // In other words each time, so that it is noted each time.
      await note(first, `the file changed (look ${passedMs / MINUTE_MS})`);
    }
    words = `a.csv at field (run ${first.id}, claimed) has not moved since 2026-03-01T00:00:00.000Z, and 2 runs wait behind it: the file changed (look 59)`;
  });

  test("is a part of health, a notification, and two metrics", async () => {
    const waits = await lanes.all();
    const names = { drops: ["field"], services: [] };
    const parts = await healthOf([], names, new Map(), ledger, [], waits);
    expect(parts).toContainEqual({ part: "lane main/field/monthly", ready: true, reason: words });

    const { concerns } = await findAttention({
      ledger,
      node: null,
      drops: () => [],
      services: () => [],
      clocks: () => [],
      late: () => [],
      lanes: () => lanes.overdue(),
      notices: async () => [],
      triggers: async () => [],
      pauses: () => [],
      spool: async () => ({
        ...{ usedBytes: 0, sharedBytes: 0, held: { runs: 0, bytes: 0 }, budgetBytes: 1, freeBytes: 1 },
        full: null,
      }),
      spoolShare: 1,
      unfinished: { list: () => [], note: () => undefined, isKnown: true },
      refusedConfiguration: () => null,
    });
    expect(concerns).toMatchObject([
      { key: `lane ${LANE}`, kind: "lane", text: words, facts: { run: first.id, behind: 2 } },
    ]);

    const registry = new Registry();
    const unused = { drops: () => [], health: async () => [], nowMs: () => nowMs, unfinished: () => [] };
    measureWork(registry, { ...unused, ledger, lanes: () => lanes.all() });
    const text = await registry.metrics();
    const labels = '{drop="field",trigger="monthly",mapper="standard",service="main"}';
    expect(text).toContain(`headgate_lane_wait_seconds${labels} 3600\n`);
    expect(text).toContain(`headgate_oldest_waiting_age_seconds${labels} 3600\n`);
    expect(text).toContain(`headgate_lane_runs_behind${labels} 2\n`);
  });

  test("is marked among the waiting runs, and shown however many others there are", async () => {
    const { files } = await waitingFiles(ledger, [], () => undefined, await lanes.all(), nowMs);
    expect(files.map(({ path, overdue, holdsUp }) => ({ path, overdue, holdsUp }))).toEqual([
      { path: "a.csv", overdue: true, holdsUp: { since: "2026-03-01T00:00:00.000Z", behind: 2 } },
      { path: "b.csv", overdue: false, holdsUp: undefined },
      { path: "c.csv", overdue: false, holdsUp: undefined },
    ]);
    const none = { ...ledger, runsIn: async () => [] };
    expect((await waitingFiles(none, [], () => undefined, await lanes.all(), nowMs)).files).toMatchObject([
      { path: "a.csv", overdue: true },
    ]);
  });

  test("is one warning, and one line more when the lane continues", async () => {
    const laneLog = new LaneLog({ lanes, clock, log });
    nowMs -= 1;
    await laneLog.look();
    expect(lines).toEqual([]);
    nowMs += 1;
    await laneLog.look();
    nowMs += HOUR_MS;
    await note(first, "the file changed again");
    await laneLog.look();
    expect(lines).toEqual([`warn: ${words}`]);
    await ledger.advanceRun(first.id, "claimed", "quarantined");
    await laneLog.look();
    expect(lines.slice(1)).toEqual(["info: lane main/field/monthly resumes: a.csv at field has moved"]);
    // The next one has waited for an hour, but not at the front.
    expect(await lanes.overdue()).toEqual([]);
    nowMs += HOUR_MS;
    await laneLog.look();
    expect(lines.slice(2)).toEqual([expect.stringMatching(/^warn: b\.csv at field .*1 run waits behind it/)]);
  });
});

test("a long backlog that moves is no false alarm, also for a gateway that has just started", async () => {
  const runs = [await mappedRun("a.csv"), await mappedRun("b.csv"), await mappedRun("c.csv")];
  const lanes = open();
  await lanes.all();
  for (const run of runs) {
    nowMs += HOUR_MS - MINUTE_MS;
    expect(await lanes.overdue()).toEqual([]);
    await deliver(ledger, run);
    expect(await open().overdue()).toEqual([]);
    expect(await lanes.overdue()).toEqual([]);
  }
});

test("the lane behind a held run counts from the time at which that run was held", async () => {
  const held = await mappedRun("a.csv");
  const next = await mappedRun("b.csv");
  nowMs += 2 * HOUR_MS;
  await ledger.advanceRun(held.id, "mapped", "held");
  expect(await open().overdue()).toEqual([]);
  nowMs += HOUR_MS;
  expect(await open().overdue()).toMatchObject([{ run: { id: next.id }, behind: 0 }]);
});

test("a lane that waits for an unavailable service is reported with the service, and later by itself", async () => {
  await mappedRun("a.csv");
  nowMs += HOUR_MS;
  down = ["main"];
  const lanes = open();
  const laneLog = new LaneLog({ lanes, clock, log });
  await laneLog.look();
  expect(lines).toEqual([]);
  down = [];
  await laneLog.look();
  expect(lines).toHaveLength(1);
  down = ["main"];
  await laneLog.look();
  expect(lines).toHaveLength(1);
});

test("a run that waits for its file is reported although its service is unavailable", async () => {
  await claimed(ledger, "a.csv", LANE);
  nowMs += HOUR_MS;
  down = ["main"];
  expect(await open().overdue()).toHaveLength(1);
});

test("the gateway reports the lane by `operations.laneAfter` in log, health, metrics and `runs`", async () => {
  const rig = await GatewayRig.start();
  try {
    const before = await rig.open({ drops: [drop("in")] });
    const { id } = await claimed(before.ledger, "a.csv", LANE);
    await before.stop();
    const gateway = await rig.open({ drops: [drop("in")], operations: { laneAfter: "1ms" } }, log);
    await until("it is in the log", async () => lines.some((line) => line.startsWith("warn: a.csv at field (run")));
    const ask = async (path: string) => await (await askOperations(gateway, path)).text();
    const reason = new RegExp(`a\\.csv at field \\(run ${id}, claimed\\) has not moved since`);
    expect(await ask("/health/ready")).toMatch(reason);
    expect(await ask("/metrics")).toMatch(/^headgate_lane_wait_seconds\{drop="field",.*\} [\d.]+$/m);
    const show = async (...more: string[]) =>
      (await new HeadgateProcess(["runs", "-c", rig.config, "--waiting", ...more]).ended()).stdout;
    const mark = /^field +a\.csv +claimed, overdue .*; first of its lane since \S+, with 0 behind it$/m;
    expect(await show()).toMatch(mark);
    await gateway.stop();
    expect(await show()).toMatch(mark);
    expect(JSON.parse(await show("--json"))).toMatchObject([{ runId: id, holdsUp: { behind: 0 } }]);
  } finally {
    await rig.close();
  }
});
