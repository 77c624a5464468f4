/**
 * The thread that applies operations in the order of their answers, so that pushes to one variable are stored in that order. What waits
 * is applied in groups: readings of many operations, written in the order of the table, cost a fraction of writing each operation alone.
 * It sleeps until told that something waits, and tells what it finished.
 */
import { parentPort, workerData } from "node:worker_threads";
import { isoInstant, systemClock } from "../../support/clock.ts";
import { wordsOf } from "../../support/errors.ts";
import { armFault, faultPoint } from "../../support/faults.ts";
import { ReadingColumns } from "../store/columns.ts";
import { isDatabaseTrouble, openIngestStore } from "../store/open.ts";
import type { GroupLimits, QueuedOperation } from "../store/store.ts";
import { applyOperations, OperationTimeout } from "./apply.ts";
import type { FromWorker, ToWorker, WorkerData } from "./ingestion.ts";

const RETRY_MS = 1_000;
/** What is in memory at one time; a larger operation is a group of its own, written in parts within its transaction. */
const GROUP: GroupLimits = { readings: 262_144, bytes: 32 * 1024 * 1024 };

const port = parentPort;
if (port === null) throw new Error("worker.ts runs as a worker thread only");
const { store: storeOptions, retention, discardsMax, horizon, fault } = workerData as WorkerData;
if (fault !== null) armFault(fault);

const store = await openIngestStore(storeOptions, retention, systemClock);
const tell = (message: FromWorker) => port.postMessage(message);
const columns = new ReadingColumns(GROUP.readings);
let stopping = false;
let wake: (() => void) | null = null;
let woken = true;

port.on("message", (message: ToWorker) => {
  if (message.type === "stop") stopping = true;
  woken = true;
  wake?.();
});

async function pause(ms: number | null): Promise<void> {
  if (woken || stopping) return;
  await new Promise<void>((resolve) => {
    const timer = ms === null ? null : setTimeout(resolve, ms);
    wake = () => {
      if (timer !== null) clearTimeout(timer);
      resolve();
    };
  });
  wake = null;
}

/** Messages (stop, above all) are heard between two operations. */
const breathe = () => new Promise<void>((resolve) => setImmediate(resolve));

async function drain(): Promise<void> {
  let after = 0;
  while (!stopping) {
    woken = false;
    try {
      const group = await store.next(after, GROUP);
      if (group.length === 0) await pause(store.pollMs);
      else await applyGroup(group);
      after = group.at(-1)?.seq ?? after;
    } catch (thrown) {
      if (!isDatabaseTrouble(thrown)) throw thrown;
      // A full disk or a busy store: nothing is lost, the operations wait.
      tell({ type: "trouble", message: wordsOf(thrown) });
      woken = false;
      await pause(RETRY_MS);
    }
    await breathe();
  }
}

async function applyGroup(group: readonly QueuedOperation[]): Promise<void> {
  faultPoint("hub.ingest.before");
  try {
    await store.apply(group, (transaction, operations) =>
      applyOperations(transaction, operations, { discardsMax, horizon, clock: systemClock, columns }),
    );
  } catch (thrown) {
    if (isDatabaseTrouble(thrown)) throw thrown;
    // A defect must not stop the queue: the operation that has it is found by applying each alone.
    if (group.length === 1) await fail(group, thrown);
    else for (const operation of group) await applyGroup([operation]);
    return;
  }
  faultPoint("hub.ingest.after");
  tell({ type: "finished", seqs: group.map(({ seq }) => seq), state: "done" });
}

/** Nothing of the operation is stored, and its outcome says why; of a defect the body is kept. */
async function fail(group: readonly QueuedOperation[], thrown: unknown): Promise<void> {
  const isDefect = !(thrown instanceof OperationTimeout);
  if (isDefect) for (const { seq } of group) tell({ type: "defect", seq, message: wordsOf(thrown) });
  const now = isoInstant(systemClock.now());
  const reason = isDefect ? `the hub failed to apply the operation: ${wordsOf(thrown)}` : thrown.message;
  await store.apply(group, async (_transaction, operations) =>
    operations.map(({ received }) => ({
      received,
      stored: 0,
      replaced: 0,
      discarded: [{ target: "(all)", reason, count: received }],
      started: now,
      finished: now,
    })),
  );
  tell({ type: "finished", seqs: group.map(({ seq }) => seq), state: isDefect ? "failed" : "done" });
}

await drain();
await store.close();
port.close();
