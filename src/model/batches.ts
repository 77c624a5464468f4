/** Bodies of pushes, and the targets in them. */
import type { BatchState } from "../states.ts";
import type { PushTarget } from "../wire/push.ts";
import type { Outcome } from "./outcomes.ts";
import type { IsoInstant } from "./time.ts";

/** A slice of a run's segment, fixed and durable before its first send (invariant 3). */
export interface BatchSlice {
  /** `1`, `2`, … and, after a split, `7.1`, `7.2`. */
  readonly sequence: string;
  /** Bytes from the start of the segment. */
  readonly offset: number;
  /** Bytes. */
  readonly length: number;
  readonly points: number;
  /** SHA-256 of the bytes, lower-case hexadecimal. */
  readonly digest: string;
}

export interface Batch extends BatchSlice {
  readonly runId: string;
  readonly operationId: string;
  /** Follows from what is delivered (`ledger/records/batches.ts`), or is the operationId. */
  readonly idempotencyKey: string;
  /**
   * The earlier operation whose answer the service repeated: what is accepted was delivered by it; what is not sent
   * yet is sent only where the service lacks it. Null: none is known. Empty: the service did not name it.
   */
  readonly repeats: string | null;
  readonly state: BatchState;
  readonly attempts: number;
  /** Last answer of the service, or the last failure, in words. */
  readonly answer: string | null;
  readonly acceptedAt: IsoInstant | null;
  readonly outcome: Outcome | null;
}

/** Summary of the readings of a run for one target: for the guard, kept beside the segment and never sent. */
export interface TargetFacts {
  readonly target: PushTarget;
  /** Number of readings. */
  readonly points: number;
  /** Earliest and latest date, in milliseconds since 1970 in UTC. */
  readonly fromMs: number;
  readonly toMs: number;
  /** Number of readings without a version. */
  readonly untagged: number;
  /** The unit as the mapper declared it. */
  readonly unit?: string | undefined;
}

/** One push call, for metrics. */
export interface PushFacts {
  readonly service: string;
  readonly operationId: string;
  readonly traceId: string;
  /** Null when no response came. */
  readonly status: number | null;
  readonly seconds: number;
}
