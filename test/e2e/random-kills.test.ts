/** The gateway killed at random instants, while files come from drops of every kind. */
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { chanceOf, roundsOf, seedOf } from "./chance.ts";
import { ALWAYS, expectNothingArchivedEarly, expectStoredOnce, lyingPaths } from "./kill-scenario.ts";
import { type Readings, readingsOf } from "./readings.ts";
import { Rig } from "./rig.ts";
import { KINDS, layThreeDrops } from "./three-drops.ts";
import { PATIENTLY } from "./waiting.ts";

vi.setConfig(PATIENTLY);

const FILES_PER_DROP = 3;
/** Milliseconds of a process's life: from before its ledger is open to after its work is done. */
const LIFE = { least: 250, most: 1_800 } as const;

const seed = seedOf("random kills");
const rounds = Array.from({ length: roundsOf(5) }, (_, round) => seed + round);

let rig: Rig;
beforeAll(async () => {
  rig = await Rig.start();
});
afterAll(() => rig.close());

describe("a gateway killed at random instants loses nothing and delivers nothing twice", () => {
  test.each(rounds)("HEADGATE_SEED=%i", async (own) => {
    const chance = chanceOf(own);
    const { stage, folders, close } = await layThreeDrops(rig, `round-${own}`);
    try {
      const expected: Readings[] = [];
      for (const kind of KINDS) {
        for (let index = 0; index < FILES_PER_DROP; index += 1) {
          const id = await rig.variable(`${own}-${kind}-${index}`);
          const readings = readingsOf(id, 40 + Math.trunc(chance() * 400), expected.length * 1_000);
          expected.push(readings);
          await stage.put(`in/standard_${index}.csv`, readings.csv, folders[kind]);
        }
      }
      const kills = 2 + Math.trunc(chance() * 3);
      for (let kill = 0; kill < kills; kill += 1) {
        const gateway = stage.gateway([]);
        await new Promise((resolve) => setTimeout(resolve, LIFE.least + chance() * (LIFE.most - LIFE.least)));
        expect(await gateway.end("SIGKILL"), "it lived until it was killed").toMatchObject({
          signal: "SIGKILL",
        });
        for (const kind of KINDS) await expectNothingArchivedEarly(stage, folders[kind]);
      }
      const { code, stderr } = await stage.untilIdle();
      expect(code, stderr).toBe(0);

      expect(stage.lane.conflicts).toEqual([]);
      await expectStoredOnce(rig, expected);
      await stage.inspect(async (ledger) => {
        const tally = await ledger.tally(ALWAYS);
        expect(tally.files).toEqual({ delivered: expected.length });
        expect(tally.points.stored).toBe(expected.reduce((sum, { points }) => sum + points.length, 0));
        for (const kind of KINDS) expect(await lyingPaths(ledger, kind)).toEqual([]);
      });
      for (const kind of KINDS) {
        await expectNothingArchivedEarly(stage, folders[kind]);
        expect(await stage.files(folders[kind])).toHaveLength(FILES_PER_DROP);
      }
    } finally {
      await close();
    }
  });
});
