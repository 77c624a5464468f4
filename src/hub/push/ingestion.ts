/** The main thread's side of ingestion: starts the worker, wakes it, notes what it finished. */
import { Worker } from "node:worker_threads";
import type { Clock } from "../../support/clock.ts";
import type { Logger } from "../../support/log.ts";
import type { HubOptions } from "../options.ts";
import type { OperationStore } from "../store/store.ts";
import type { Retention } from "../store/version-plan.ts";

export interface WorkerData {
  readonly store: HubOptions["store"];
  readonly retention: Retention;
  readonly discardsMax: number;
  readonly horizon: Horizon;
  /** A fault point to arm in the thread, for tests; null ordinarily. */
  readonly fault: string | null;
}

/** How far in the future readings may be dated, in milliseconds. */
export interface Horizon {
  readonly byDefault: number;
  /** By the id of the account. */
  readonly byAccount: ReadonlyMap<number, number>;
}

export type ToWorker =
  | { readonly type: "wake" }
  /** An operation that was applied once waits again, before those that were looked at since. */
  | { readonly type: "again" }
  | { readonly type: "stop" };
export type FromWorker =
  | { readonly type: "finished"; readonly seqs: readonly number[] }
  | { readonly type: "trouble"; readonly message: string }
  | {
      readonly type: "failed";
      readonly seq: number;
      readonly operationId: string;
      readonly message: string;
    };

export interface Ingestion {
  /** Something waits in the queue. */
  wake(): void;
  /** A failed operation waits again. */
  again(): void;
  /** The operation in hand is completed first. */
  close(): Promise<void>;
}

const NOTE_MS = 10;
const RESTART_MS = 1_000;

export interface IngestionParts {
  readonly options: HubOptions;
  readonly operations: OperationStore;
  readonly log: Logger;
  readonly clock: Clock;
  readonly fault: string | null;
  /** Called after outcomes have been noted: webhooks may be due. */
  onFinished(): void;
}

export function startIngestion(parts: IngestionParts): Ingestion {
  const { log, clock } = parts;
  const notes = createNotes(parts);
  const closing = new AbortController();
  let worker = startWorker(parts, notes.add);

  /** A thread that dies is replaced; what it had in hand still stands in the queue. */
  const watch = async (): Promise<void> => {
    while (!closing.signal.aborted) {
      const code = await exitOf(worker);
      if (closing.signal.aborted) return;
      log.error({ code }, "the ingestion thread ended; it is started again");
      if (await clock.sleep(RESTART_MS, closing.signal)) worker = startWorker(parts, notes.add);
    }
  };
  const watching = watch();

  return {
    wake: () => worker.postMessage({ type: "wake" } satisfies ToWorker),
    again: () => worker.postMessage({ type: "again" } satisfies ToWorker),
    async close() {
      closing.abort();
      worker.postMessage({ type: "stop" } satisfies ToWorker);
      await watching;
      await notes.flush();
    },
  };
}

function exitOf(worker: Worker): Promise<number> {
  return new Promise((resolve) => worker.once("exit", resolve));
}

function startWorker(
  { options, log, fault }: IngestionParts,
  note: (seqs: readonly number[]) => void,
): Worker {
  const { store, limits, customerLimits, accounts } = options;
  const limitOf = (name: "versions" | "futureHorizon") => ({
    byDefault: customerLimits[name] ?? limits[name],
    byAccount: new Map(
      accounts.flatMap(({ id, limits: own }) => (own?.[name] === undefined ? [] : [[id, own[name]]])),
    ),
  });
  const retention: Retention = limitOf("versions");
  const horizon: Horizon = limitOf("futureHorizon");
  const workerData: WorkerData = { store, retention, discardsMax: limits.discards, horizon, fault };
  // Compiled, this file is JavaScript and so is the worker beside it.
  const file = import.meta.url.endsWith(".ts") ? "./worker.ts" : "./worker.js";
  const worker = new Worker(new URL(file, import.meta.url), { workerData });
  worker.on("error", (thrown) => log.error({ err: thrown }, "the ingestion thread failed"));
  worker.on("message", (message: FromWorker) => {
    if (message.type === "finished") note(message.seqs);
    else if (message.type === "trouble")
      log.warn({ cause: message.message }, "operations wait: the store refuses them for now");
    else {
      const { seq, operationId, message: cause } = message;
      log.error({ seq, operationId, cause }, "an operation failed; its body is kept, to be applied again");
      note([seq]);
    }
  });
  return worker;
}

/** Notes several finished operations in one commit. Losing a note is harmless: the worker finds the outcome and tells again. */
function createNotes({ operations, log, onFinished }: IngestionParts) {
  let finished: number[] = [];
  let timer: NodeJS.Timeout | null = null;
  let writing: Promise<void> = Promise.resolve();
  const flush = (): Promise<void> => {
    if (timer !== null) clearTimeout(timer);
    timer = null;
    writing = writing.then(async () => {
      const batch = finished;
      finished = [];
      if (batch.length === 0) return;
      try {
        await operations.finish(batch);
        onFinished();
      } catch (thrown) {
        log.error({ err: thrown }, "finished operations could not be noted; this is tried again");
        finished = [...batch, ...finished];
        timer ??= setTimeout(flush, RESTART_MS);
      }
    });
    return writing;
  };
  return {
    add(seqs: readonly number[]): void {
      finished.push(...seqs);
      timer ??= setTimeout(flush, NOTE_MS);
    },
    flush,
  };
}
