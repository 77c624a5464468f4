/** The hub, as a real process, killed while a real gateway pushes to it, and started again. */
import { afterEach, expect, test, vi } from "vitest";
import { chanceOf, seedOf } from "./chance.ts";
import { ALWAYS, expectStoredOnce } from "./kill-scenario.ts";
import type { Ended } from "./processes.ts";
import { type Readings, readingsOf } from "./readings.ts";
import { Rig, type Stage } from "./rig.ts";
import { PATIENTLY } from "./wait.ts";

vi.setConfig(PATIENTLY);

let rig: Rig;
afterEach(() => rig.close());

async function layFile(stage: Stage, expected: Readings[], points: number): Promise<void> {
  const name = `file-${expected.length}`;
  const readings = readingsOf(await rig.variable(name), points, expected.length * 1_000);
  expected.push(readings);
  await stage.put(`standard_${name}.csv`, readings.csv);
}

/**
 * Lays files until the hub is killed, starts the hub again, and answers with the end of the gateway that met it. The
 * hub stores waiting pushes as one group, so two files may be stored before the group that is to be its last.
 */
async function pushUntilKilled(stage: Stage, expected: Readings[]): Promise<Ended> {
  const killed = rig.hub.ended();
  for (;;) {
    await layFile(stage, expected, 200);
    await layFile(stage, expected, 200);
    const gateway = stage.untilIdle();
    const outlived = await Promise.race([killed.then(() => false), gateway.then(() => true)]);
    if (outlived) continue;
    expect(await killed).toMatchObject({ signal: "SIGKILL" });
    await rig.restartHub();
    return await gateway;
  }
}

async function expectConfirmedOnce(stage: Stage, expected: readonly Readings[]): Promise<void> {
  expect(stage.lane.conflicts).toEqual([]);
  await expectStoredOnce(rig, expected);
  await stage.inspect(async (ledger) => {
    const runs = await ledger.recentRuns(100);
    expect(runs.map((run) => run.state)).toEqual(expected.map(() => "confirmed"));
    const count = expected.reduce((sum, { points }) => sum + points.length, 0);
    expect((await ledger.tally(ALWAYS)).points).toEqual({
      mapped: count,
      accepted: count,
      stored: count,
      rejected: 0,
    });
  });
}

test.each([
  "hub.push.durable",
  "hub.push.durable#5",
  "hub.push.answered",
  "hub.push.answered#4",
  "hub.ingest.before",
  "hub.ingest.before#3",
  "hub.ingest.after",
  "hub.ingest.after#6",
])("a hub killed at %s stores every point once, and the gateway's runs end confirmed", async (fault) => {
  rig = await Rig.start(fault);
  const stage = await rig.stage("gateway");
  const expected: Readings[] = [];
  const { code, stderr } = await pushUntilKilled(stage, expected);
  expect(code, stderr).toBe(0);
  await expectConfirmedOnce(stage, expected);
});

test("a hub killed at random instants stores every point once", async () => {
  const chance = chanceOf(seedOf("hub kills"));
  rig = await Rig.start();
  const stage = await rig.stage("gateway");
  const expected: Readings[] = [];
  for (let count = 0; count < 2; count += 1) await layFile(stage, expected, 2_000);
  const gateway = stage.gateway(["--until-idle", "--timeout", "90s"]);
  for (let kill = 0; kill < 4; kill += 1) {
    const reached = stage.lane.pushes.length + 1 + Math.trunc(chance() * 8);
    while (gateway.running && stage.lane.pushes.length < reached)
      await new Promise((resolve) => setTimeout(resolve, chance() * 20));
    await rig.restartHub();
  }
  const { code, stderr } = await gateway.ended();
  expect(code, stderr).toBe(0);
  await expectConfirmedOnce(stage, expected);
});
