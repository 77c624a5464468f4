/**
 * Jobs of the hub beside requests, by the file that runs them: each has a test that shows what one account can make
 * another one wait, or a reason why none can.
 */
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";

export type Job = { readonly file: string; readonly test: string } | { readonly alone: string };

const ROOT = join(import.meta.dirname, "../../..");
const FAIR_QUEUE = {
  file: "test/support/fair-queue.test.ts",
  test: "one of another caller is served after at most one of a thousand that came before",
};
const SHARES = {
  file: "test/hub/job-turns.test.ts",
  test: "deliveries of an account with a thousand that wait leave a place for another account",
};
const SPARSE = "one short query or step at an interval, whatever waits";
const RESTARTS = "waits alone before it starts its thread again";

export const JOBS: Readonly<Record<string, Job>> = {
  "src/hub/alarms/dispatch.ts": {
    file: "test/hub/alarms/dispatch.test.ts",
    test: "of an account with a thousand dispatches that are due first, another account waits for one",
  },
  "src/hub/alarms/service.ts": {
    file: "test/hub/alarms/evaluation-turns.test.ts",
    test: "an alarm of an account waits for one slice of those of another, whatever changes wait there",
  },
  "src/hub/calculated/engines/expressions/expression-engine.ts": {
    file: "test/hub/calculated/engines/expressions/limits.test.ts",
    test: "an expression over many rows holds that of another account back neither before nor behind it",
  },
  "src/hub/calculated/engines/r/webr-process.ts": { alone: "watches the memory of its own process" },
  "src/hub/calculated/recalculation/recalculation.ts": { alone: RESTARTS },
  "src/hub/calculated/recalculation/worker.ts": {
    file: "test/hub/job-turns.test.ts",
    test: "calculations of an account with many that are due hold one of another account for four at most",
  },
  "src/hub/data/rollups/builder.ts": {
    file: "test/hub/job-turns.test.ts",
    test: "rollups of an account with a thousand variables hold those of another account for two at most",
  },
  "src/hub/deliveries/shares.ts": SHARES,
  "src/hub/events/delivery.ts": SHARES,
  "src/hub/events/watch.ts": {
    file: "test/hub/events/watch.test.ts",
    test: "readers of one account that wait leave room for those of another",
  },
  "src/hub/files/folder-blobs.ts": { alone: "each removal waits for itself" },
  "src/hub/files/scan.ts": {
    file: "test/hub/files/scan.slow.test.ts",
    test: "scans of one account that hang hold no file of another account back, and turns are taken",
  },
  "src/hub/files/service.ts": { alone: "removes bytes of broken-off uploads, for which no request waits" },
  "src/hub/forms/unfinished.ts": {
    file: "test/hub/form-slices.test.ts",
    test: "is changed while another account creates a site and pushes: both are done within two slices",
  },
  "src/hub/mail/delivery.ts": {
    file: "test/hub/mail/delivery.test.ts",
    test: "mails of accounts are taken by turns, however many one account has",
  },
  "src/hub/master-data/service.ts": {
    file: "test/platform/master-data.test.ts",
    test: "of one account waits for at most one of the many of another account",
  },
  "src/hub/purge.ts": { alone: "removes old rows in small transactions, for which no request waits" },
  "src/hub/push/ingestion.ts": {
    file: "test/hub/job-turns.test.ts",
    test: "pushes of an account with a thousand that wait hold one of another account for two groups at most",
  },
  "src/hub/push/webhooks.ts": SHARES,
  "src/hub/quality/service.ts": {
    file: "test/hub/quality-turns.test.ts",
    test: "a report of an account begins at once, whatever number of those of another account runs and waits",
  },
  "src/hub/store/postgres/apart.ts": FAIR_QUEUE,
  "src/hub/store/sqlite/apart.ts": FAIR_QUEUE,
  "src/hub/transfer/connections.ts": { alone: SPARSE },
  "src/hub/transfer/folders.ts": { alone: "removes old uploads, for which no request waits" },
  "src/app/platform/file-updates.ts": { alone: "compares the files of each account in slices, and each of them once" },
  "src/app/platform/new-accounts.ts": { alone: SPARSE },
  "src/app/platform/outcomes.ts": {
    file: "test/hub/job-turns.test.ts",
    test: "outcomes of an account with a thousand that wait hold one of another account for no question more",
  },
  "src/core/sign-in/passwords.ts": FAIR_QUEUE,
  "src/mapping/workers/pool.ts": {
    file: "test/platform/mapping-turns.slow.test.ts",
    test: "a slow pattern in the settings of one account delays no file of another account",
  },
};

/** Beside the folders of the hub: what gateways have, too. */
const SHARED = ["src/core/sign-in/passwords.ts", "src/mapping/workers/pool.ts"];
/** Code that continues beside requests: it waits for a time, or has a queue or threads of its own. */
const BESIDE = /\.sleep\(|\bsetInterval\(|new FairQueue\b|createShares[(<]|createWorkerPool[(<]|new Piscina\b/;

/** The files with such code. */
export function filesOfJobs(): readonly string[] {
  const files = ["src/hub", "src/app/platform"].flatMap((folder) =>
    globSync("**/*.ts", { cwd: join(ROOT, folder) }).map((file) => `${folder}/${file}`),
  );
  return [...files, ...SHARED].filter((file) => BESIDE.test(readFileSync(join(ROOT, file), "utf8"))).sort();
}

/** Entries whose test is not there. */
export function missingTests(): readonly string[] {
  return Object.entries(JOBS).flatMap(([job, entry]) => {
    if ("alone" in entry) return [];
    const text = readFileSync(join(ROOT, entry.file), "utf8");
    return text.includes(`test("${entry.test}"`) ? [] : [`${job}: ${entry.file} has no test "${entry.test}"`];
  });
}
