/** Several hubs over one schema of PostgreSQL share calculations. */
import { afterEach, beforeEach, expect, test } from "vitest";
import { silentLog as log } from "#core/log.ts";
import { type RunningHub, startHub } from "#hub/hub.ts";
import { hubOptions } from "#hub/options.ts";
import { LITTLE_HASHING as hashCost } from "../../support/hash-cost.ts";
import { callsOf, type HubCalls, rawOptions, temporaryDirectory, usePostgres } from "../fixture.ts";
import { HubProcess } from "../hub-process.ts";
import { calculate, calculationsOf, openScene, pushValues, untilCalculated, valuesOf, versionsOf } from "./scene.ts";

await usePostgres();
let directory: Awaited<ReturnType<typeof temporaryDirectory>>;
let hubs: RunningHub[] = [];
beforeEach(async () => {
  directory = await temporaryDirectory();
});
afterEach(async () => {
  for (const hub of hubs) await hub.close();
  hubs = [];
  await directory.remove();
});

async function start(): Promise<HubCalls> {
  const hub = await startHub(hubOptions.parse(rawOptions(directory.path)), { log, hashCost });
  hubs.push(hub);
  return callsOf(() => hub.url);
}

const DATE = "2026-03-01T10:00:00Z";
const FACTORS = [1, 2, 3, 4, 5, 6];

test("two hubs calculate each variable once after a push, and the one that is left continues", async () => {
  const [one, other] = [await start(), await start()];
  const scene = await openScene(one);
  const [input = 0] = scene.inputs;
  const parts: Record<string, number> = {};
  for (const factor of FACTORS) parts[`p${factor}`] = await calculate(one, scene, `= a * ${factor}`, { a: input });
  const sum = await calculate(other, scene, `= ${Object.keys(parts).join(" + ")}`, parts);
  const all = [...Object.values(parts), sum];
  await untilCalculated(one);
  const before = (await calculationsOf(one, ...all)).length;
  await pushValues(other, input, { [DATE]: 2 });
  await untilCalculated(one);
  expect(await valuesOf(one, sum)).toEqual({ [DATE]: 42 });
  const ran = (await calculationsOf(one, ...all)).slice(before);
  expect(ran.map(({ variableId }) => variableId).toSorted()).toEqual(all.toSorted());
  expect(ran.map(({ state, stored }) => [state, stored])).toEqual(all.map(() => ["done", 1]));
  await hubs.shift()?.close();
  await pushValues(other, input, { [DATE]: 3 });
  await untilCalculated(other);
  expect(await valuesOf(other, sum)).toEqual({ [DATE]: 63 });
});

test("a hub takes over what a killed one had claimed, and stores each output once", async () => {
  const calm = await start();
  const scene = await openScene(calm);
  const [input = 0] = scene.inputs;
  const id = await calculate(calm, scene, "= a * 2", { a: input }, { variable: { isVersioned: true } });
  await untilCalculated(calm);
  await hubs.pop()?.close();
  const doomed = new HubProcess();
  const dying = await doomed.run(directory.path, "hub.calculation.accepted");
  await pushValues(dying, input, { [DATE]: 1 }).catch(() => null);
  expect(await doomed.killed()).toBe("SIGKILL");
  const heir = await start();
  await untilCalculated(heir);
  expect(await valuesOf(heir, id)).toEqual({ [DATE]: 2 });
  const [last] = (await calculationsOf(heir, id)).toReversed();
  expect(last).toMatchObject({ state: "done", outputs: 1, stored: 1 });
  expect(await versionsOf(heir, id)).toEqual([[last?.defaultVersion, 2]]);
});
