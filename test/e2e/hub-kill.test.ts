/** The hub, as a real process, killed while a real gateway pushes to it, and started again. */
import { afterEach, expect, test, vi } from "vitest";
import { chanceOf, seedOf } from "./chance.ts";
import { ALWAYS, expectStoredOnce } from "./kill-scenario.ts";
import { type Readings, readingsOf } from "./readings.ts";
import { Rig, type Stage } from "./rig.ts";
import { PATIENTLY } from "./wait.ts";

vi.setConfig(PATIENTLY);

let rig: Rig;
afterEach(() => rig.close());

async function layFiles(points: number): Promise<{ stage: Stage; expected: readonly Readings[] }> {
  const stage = await rig.stage("gateway");
  const expected: Readings[] = [];
  for (const name of ["one", "two"]) {
    const readings = readingsOf(await rig.variable(name), points, expected.length * 1_000);
    expected.push(readings);
    await stage.put(`standard_${name}.csv`, readings.csv);
  }
  return { stage, expected };
}

async function expectConfirmedOnce(stage: Stage, expected: readonly Readings[]): Promise<void> {
  expect(stage.lane.conflicts).toEqual([]);
  await expectStoredOnce(rig, expected);
  await stage.inspect(async (ledger) => {
    const runs = await ledger.recentRuns(10);
    expect(runs.map((run) => run.state)).toEqual(["confirmed", "confirmed"]);
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
  const { stage, expected } = await layFiles(200);
  const gateway = stage.untilIdle();
  expect(await rig.hub.ended()).toMatchObject({ signal: "SIGKILL" });
  await rig.restartHub();
  const { code, stderr } = await gateway;
  expect(code, stderr).toBe(0);
  await expectConfirmedOnce(stage, expected);
});

test("a hub killed at random instants stores every point once", async () => {
  const chance = chanceOf(seedOf("hub kills"));
  rig = await Rig.start();
  const { stage, expected } = await layFiles(2_000);
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
