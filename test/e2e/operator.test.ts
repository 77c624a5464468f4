/** Orders by real commands, and a gateway that is killed while it carries them out. */
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { HeadgateProcess } from "./processes.ts";
import { Rig, type Stage } from "./rig.ts";
import { PATIENTLY } from "./wait.ts";

vi.setConfig(PATIENTLY);

let rig: Rig;
beforeAll(async () => {
  rig = await Rig.start();
});
afterAll(() => rig.close());

const DAYS = ["2026-03-01", "2026-03-02", "2026-03-03"];
const csv = (variable: number, days: readonly string[], value: number) =>
  `date,value,variable_id\n${days.map((day) => `${day}T00:00:00Z,${value},${variable}\n`).join("")}`;

/** A file of three days, and a later one that corrects the second. */
async function deliveredTwice(name: string): Promise<{ stage: Stage; variable: number; run: string }> {
  const stage = await rig.stage(name);
  const variable = await rig.variable(name);
  await stage.put("standard_first.csv", csv(variable, DAYS, 1));
  expect(await stage.untilIdle()).toMatchObject({ code: 0 });
  await stage.put("standard_second.csv", csv(variable, DAYS.slice(1, 2), 2));
  expect(await stage.untilIdle()).toMatchObject({ code: 0 });
  const [first] = await stage.inspect((ledger) => ledger.trace("standard_first.csv"));
  return { stage, variable, run: first?.runs[0]?.run.id ?? "" };
}

const headgate = (stage: Stage, ...args: string[]) =>
  new HeadgateProcess([...args, "-c", stage.config, "--json"]).ended();

const KILLS = ["run.map.segment", "delivery.after-answer"];

test("a killed replay sends each reading once more, and none that a later file delivered", async () => {
  const { stage, variable, run } = await deliveredTwice("killed");
  for (const [before, point] of KILLS.entries()) {
    expect(await headgate(stage, "replay", run, "--no-diff")).toMatchObject({ code: 0 });
    expect((await stage.untilIdle(point)).signal, point).toBe("SIGKILL");
    const ended = await stage.untilIdle();
    expect(ended.code, ended.stderr).toBe(0);
    expect(stage.lane.conflicts).toEqual([]);
    const stored = (await rig.stored(variable)).map(({ date, value }) => `${date.slice(0, 10)} ${value}`);
    const again = Array.from({ length: before + 2 }, () => [`${DAYS[0]} 1`, `${DAYS[2]} 1`]).flat();
    expect(stored.sort(), point).toEqual([...again, `${DAYS[1]} 1`, `${DAYS[1]} 2`].sort());
  }
});

test("commands reach a gateway on a port that the configuration does not contain", async () => {
  const { stage, variable, run } = await deliveredTwice("beside");
  const gateway = stage.gateway([]);
  await gateway.said("stderr", /gateway started/);
  expect(await headgate(stage, "pause", "field", "--reason", "moves")).toMatchObject({ code: 0 });
  const { stdout, code, stderr } = await headgate(stage, "replay", run, "--overwrite");
  expect(code, stderr).toBe(0);
  const [{ plan }] = JSON.parse(stdout);
  expect(plan).toMatchObject({ readings: { sent: 3 }, overwrites: true, later: [{ readings: 1 }] });
  await gateway.said("stderr", /an operator sent a command[^\n]*/);
  await vi.waitFor(async () => expect(await rig.stored(variable)).toHaveLength(7), { timeout: 60_000 });
  await gateway.end("SIGTERM");
});
