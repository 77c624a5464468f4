/** The contract of ingestion, which has a thread and a connection of its own; see `store.ts`. */
import type { ReadingColumns } from "./columns.ts";
import type { Outcome } from "./operations.ts";
import type { VariableFacts } from "./records.ts";
import type { TargetBytes, TargetQuery } from "./targets.ts";

export interface QueuedOperation {
  readonly seq: number;
  readonly accountId: number;
  readonly userId: number;
  readonly operationId: string;
  readonly timeoutSec: number;
  readonly received: number;
  /** The calculation that made its readings; null: it is a push. */
  readonly calculationId: number | null;
  readonly acceptedMs: number;
  /** Address at which the sender shows where its readings came from; null: it named none. */
  readonly traceLink: string | null;
  /** As received, or compressed (`hub/push/body-compression.ts`). */
  readonly body: Uint8Array;
}

/** Stored points that cannot be read. */
export interface DamagedPoints {
  readonly variableId: number;
  readonly firstMs: number;
  readonly lastMs: number;
  /** Indexes of the readings between their dates: these readings are not stored. */
  readonly refused: Uint32Array;
}

export interface WrittenReadings {
  /** By operation of the group: how many of its readings replaced an earlier value or version. */
  readonly replaced: readonly number[];
  /** Stored points that were needed, and cannot be read. */
  readonly damaged: readonly DamagedPoints[];
}

export interface IngestTransaction {
  /** The variable whose outputs a calculation stores; null: it went with its definition. */
  outputOf(accountId: number, calculationId: number): Promise<number | null>;
  /**
   * The first match in order of source and variable, within the account. Results are cached until the
   * structure changes.
   */
  findVariable(accountId: number, target: TargetQuery): Promise<VariableFacts | null>;
  /** Targets that were resolved before, by their bytes; also until the structure changes. */
  written(accountId: number): TargetBytes;
  /**
   * Stores readings as though one after another. May be called several times; it keeps no reference to `readings`.
   */
  write(readings: ReadingColumns): Promise<WrittenReadings>;
}

/** The effects of a group beside its points. */
export interface IngestReport {
  /** Accounts that have calculations due. */
  readonly due: readonly number[];
  /** Stored points that cannot be read. */
  readonly damaged: readonly (Omit<DamagedPoints, "refused"> & { readonly refused: number })[];
}

/** Limits of one group of operations, which has at least one operation. */
export interface GroupLimits {
  readonly readings: number;
  readonly bytes: number;
}

export interface IngestStore {
  /**
   * Interval of polls without a notification, since other nodes fill the queue too; null when there are no
   * other nodes.
   */
  readonly pollMs: number | null;
  /**
   * The next waiting operations: of each account in the order of acceptance, of the accounts by turns; empty when none
   * waits. `afterSeq`: the last one that was taken before; 0: also those that were applied, and are not yet done.
   */
  next(afterSeq: number, limits: GroupLimits): Promise<readonly QueuedOperation[]>;
  /**
   * Applies a group and records its outcomes in one transaction, completely or not at all. `work` receives
   * the operations that were not applied before, returns their outcomes in that order, and may be called
   * again from the start when the structure changed meanwhile. The same transaction makes them `done`, or
   * `failed`: then their bodies are kept.
   */
  apply(
    operations: readonly QueuedOperation[],
    work: (transaction: IngestTransaction, operations: readonly QueuedOperation[]) => Promise<readonly Outcome[]>,
    state?: "done" | "failed",
  ): Promise<IngestReport>;
  /** Makes blocks of a part of the stored points; false: there is nothing to do. Between groups. */
  pack(): Promise<boolean>;
  close(): Promise<void>;
}
