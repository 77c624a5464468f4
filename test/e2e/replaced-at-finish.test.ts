/**
 * A second content that takes a file's path in the moment of its move, where a power cut hides that from the
 * gateway.
 */
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { expectStoredOnce } from "./kill-scenario.ts";
import { readingsOf } from "./readings.ts";
import { Rig } from "./rig.ts";
import { PATIENTLY } from "./wait.ts";

vi.setConfig(PATIENTLY);

let rig: Rig;
beforeAll(async () => {
  rig = await Rig.start();
});
afterAll(() => rig.close());

test.each([
  ["is archived and watched", "1h"],
  ["is archived at once", "0s"],
])("content that replaced the delivered one is delivered too (%s)", async (words, guard) => {
  const name = words.replaceAll(" ", "-");
  const drop = {
    kind: "local",
    name: "field",
    path: "./drop",
    every: "200ms",
    settle: { observations: 1 },
  };
  const stage = await rig.stage(name, {
    drops: [{ ...drop, finish: { delivered: { archive: "archive" }, guard } }],
  });
  const variable = await rig.variable(name);
  const first = readingsOf(variable, 20);
  const second = readingsOf(variable, 35, 0, 100);
  await stage.put("standard_a.csv", first.csv);
  expect((await stage.untilIdle("drops.finish.after-rename")).signal).toBe("SIGKILL");
  const archived = (await stage.files()).find((path) => path.startsWith("archive/")) ?? "";
  await stage.put(archived, second.csv, stage.drop, 2);
  expect((await stage.untilIdle()).code).toBe(0);
  await expectStoredOnce(rig, [{ ...first, points: [...first.points, ...second.points] }]);
  expect((await stage.files()).filter((path) => !path.startsWith("archive/"))).toEqual([]);
});
