/** Bodies of pushes, and the targets in them. */
import type { BatchSlice } from "#mapping/model.ts";
import type { BatchState } from "../states.ts";
import type { Outcome } from "./outcomes.ts";
import type { IsoInstant } from "./time.ts";

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

/** One push call, for metrics. */
export interface PushFacts {
  readonly service: string;
  readonly operationId: string;
  readonly traceId: string;
  /** Null when no response came. */
  readonly status: number | null;
  readonly seconds: number;
}
