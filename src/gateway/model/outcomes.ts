/** Results of pushes, as the service reports them. */
import type { IsoInstant } from "./time.ts";

/** The outcome of an operation at the service, as reported by its webhook or found by reading back. */
export interface Outcome {
  readonly operationId: string;
  readonly by: "webhook" | "read-back";
  readonly received: number;
  readonly stored: number;
  readonly discarded: readonly DiscardedTarget[];
  readonly at: IsoInstant;
}

export interface DiscardedTarget {
  /** A target in words, such as `sourceSerialNumber=M-1 mappingConfig=kWh`. */
  readonly target: string;
  readonly reason: string;
  readonly points: number;
}
