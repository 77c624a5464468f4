/** A small scene that passes nearly every fault point: one local drop, in which files of every ending lie. */
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "vitest";
import type { Ledger } from "#gateway/ledger/ledger.ts";
import type { FileStanding } from "#gateway/model.ts";
import type { Interference, Push } from "./proxy.ts";
import { type Readings, readingsOf } from "./readings.ts";
import type { Rig, Stage } from "./rig.ts";
import { until } from "./wait.ts";

export const ALWAYS = "2000-01-01T00:00:00.000Z";
/** The proxy takes the part of a service that refuses pushes of this variable with more readings than that. */
const TOO_LARGE = 25;
const REFUSED_VALUE = 666;

export interface Scene {
  readonly stage: Stage;
  /** What must be stored, each reading once. */
  readonly expected: readonly Readings[];
  readonly files: Readonly<Partial<Record<FileStanding, number>>>;
}

/** Seen before, and taken away by its sender since. */
const LEAVING = "leaving.txt";

/** A stage whose gateway has delivered `standard_again.csv`, to be copied: the same bytes come again in each scene. */
export async function prepareBefore(rig: Rig): Promise<{ stage: Stage; again: Readings }> {
  const stage = await rig.stage("before");
  const again = readingsOf(await rig.variable("before"), 20, 500);
  await stage.put("standard_again.csv", again.csv);
  await stage.put(LEAVING, "no trigger claims this");
  const ended = await stage.untilIdle();
  expect(ended).toMatchObject({ code: 0 });
  // So that every gateway that starts on a copy of this stage looks at the archived file.
  await until("the archived file is to be looked at", async () => {
    const now = new Date().toISOString();
    return (await stage.inspect((ledger) => ledger.finishedFiles.due("field", now, 1))).length > 0;
  });
  return { stage, again };
}

export async function laySceneAfter(before: { stage: Stage; again: Readings }, name: string): Promise<Scene> {
  const { rig } = before.stage;
  const stage = await rig.stage(name);
  await stage.copyFrom(before.stage);
  await rm(join(stage.drop, LEAVING));
  const [main, large, refused] = await Promise.all(
    ["main", "large", "refused"].map((one) => rig.variable(`${name}-${one}`)),
  );
  const expected = [
    readingsOf(main ?? 0, 180, 0),
    readingsOf(large ?? 0, 40, 1_000),
    readingsOf(refused ?? 0, 3, 2_000),
  ] as const;
  await stage.put("standard_main.csv", expected[0].csv);
  await stage.put("standard_large.csv", expected[1].csv);
  await stage.put("standard_refused.csv", `${expected[2].csv}2026-04-01T00:00:00Z,${REFUSED_VALUE},${refused}\n`);
  await stage.put("unguarded_lost.csv", readingsOf(99_999_999, 3).csv);
  await stage.put("standard_held.csv", readingsOf(99_999_998, 3).csv);
  await stage.put("standard_broken.csv", "date,value,variable_id\n2026-03-01T00:00:00Z,many,1\n");
  await stage.put("standard_empty.csv", "date,value,variable_id\n");
  await stage.put("standard_again.csv", before.again.csv);
  await stage.put("notes.txt", "nothing to see here");
  stage.lane.interfere = (push) => refuse(push, large ?? 0);
  return {
    stage,
    expected: [...expected, before.again],
    files: { delivered: 3, quarantined: 2, discarded: 1, held: 1, empty: 1, duplicate: 1, unmatched: 2 },
  };
}

function refuse(push: Push, largeVariable: number): Interference {
  const elements = JSON.parse(push.body) as { variableId: number; data: { value: number }[] }[];
  const tooLarge = elements.some(({ variableId, data }) => variableId === largeVariable && data.length > TOO_LARGE);
  if (tooLarge) return { status: 413, body: JSON.stringify({ title: "too large" }) };
  const refused = elements.some(({ data }) => data.some(({ value }) => value === REFUSED_VALUE));
  if (refused) return { status: 400, body: JSON.stringify({ title: "an impossible value" }) };
  return "pass";
}

/**
 * At any moment: a source file that was taken away belongs to a run whose batches are all accepted, or that
 * held none.
 */
export async function expectNothingArchivedEarly(stage: Stage, dropFolder = stage.drop): Promise<void> {
  const archived = (await stage.files(dropFolder)).filter((path) => path.startsWith("archive/"));
  if (archived.length === 0) return; // It may not even have had the time to make a ledger.
  await stage.inspect(async (ledger) => {
    for (const path of archived) {
      const runId = /\.([0-9a-z]{26})\.[a-z]+$/.exec(path)?.[1] ?? "";
      const run = await ledger.run(runId);
      if (run?.state === "cancelled") {
        // The same version as that of an earlier run, back after it was missing when it was to be finished.
        const all = (await ledger.trace(run.path)).flatMap(({ runs }) => runs.map((one) => one.run));
        const same = all.filter(({ id, sha256 }) => id !== run.id && sha256 === run.sha256);
        expect(same.map(({ state }) => state).join()).toMatch(/accepted|confirmed|discarded|empty/);
        continue;
      }
      const leaves = (await ledger.batches(runId)).filter((batch) => batch.state !== "split");
      const open = leaves.filter((batch) => batch.state !== "accepted").map((batch) => batch.operationId);
      expect({ path, state: run?.state, open }).toEqual({
        path,
        state: expect.stringMatching(/^(accepted|confirmed|discarded|empty)$/),
        open: [],
      });
      expect(leaves.length > 0 || run?.state === "empty", `${path} was delivered by batches`).toBe(true);
    }
  });
}

/** Every reading is stored once with its value, and nothing else is. */
export async function expectStoredOnce(rig: Rig, expected: readonly Readings[]): Promise<void> {
  for (const { variableId, points } of expected) expect(await rig.stored(variableId)).toEqual(points);
}

/** Every file is in one state, and their sum is what it should be. */
export async function expectStandings(stage: Stage, files: Scene["files"]): Promise<void> {
  await stage.inspect(async (ledger) => {
    expect((await ledger.tally(ALWAYS)).files).toEqual(files);
    const lying = await lyingPaths(ledger);
    expect(new Set(lying).size, `each path once: ${lying}`).toBe(lying.length);
  });
}

export async function lyingPaths(ledger: Ledger, drop = "field"): Promise<string[]> {
  const arrivals = await ledger.arrivalsIn(drop, ["settling", "unmatched", "duplicate", "matched"]);
  return arrivals.map((arrival) => arrival.path).sort();
}
