/**
 * The thread that applies operations of each account in the order of their acceptance, so that pushes to one variable
 * are stored in that order, and the accounts by turns. Waiting operations are applied in groups: readings of many
 * operations, written in the order of the table, cost a fraction of writing each operation alone. The thread sleeps
 * until it is woken, and reports each finished operation.
 */
import { parentPort, workerData } from "node:worker_threads";
import { isoInstant, systemClock } from "#core/clock.ts";
import { wordsOf } from "#core/errors.ts";
import { armFault, faultPoint } from "#core/faults.ts";
import { isDatabaseTrouble, isFullDisk } from "#core/sql/trouble.ts";
import { ReadingColumns } from "../store/columns.ts";
import type { GroupLimits, IngestReport, IngestTransaction, QueuedOperation } from "../store/ingest.ts";
import { openIngestStore } from "../store/open.ts";
import type { Outcome } from "../store/operations.ts";
import { afterFault, applyOperations, OperationTimeout } from "./apply.ts";
import { AGAIN, type AppliedReadings, type FromWorker, STOP, WAKES, WATCHED, type WorkerData } from "./ingestion.ts";
import { Touched } from "./touched.ts";

const RETRY_MS = 1_000;
/** Limit on the group in memory; a larger operation is a group of its own, written in parts within its transaction. */
const GROUP: GroupLimits = { readings: 524_288, bytes: 64 * 1024 * 1024 };

const port = parentPort;
if (port === null) throw new Error("worker.ts runs as a worker thread only");
const { store: storeOptions, retention, discardsMax, horizon, fault, words } = workerData as WorkerData;
if (fault !== null) armFault(fault);

const store = await openIngestStore(storeOptions, retention, systemClock);
const report = (message: FromWorker) => port.postMessage(message);
const columns = new ReadingColumns(GROUP.readings);
const touched = new Touched();
/** Whether the group that is applied began while points were watched. */
let isNoted = false;
const isStopping = () => Atomics.load(words, STOP) === 1;

/** Returns at once when the thread was woken since `wakes` were counted. */
async function pause(wakes: number, ms: number | null): Promise<void> {
  if (isStopping()) return;
  const waited = Atomics.waitAsync(words, WAKES, wakes, ms ?? Number.POSITIVE_INFINITY);
  if (waited.async) await waited.value;
}

/** The client library of the database has its turn between two groups. */
const yieldTurn = () => new Promise<void>((resolve) => setImmediate(resolve));

/** The only task of the thread: applies operations until it is stopped, and closes the store. */
export async function perform(): Promise<void> {
  let after = 0;
  while (!isStopping()) {
    const wakes = Atomics.load(words, WAKES);
    if (Atomics.exchange(words, AGAIN, 0) === 1) after = 0;
    try {
      const group = await store.next(after, GROUP);
      if (group.length > 0) await applyGroup(group);
      const began = systemClock.monotonicMs();
      const hasPacked = await pack();
      // Other writers have their turn after each part.
      if (group.length === 0) await pause(wakes, hasPacked ? systemClock.monotonicMs() - began : store.pollMs);
      after = group.at(-1)?.seq ?? after;
    } catch (thrown) {
      if (!isDatabaseTrouble(thrown)) throw thrown;
      // A full disk or a busy store: nothing is lost, the operations wait.
      report({ type: "trouble", message: wordsOf(thrown), isFullDisk: isFullDisk(thrown) });
      await pause(Atomics.load(words, WAKES), RETRY_MS);
    }
    await yieldTurn();
  }
  await store.close();
}

/** False: nothing was packed. */
async function pack(): Promise<boolean> {
  try {
    return await store.pack();
  } catch (thrown) {
    // The points stay as they are, and the queue continues.
    report({ type: "not packed", message: wordsOf(thrown) });
    return false;
  }
}

async function applyGroup(group: readonly QueuedOperation[]): Promise<void> {
  faultPoint("hub.ingest.before");
  let outcomes: readonly Outcome[] = [];
  let effects: IngestReport;
  try {
    effects = await store.apply(group, async (transaction, operations) => {
      outcomes = await applyOperations(noting(transaction), operations, {
        discardsMax,
        horizon,
        clock: systemClock,
        columns,
      });
      return outcomes;
    });
  } catch (thrown) {
    if (isDatabaseTrouble(thrown)) throw thrown;
    // A defect must not stop the queue.
    const [first, second] = group;
    if (first !== undefined && second === undefined) await fail(first, thrown);
    else for (const part of afterFault(group, thrown)) await applyGroup(part);
    return;
  }
  faultPoint("hub.ingest.after");
  report({
    type: "finished",
    seqs: group.map(({ seq }) => seq),
    readings: readingsOf(outcomes),
    effects,
    touched: isNoted ? touched.report() : "unknown",
  });
}

/** Costs nothing where points are not watched. The work may be repeated: what an earlier attempt wrote is forgotten. */
function noting(transaction: IngestTransaction): IngestTransaction {
  touched.clear();
  isNoted = Atomics.load(words, WATCHED) !== 0;
  if (!isNoted) return transaction;
  return {
    findVariable: transaction.findVariable,
    written: transaction.written,
    outputOf: transaction.outputOf,
    async write(readings) {
      const written = await transaction.write(readings);
      touched.add(readings);
      return written;
    },
  };
}

function readingsOf(outcomes: readonly Outcome[]): AppliedReadings {
  const sum = (of: (outcome: Outcome) => number) => outcomes.reduce((total, outcome) => total + of(outcome), 0);
  return { stored: sum(({ stored }) => stored), discarded: sum(({ received, stored }) => received - stored) };
}

/** Nothing of the operation is stored, its outcome says why, and its body is kept so that it can be applied again. */
async function fail(operation: QueuedOperation, thrown: unknown): Promise<void> {
  const message = wordsOf(thrown);
  const reason = thrown instanceof OperationTimeout ? message : `the hub failed to apply the operation: ${message}`;
  const now = isoInstant(systemClock.now());
  await store.apply(
    [operation],
    async (_transaction, operations) =>
      operations.map(({ received }) => ({
        received,
        stored: 0,
        replaced: 0,
        discarded: [{ target: "(all)", reason, count: received }],
        started: now,
        finished: now,
      })),
    "failed",
  );
  faultPoint("hub.ingest.failed");
  const { seq, operationId } = operation;
  report({ type: "failed", seq, operationId, message });
}
