/**
 * The main thread's side of ingestion: starts the worker, wakes it, records the operations that it finished. The worker
 * is a piscina pool of one thread with one task, which ends with the hub.
 */
import { fileURLToPath } from "node:url";
import { Piscina } from "piscina";
import { type Clock, isoInstant } from "#core/clock.ts";
import type { Logger } from "#core/log.ts";
import { createRareWarning } from "#core/rare-warnings.ts";
import { besideModule } from "#core/threads/beside.ts";
import { targetWords } from "#wire/index.ts";
import type { HubOptions } from "../options.ts";
import type { ReadingColumns } from "../store/columns.ts";
import type { DamagedPoints, IngestReport } from "../store/ingest.ts";
import type { OperationStore } from "../store/operations.ts";
import type { Retention } from "../store/records.ts";
import type { TouchedPoints } from "./touched.ts";

export interface WorkerData {
  readonly store: HubOptions["store"];
  readonly retention: Retention;
  readonly discardsMax: number;
  readonly horizon: Horizon;
  /** A fault point to arm in the thread, for tests; otherwise null. */
  readonly fault: string | null;
  readonly words: Int32Array;
}

/** Limit on dates in the future, in milliseconds. */
export interface Horizon {
  readonly byDefault: number;
  /** Limits by the id of the account. */
  readonly byAccount: ReadonlyMap<number, number>;
}

/** Indexes in the memory that both sides share. */
export const STOP = 0;
/** An operation that was applied before waits again, ahead of operations that were read since. */
export const AGAIN = 1;
/** The number of times that the thread was woken. */
export const WAKES = 2;
/** Not 0: the hub watches points, and receives which variables were written. */
export const WATCHED = 3;

export type FromWorker =
  | {
      readonly type: "finished";
      readonly seqs: readonly number[];
      readonly readings: AppliedReadings;
      readonly effects: IngestReport;
      /** Null: none was written; "unknown" for a group that began when points were not watched. */
      readonly touched: TouchedPoints | "unknown" | null;
    }
  | { readonly type: "trouble"; readonly message: string; readonly isFullDisk: boolean }
  | { readonly type: "not packed"; readonly message: string }
  | {
      readonly type: "failed";
      readonly seq: number;
      readonly operationId: string;
      readonly message: string;
    };

/** Readings of the operations that were applied, by what became of them. */
export interface AppliedReadings {
  readonly stored: number;
  readonly discarded: number;
}

type OnTouched = (touched: TouchedPoints | "unknown") => void;

export interface Ingestion {
  /** Called when an operation waits in the queue. */
  wake(): void;
  /** Called when a failed operation waits again. */
  again(): void;
  /**
   * Calls `onTouched` from now on after each group of operations that wrote points, or may have since it began before;
   * null: points are not watched.
   */
  watch(onTouched: OnTouched | null): void;
  /** Completes the current operation first. */
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
  onApplied(readings: AppliedReadings): void;
  /** Called after a group was applied: calculations may be due. */
  onEffects?(effects: IngestReport): void;
  /** Called after outcomes were recorded: webhooks may be due. */
  onFinished(): void;
}

export function startIngestion(parts: IngestionParts): Ingestion {
  const { log, clock } = parts;
  const recorder = createRecorder(parts);
  const words = new Int32Array(new SharedArrayBuffer(16));
  const watcher: Watcher = { onTouched: null };
  const closing = new AbortController();
  const wake = (): void => {
    Atomics.add(words, WAKES, 1);
    Atomics.notify(words, WAKES);
  };

  /** A thread that failed is replaced; its current operation is still in the queue. */
  const watch = async (): Promise<void> => {
    while (!closing.signal.aborted) {
      const pool = startPool(parts, words, recorder.add, watcher);
      try {
        await pool.run();
      } catch (thrown) {
        log.error({ err: thrown }, "the ingestion thread failed; it is started again");
      }
      // Its last reports are received before it has ended.
      await pool.destroy();
      await clock.sleep(RESTART_MS, closing.signal);
    }
  };
  const watching = watch();

  return {
    wake,
    again() {
      Atomics.store(words, AGAIN, 1);
      wake();
    },
    watch(onTouched) {
      watcher.onTouched = onTouched;
      Atomics.store(words, WATCHED, onTouched === null ? 0 : 1);
    },
    async close() {
      Atomics.store(words, STOP, 1);
      closing.abort();
      wake();
      await watching;
      await recorder.flush();
    },
  };
}

interface Watcher {
  onTouched: OnTouched | null;
}

function startPool(
  { options, log, fault, onApplied, onEffects }: IngestionParts,
  words: Int32Array,
  note: (seqs: readonly number[]) => void,
  watcher: Watcher,
): Piscina<void, void> {
  const { store, limits, customerLimits, accounts } = options;
  const limitOf = (name: "versions" | "futureHorizon") => ({
    byDefault: customerLimits[name] ?? limits[name],
    byAccount: new Map(accounts.flatMap(({ id, limits: own }) => (own?.[name] === undefined ? [] : [[id, own[name]]]))),
  });
  const retention: Retention = limitOf("versions");
  const horizon: Horizon = limitOf("futureHorizon");
  const workerData: WorkerData = { store, retention, discardsMax: limits.discards, horizon, fault, words };
  const pool = new Piscina<void, void>({
    filename: fileURLToPath(besideModule(import.meta.url, "worker")),
    name: "perform",
    minThreads: 1,
    maxThreads: 1,
    workerData,
    recordTiming: false,
  });
  // The replacement of a thread that failed has no task: its pool is about to end.
  pool.on("error", (thrown) => log.debug({ err: thrown }, "the ingestion thread failed without a task"));
  const notPacked = createRareWarning(log, "attempts", "points could not be packed; they stay as they are");
  pool.on("message", (message: FromWorker) => {
    if (message.type === "finished") {
      onApplied(message.readings);
      onEffects?.(message.effects);
      reportDamaged(log, message.effects);
      if (message.touched !== null) watcher.onTouched?.(message.touched);
      note(message.seqs);
    } else if (message.type === "trouble")
      log.warn(
        message.isFullDisk ? { fullDisk: message.message } : { cause: message.message },
        "operations wait: the store refuses them for now",
      );
    else if (message.type === "not packed") notPacked({ cause: message.message });
    else {
      const { seq, operationId, message: cause } = message;
      log.error({ seq, operationId, cause }, "an operation failed; its body is kept, to be applied again");
      note([seq]);
    }
  });
  return pool;
}

function reportDamaged(log: Logger, { damaged }: IngestReport): void {
  for (const { variableId, refused, ...period } of damaged)
    log.error(
      { variable: variableId, points: periodOf(period), refused },
      "stored points are damaged: later ones are stored after them, and readings between their dates are refused; " +
        "remove the points of this period and send them again, or restore a backup of the store",
    );
}

/**
 * Records several finished operations in one commit. Losing a record is harmless: the worker finds the outcome and
 * reports it again.
 */
function createRecorder({ operations, log, onFinished }: IngestionParts) {
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
        log.error({ err: thrown }, "finished operations could not be recorded; this is tried again");
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

// Readings that cannot be merged with stored points, since these are damaged.

/** Readings of one operation that were not stored, although they can be. */
export interface Refused {
  /** Index of the operation in its group. */
  readonly operation: number;
  readonly target: string;
  readonly reason: string;
  readonly count: number;
}

/** As `DELETE /data` takes it: without its end. */
function periodOf({ firstMs, lastMs }: Pick<DamagedPoints, "firstMs" | "lastMs">): string {
  const [from, to] = [firstMs, lastMs + 1].map((ms) => isoInstant(Temporal.Instant.fromEpochMilliseconds(ms)));
  return `from ${from} to before ${to}`;
}

export function* refusedBy(damaged: readonly DamagedPoints[], columns: ReadingColumns): Generator<Refused> {
  for (const { variableId, refused, ...period } of damaged) {
    const target = targetWords({ variableId });
    const reason = `the stored points ${periodOf(period)} are damaged: remove them, and send this period again`;
    for (const [operation, { length }] of Map.groupBy(refused, (index) => columns.operation[index] ?? 0))
      yield { operation, target, reason, count: length };
  }
}
