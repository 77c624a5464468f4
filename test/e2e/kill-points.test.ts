/** The gateway, as a real process, killed at every named point as a power cut would, and started again. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { elsewhere, NAMED, POINTS } from "./kill-list.ts";
import {
  expectNothingArchivedEarly,
  expectStandings,
  expectStoredOnce,
  laySceneAfter,
  lyingPaths,
  prepareBefore,
  type Scene,
} from "./kill-scenario.ts";
import { type Ended, PROJECT } from "./processes.ts";
import { Rig } from "./rig.ts";
import { atMost, PATIENTLY } from "./wait.ts";

vi.setConfig(PATIENTLY);

/** Passed several times in one scene: also killed at a later time. */
const LATER = [
  "delivery.before-send#3",
  "delivery.after-answer#4",
  "delivery.after-accept#3",
  "delivery.after-split#2",
  "ledger.batch.sending.after#3",
  "ledger.batch.accepted.before#2",
  "ledger.outcome.recorded.before#3",
  "ledger.run.mapped.after#2",
  "ledger.run.noted.after#2",
  "drops.finish.after-rename#2",
];

/** About when a file comes past: the earlier points of a chain leave the more to the later ones. */
const ORDER = [
  "finished.changed",
  "poll",
  "arrival.settling",
  "arrival.unmatched",
  "arrival.matched",
  "run.claimed",
  "run.fetch.stored",
  "run.fetched",
  "arrival.duplicate",
  "run.cancelled",
  "run.mapping",
  "run.map.segment",
  "run.empty",
  "run.mapped",
  "run.held",
  "run.delivering",
  "batch.sending",
  "delivery.before-send",
  "delivery.after-answer",
  "batch.split",
  "delivery.after-split",
  "batch.accepted",
  "delivery.after-accept",
  "batch.rejected",
  "run.quarantined",
  "run.accepted",
  "run.noted",
  "drops.finish",
  "outcome.recorded",
  "run.confirmed",
  "run.discarded",
  "arrivals.pruned",
];
const rank = (point: string) => ORDER.findIndex((what) => point.replace("ledger.", "").startsWith(what));
const CHAINS = 8;
const points = [...POINTS, ...LATER].toSorted((one, other) => rank(one) - rank(other));
/** Each goes through the life of a file. */
const chains = Array.from({ length: CHAINS }, (_, start) => points.filter((_point, index) => index % CHAINS === start));

let rig: Rig;
let before: Awaited<ReturnType<typeof prepareBefore>>;
const inTurn = atMost(2);

beforeAll(async () => {
  rig = await Rig.start();
  before = await prepareBefore(rig);
});
afterAll(() => rig.close());

test.each(NAMED.filter((point) => elsewhere(point) !== undefined))("another test kills at %s", (point) => {
  const text = readFileSync(join(PROJECT, elsewhere(point) ?? ""), "utf8");
  expect(text).toContain(point);
});

test("the scene without a fault ends as the other tests expect", async () => {
  const { stage, expected, files } = await laySceneAfter(before, "unharmed");
  const { stdout, code } = await stage.untilIdle();
  expect(code).toBe(1); // Something needs a person.
  expect(JSON.parse(stdout).files).toMatchObject({ quarantined: 2, discarded: 1, held: 1 });
  await expectStoredOnce(rig, expected);
  await expectStandings(stage, files);
  expect(await stage.inspect((ledger) => lyingPaths(ledger))).toEqual([
    "notes.txt",
    "standard_again.csv",
    "standard_broken.csv",
    "standard_held.csv",
    "standard_refused.csv",
  ]);
});

describe.concurrent("a gateway killed at each fault point in turn loses nothing and delivers nothing twice", () => {
  test.each(chains.map((chain, index) => ({ chain, index, names: chain.join(", ") })))(
    "$names",
    { timeout: 300_000 },
    ({ chain, index }) => inTurn(() => playChain(chain, `chain-${index}`)),
  );
});

/**
 * Each life is killed at the next point, and the next life goes on where it stood. One that does not come
 * past its point, since what lay there is done, has to end as one without a fault; then the point is tried in
 * a new scene, where it must be passed.
 */
async function playChain(chain: readonly string[], name: string): Promise<void> {
  let scenes = 1;
  let scene = await laySceneAfter(before, `${name}-${scenes}`);
  let isNew = true;
  for (const point of chain) {
    let ended = await scene.stage.untilIdle(point);
    if (ended.signal === null && !isNew) {
      await expectEnd(scene, ended);
      scenes += 1;
      scene = await laySceneAfter(before, `${name}-${scenes}`);
      ended = await scene.stage.untilIdle(point);
    }
    expect(ended.signal, `${point} was passed: ${ended.stderr}`).toBe("SIGKILL");
    await expectNothingArchivedEarly(scene.stage);
    isNew = false;
  }
  await expectEnd(scene, await scene.stage.untilIdle());
}

async function expectEnd({ stage, expected, files }: Scene, { code, stderr }: Ended): Promise<void> {
  expect(code, stderr).toBe(1); // Something needs a person.
  expect(stage.lane.conflicts).toEqual([]);
  await expectStoredOnce(rig, expected);
  await expectStandings(stage, files);
  await expectNothingArchivedEarly(stage);
}
