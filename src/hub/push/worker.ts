/**
 * The thread that applies operations, one after another in the order of their answers, so that pushes to one variable are stored
 * in that order. It sleeps until told that something waits, and tells what it finished.
 */
import { parentPort, workerData } from "node:worker_threads";
import { isoInstant, systemClock } from "../../support/clock.ts";
import { wordsOf } from "../../support/errors.ts";
import { armFault, faultPoint } from "../../support/faults.ts";
import { isDatabaseTrouble, openIngestStore } from "../store/open.ts";
import type { IngestStore, QueuedOperation } from "../store/store.ts";
import { applyOperation } from "./apply.ts";
import { readPushBody } from "./body.ts";
import type { FromWorker, ToWorker, WorkerData } from "./ingestion.ts";

const RETRY_MS = 1_000;

const port = parentPort;
if (port === null) throw new Error("worker.ts runs as a worker thread only");
const { store: storeOptions, versionsMax, discardsMax, fault } = workerData as WorkerData;
if (fault !== null) armFault(fault);

const store = await openIngestStore(storeOptions, versionsMax, systemClock);
const tell = (message: FromWorker) => port.postMessage(message);
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
    const operation = await store.next(after);
    if (operation === null) {
      await pause(null);
      continue;
    }
    try {
      tell({ type: "finished", seq: operation.seq, state: await applyOne(store, operation) });
      after = operation.seq;
    } catch (thrown) {
      if (!isDatabaseTrouble(thrown)) throw thrown;
      // A full disk or a busy store: nothing is lost, the operation waits.
      tell({ type: "trouble", seq: operation.seq, message: wordsOf(thrown) });
      woken = false;
      await pause(RETRY_MS);
    }
    await breathe();
  }
}

async function applyOne(into: IngestStore, operation: QueuedOperation): Promise<"done" | "failed"> {
  const { seq, accountId, received } = operation;
  faultPoint("hub.ingest.before");
  try {
    await into.apply(seq, (transaction) =>
      applyOperation(transaction, accountId, readPushBody(operation.body), {
        discardsMax,
        clock: systemClock,
      }),
    );
    faultPoint("hub.ingest.after");
    return "done";
  } catch (thrown) {
    if (isDatabaseTrouble(thrown)) throw thrown;
    // A defect must not stop the queue: the operation fails with its reason, and its body is kept.
    tell({ type: "defect", seq, message: wordsOf(thrown) });
    const now = isoInstant(systemClock.now());
    const reason = `the hub failed to apply the operation: ${wordsOf(thrown)}`;
    const discarded = [{ target: "(all)", reason, count: received }];
    await into.apply(seq, async () => ({
      received,
      stored: 0,
      replaced: 0,
      discarded,
      started: now,
      finished: now,
    }));
    return "failed";
  }
}

await drain();
await store.close();
port.close();
