/** A hub that is killed while it calculates neither loses outputs nor stores one twice. */
import { afterEach, beforeEach, expect, test } from "vitest";
import { type HubCalls, temporaryDirectory } from "../fixture.ts";
import { HubProcess } from "../hub-process.ts";
import { calculate, calculationsOf, openScene, pushValues, untilCalculated, valuesOf, versionsOf } from "./scene.ts";

const hubProcess = new HubProcess();
let directory: Awaited<ReturnType<typeof temporaryDirectory>>;
beforeEach(async () => {
  directory = await temporaryDirectory();
});
afterEach(async () => {
  await hubProcess.end("SIGKILL");
  await directory.remove();
});

const run = (fault?: string): Promise<HubCalls> => hubProcess.run(directory.path, fault);
const DATES = { "2026-03-01T10:00:00Z": 1, "2026-03-01T10:15:00Z": 2 };

/** A chain of two whose history is calculated. */
async function prepare() {
  const hub = await run();
  const scene = await openScene(hub);
  const [input = 0] = scene.inputs;
  const versioned = { variable: { isVersioned: true } };
  const first = await calculate(hub, scene, "= a * 2", { a: input }, versioned);
  const second = await calculate(hub, scene, "= a + 1", { a: first }, versioned);
  await untilCalculated(hub);
  await hubProcess.end("SIGTERM");
  return { input, first, second };
}

test.each([
  "hub.calculation.claimed",
  "hub.calculation.computed",
  "hub.calculation.computed#2",
  "hub.calculation.accepted",
  "hub.calculation.sent",
  "hub.calculation.sent#2",
  "hub.calculation.calculated",
])("killed at %s, the chain is calculated after the next start, each version once", async (fault) => {
  const { input, first, second } = await prepare();
  const dying = await run(fault);
  // The hub may be gone before it answers how the push ended.
  await pushValues(dying, input, DATES).catch(() => null);
  expect(await hubProcess.killed()).toBe("SIGKILL");
  const hub = await run();
  await untilCalculated(hub);
  expect(await valuesOf(hub, second)).toEqual({ "2026-03-01T10:00:00Z": 3, "2026-03-01T10:15:00Z": 5 });
  const runs = await calculationsOf(hub, first, second);
  expect(runs.map(({ state }) => state)).toEqual(runs.map(() => "done"));
  // A run that was taken over keeps its default version, so that a repeat overwrites.
  for (const id of [first, second]) {
    const own = runs.filter(({ variableId, outputs }) => variableId === id && outputs > 0);
    expect(own.map(({ outputs, stored }) => [outputs, stored])).toEqual([[2, 2]]);
    const versions = await versionsOf(hub, id);
    expect(versions.map(([version]) => version)).toEqual([own[0]?.defaultVersion, own[0]?.defaultVersion]);
  }
});
