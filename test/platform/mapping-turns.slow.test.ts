/** Slow files of one account, however many, do not delay those of others. */
import { afterEach, expect, test } from "vitest";
import { type PlatformRig, SECOND, standardCsv, startRig } from "./rig.ts";

let rig: PlatformRig;
afterEach(() => rig.close());

/** This pattern tries each way to divide the letters. */
const SLOW = "^(a+)+$";
const LINE = `${"a".repeat(60)}!`;

/** Files of one trigger are mapped in their order, those of several side by side. */
async function storeSlow(count: number): Promise<readonly number[]> {
  const metadata = {
    ...{ date: { column: "date" }, value: "value", target: { variableId: 1 }, timeZone: "UTC" },
    skipRows: [SLOW],
  };
  const nths = Array.from({ length: count }, (_, nth) => String(nth).padStart(3, "0"));
  for (const nth of nths) await rig.trigger(`slow_${nth}`, "delimited", { metadata });
  const store = (nth: string) => rig.store(`slow_${nth}.csv`, `date,value\n2026-03-01T00:00:00Z,1\n${LINE},${nth}\n`);
  return await Promise.all(nths.map(store));
}

async function states(files: readonly number[]): Promise<readonly string[]> {
  return await Promise.all(files.map(async (one) => (await rig.get(`/storage/${one}`)).state));
}

async function mapped(): Promise<number> {
  return (await rig.platform().gateway?.ledger.runsIn(["mapping"]))?.length ?? 0;
}

test("a slow pattern in the settings of one account delays no file of another account", async () => {
  rig = await startRig({ files: { workers: 2, timeLimit: "25s" } });
  const id = await rig.variable("S-1", SECOND);
  await rig.trigger("quick_", "standard", {}, SECOND);
  const slow = await storeSlow(4);
  await expect.poll(() => states(slow), { timeout: 20_000 }).toContain("processing");
  for (let nth = 1; nth <= 3; nth += 1) {
    const quick = await rig.store(`quick_${nth}.csv`, standardCsv("S-1", `2026-03-0${nth}T00:00:00Z`, nth), SECOND);
    await rig.became(quick, "stored", SECOND);
    // The slow ones have not ended meanwhile.
    expect(await states(slow)).not.toContain("quarantined");
  }
  expect(Object.values(await rig.values(id, SECOND))).toEqual([1, 2, 3]);
  await expect.poll(() => states(slow), { timeout: 60_000 }).toContain("quarantined");
  const files = await Promise.all(slow.map((one) => rig.get(`/storage/${one}`)));
  expect(files.find(({ state }) => state === "quarantined").reason).toContain("25 s");
});

test.each([1, 2])(
  "fifty slow files, each mapped by itself by now, leave a place beside %i workers",
  async (workers) => {
    rig = await startRig({ files: { workers, timeLimit: "1h" } });
    await rig.variable("S-1", SECOND);
    await rig.trigger("quick_", "standard", {}, SECOND);
    const slow = await storeSlow(50);
    await expect.poll(mapped, { timeout: 60_000 }).toBeGreaterThan(10);
    for (let nth = 1; nth <= 3; nth += 1) {
      const quick = await rig.store(`quick_${nth}.csv`, standardCsv("S-1", `2026-03-0${nth}T00:00:00Z`, nth), SECOND);
      await rig.became(quick, "stored", SECOND);
    }
    expect(await states(slow)).not.toContain("quarantined");
  },
);
