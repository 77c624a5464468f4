/** Every point at which a test can kill the gateway: those of the ledger, and those that the code names. */
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { FAULT_POINTS } from "#gateway/ledger/transitions.ts";
import { PROJECT } from "./processes.ts";

/** Points that the scene of `kill-scenario.ts` does not pass, and why. */
export const NOT_PASSED: Readonly<Record<string, string>> = {
  "arrival.settling":
    "an arrival begins so by `poll.recorded`; only one that changes while it lies unmatched comes back to it",
  "run.opened": "no container lies here; `containers.test.ts` has kills of its own",
  "run.emptied":
    "no file here has all its rows left out; `refused-rows.test.ts` has one, and `run.empty` is killed here",
  "run.unconfirmed": "the service of the scene can always be asked; `unconfirmed.test.ts` kills there",
  "arrival.skipped": "the drop of the scene processes what lies there at the first contact, and has no done-files",
  "batch.ready": "batches become ready by `run.mapped` and `batch.split`",
  "arrivals.forgotten": "nobody orders here; `crash.slow.test.ts` kills there",
  "pause.changed": "nobody orders here; `crash.slow.test.ts` kills there",
  "event.added": "a file of a temporary name has an event; none lies here",
};

/** Points of other components, and the test that kills there, by the first that fits; it must name them. */
const ELSEWHERE: Readonly<Record<string, string>> = {
  "hub.ingest.failed": "test/hub/crash.slow.test.ts",
  "hub.pack.": "test/hub/crash.slow.test.ts",
  "hub.calculation.": "test/hub/calculated/kills.slow.test.ts",
  "hub.alarm.": "test/hub/alarms/kills.slow.test.ts",
  "hub.file.": "test/hub/files/crash.slow.test.ts",
  "hub.form.": "test/hub/structure-kills.slow.test.ts",
  "hub.removal.": "test/hub/structure-kills.slow.test.ts",
  "hub.mail.": "test/hub/invitation.slow.test.ts",
  "hub.transfer.": "test/platform/upload-kills.slow.test.ts",
  "hub.": "test/e2e/hub-kill.test.ts",
  "intake.sharing": "test/e2e/intake-nodes.test.ts",
  "intake.": "test/e2e/intake.test.ts",
  "structure.": "test/migration/provision.slow.test.ts",
  "drops.list.": "test/runs/list-kills.test.ts",
  "spool.list.": "test/runs/list-kills.test.ts",
};

/** Points of the code outside the ledger. */
export const NAMED: readonly string[] = [
  ...new Set(
    globSync("src/**/*.ts", { cwd: PROJECT }).flatMap((file) =>
      [...readFileSync(join(PROJECT, file), "utf8").matchAll(/faultPoint\("([^"]+)"\)/g)].map(
        (match) => match[1] ?? "",
      ),
    ),
  ),
];

/** The test that kills at this point, when it is not one of the gateway's way of a file. */
export function elsewhere(point: string): string | undefined {
  return Object.entries(ELSEWHERE).find(([prefix]) => point.startsWith(prefix))?.[1];
}

function isPassed(point: string): boolean {
  return !Object.keys(NOT_PASSED).some((what) => point === `ledger.${what}.before` || point === `ledger.${what}.after`);
}

/** Those that files on their way pass. */
export const POINTS: readonly string[] = [...FAULT_POINTS, ...NAMED].filter(
  (point) => isPassed(point) && elsewhere(point) === undefined,
);
