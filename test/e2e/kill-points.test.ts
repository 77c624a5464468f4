/** The gateway, as a real process, killed at every named point as a power cut would, and started again. */
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { FAULT_POINTS } from "../../src/ledger/states.ts";
import {
  expectNothingArchivedEarly,
  expectStandings,
  expectStoredOnce,
  laySceneAfter,
  lyingPaths,
  prepareBefore,
} from "./kill-scenario.ts";
import { PROJECT } from "./processes.ts";
import { Rig } from "./rig.ts";
import { atMost, PATIENTLY } from "./waiting.ts";

vi.setConfig(PATIENTLY);

/** Points that the scene does not pass, and why. */
const NOT_PASSED: Readonly<Record<string, string>> = {
  "arrival.settling":
    "an arrival begins so by `poll.recorded`; only one that changes while it lies unmatched comes back to it",
  "run.opened": "no container lies here; `containers.test.ts` has kills of its own",
  "arrival.skipped":
    "the drop of the scene processes what lies there at the first contact, and has no done-files",
  "run.held": "nothing holds a run yet",
  "batch.ready": "batches become ready by `run.mapped` and `batch.split`",
  "arrivals.forgotten": "nobody orders here; `crash.test.ts` kills there",
  "pause.changed": "nobody orders here; `crash.test.ts` kills there",
  "event.added": "a file of a temporary name has an event; none lies here",
};

const NAMED = [
  ...new Set(
    globSync("src/**/*.ts", { cwd: PROJECT }).flatMap((file) =>
      [...readFileSync(join(PROJECT, file), "utf8").matchAll(/faultPoint\("([^"]+)"\)/g)].map(
        (match) => match[1] ?? "",
      ),
    ),
  ),
];

/** Points of other components, and the test that kills there; it must name them. */
const ELSEWHERE: Readonly<Record<string, string>> = {
  "hub.": "hub-kill.test.ts",
  "intake.": "intake.test.ts",
};
const elsewhere = (point: string) =>
  Object.entries(ELSEWHERE).find(([prefix]) => point.startsWith(prefix))?.[1];

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

const unreached = (point: string) =>
  Object.keys(NOT_PASSED).some(
    (what) => point === `ledger.${what}.before` || point === `ledger.${what}.after`,
  );
const points = [
  ...[...FAULT_POINTS, ...NAMED].filter((point) => !unreached(point) && elsewhere(point) === undefined),
  ...LATER,
];

let rig: Rig;
let before: Awaited<ReturnType<typeof prepareBefore>>;
const inTurn = atMost(2);

beforeAll(async () => {
  rig = await Rig.start();
  before = await prepareBefore(rig);
});
afterAll(() => rig.close());

test.each(NAMED.filter((point) => elsewhere(point) !== undefined))("another test kills at %s", (point) => {
  const text = readFileSync(join(PROJECT, "test/e2e", elsewhere(point) ?? ""), "utf8");
  expect(text).toContain(point);
});

test("the scene without a fault ends as the other tests expect", async () => {
  const { stage, expected, files } = await laySceneAfter(before, "unharmed");
  const { stdout, code } = await stage.untilIdle();
  expect(code).toBe(1); // Something needs a person.
  expect(JSON.parse(stdout).files).toMatchObject({ quarantined: 2, discarded: 1 });
  await expectStoredOnce(rig, expected);
  await expectStandings(stage, files);
  expect(await stage.inspect((ledger) => lyingPaths(ledger))).toEqual([
    "notes.txt",
    "standard_again.csv",
    "standard_broken.csv",
    "standard_refused.csv",
  ]);
});

describe.concurrent("a gateway killed at a fault point loses nothing and delivers nothing twice", () => {
  test.each(points)("%s", { timeout: 300_000 }, (point) =>
    inTurn(async () => {
      const { stage, expected, files } = await laySceneAfter(before, point.replaceAll(/[^a-z0-9-]/g, "-"));
      const killed = await stage.untilIdle(point);
      expect(killed.signal, `${point} was passed: ${killed.stderr}`).toBe("SIGKILL");
      await expectNothingArchivedEarly(stage);

      const { code, stderr } = await stage.untilIdle();
      expect(code, stderr).toBe(1); // Something needs a person.
      expect(stage.lane.conflicts).toEqual([]);
      await expectStoredOnce(rig, expected);
      await expectStandings(stage, files);
      await expectNothingArchivedEarly(stage);
    }),
  );
});
