/** Small slow files of one account delay those of others no longer than a list of them may take. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { type PlatformRig, SECOND, standardCsv, startRig } from "./rig.ts";

let rig: PlatformRig;
beforeAll(async () => {
  rig = await startRig({ files: { workers: 2, timeLimit: "25s" } });
});
afterAll(() => rig.close());

/** This pattern tries each way to divide the letters. */
const SLOW = "^(a+)+$";
const LINE = `${"a".repeat(60)}!`;

test("a slow pattern in the settings of one account delays no file of another account", async () => {
  const id = await rig.variable("S-1", SECOND);
  await rig.trigger("quick_", "standard", {}, SECOND);
  const metadata = {
    ...{ date: { column: "date" }, value: "value", target: { variableId: 1 }, timeZone: "UTC" },
    skipRows: [SLOW],
  };
  // Files of one trigger are mapped in their order, those of several side by side.
  for (let nth = 0; nth < 4; nth += 1) await rig.trigger(`slow_${nth}`, "delimited", { metadata });
  const slow: number[] = [];
  for (let nth = 0; nth < 4; nth += 1)
    slow.push(await rig.store(`slow_${nth}.csv`, `date,value\n2026-03-01T00:00:00Z,1\n${LINE},${nth}\n`));
  const states = async () => Promise.all(slow.map(async (one) => (await rig.get(`/storage/${one}`)).state));
  await expect.poll(states, { timeout: 20_000 }).toContain("processing");
  for (let nth = 1; nth <= 3; nth += 1) {
    const quick = await rig.store(`quick_${nth}.csv`, standardCsv("S-1", `2026-03-0${nth}T00:00:00Z`, nth), SECOND);
    await rig.became(quick, "stored", SECOND);
    // The slow ones have not ended meanwhile.
    expect(await states()).not.toContain("quarantined");
  }
  expect(Object.values(await rig.values(id, SECOND))).toEqual([1, 2, 3]);
  await expect.poll(states, { timeout: 60_000 }).toContain("quarantined");
  const files = await Promise.all(slow.map((one) => rig.get(`/storage/${one}`)));
  expect(files.find(({ state }) => state === "quarantined").reason).toContain("25 s");
});
