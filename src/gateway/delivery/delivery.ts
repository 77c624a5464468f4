/**
 * The contract of delivery: sends ready bytes and learns their outcome. One `Delivery` per service (invariant 11): its
 * own token, connections, breaker. It owns no ledger; durable facts go through `DeliveryJournal`, which the ledger
 * implements.
 */
import type { ClockSeen } from "#core/clock.ts";
import { type ErrorCode, HeadgateError, systemCode } from "#core/errors.ts";
import type {
  Batch,
  BatchSlice,
  BatchState,
  FinishPlan,
  IsoInstant,
  Outcome,
  PushElement,
  RejectedRow,
  Run,
  TargetFacts,
  TargetFinding,
} from "../model.ts";
import type { Verdict } from "./retry-table.ts";

export interface DeliveryJournal {
  batches(runId: string): Promise<readonly Batch[]>;
  advanceBatch(
    operationId: string,
    from: BatchState,
    to: BatchState,
    change?: { readonly answer?: string; readonly attempted?: boolean },
  ): Promise<Batch>;
  /**
   * `sending → accepted`; returns the run when this batch completes its acceptance, otherwise null. `repeats`: the
   * earlier operation that delivered the batch.
   */
  acceptBatch(operationId: string, answer: string, whole: WholeRun, repeats?: string): Promise<Run | null>;
  /** `repeats`: the earlier operation that may have delivered some of the children. */
  splitBatch(
    operationId: string,
    children: readonly BatchSlice[],
    answer: string,
    repeats?: string,
  ): Promise<readonly Batch[]>;
  /** `sending → ready` under another Idempotency-Key, by which the service takes the same bytes as a new operation. */
  renewKey(operationId: string, answer: string): Promise<Batch>;
}

/** Recorded with a run when its last batch is accepted. */
export interface WholeRun {
  readonly service: string;
  readonly finishPlan?: FinishPlan;
}

/** Facts about a run that are known before its delivery. */
export interface DeliveryStart {
  /** Batches of the run, as the journal has them. */
  readonly batches?: readonly Batch[];
  /** Plan for the source file once all batches are accepted; recorded with the acceptance. */
  readonly finishPlan?: FinishPlan | null;
}

/** Three ways: all accepted; rejected in part or whole by the service's responses; or kept, to be tried again later. */
export type DeliveryResult =
  /** `recorded`: the run, when it was recorded as accepted together with its last batch. */
  | { readonly status: "accepted"; readonly points: number; readonly recorded?: Run }
  | {
      readonly status: "rejected";
      readonly accepted: number;
      readonly rejected: number;
      /** The service's messages, by the smallest rejected batch. */
      readonly faults: readonly { readonly operationId: string; readonly answer: string }[];
      readonly rows: readonly RejectedRow[];
    }
  | KeptResult;

/** `retryAfterMs`: the earliest useful time of the next attempt; the reason is for `runs` and health. */
export interface KeptResult {
  readonly status: "kept";
  readonly reason: string;
  /** Error code: not reachable (HG-PUSH-001), or a problem that a person has to resolve. */
  readonly code: ErrorCode;
  readonly retryAfterMs: number;
  /**
   * True when every run of this service has to wait that long (breaker, `Retry-After`, credentials); false when only
   * this run has to.
   */
  readonly wholeService: boolean;
}

export interface Delivery {
  readonly service: string;
  /**
   * Why the service will not send outcomes to the webhook that the latest push named, so that outcomes have to be read
   * back; null when no refusal is known.
   */
  readonly webhookRefusal: string | null;
  /** The service's time, as its latest answer says; null before the first one that does. */
  readonly clockSeen: ClockSeen | null;
  /**
   * Sends the batches of a run that are not accepted yet, in order, from its segment. Each attempt is journalled before
   * it is sent (`sending`) and after its response (`accepted`, `rejected`, or `split` with durable children). When the
   * last batch is accepted the run is accepted too and is returned as `recorded`. Verifies the digest of each slice
   * first: a difference is `InvariantError`. Returns `kept` on every transient failure; calling again loses nothing.
   */
  deliver(run: Run, segmentPath: string, signal: AbortSignal, start?: DeliveryStart): Promise<DeliveryResult>;
  /**
   * Reads back date, value and version of every reading of the accepted batches and reports the outcome of each
   * operation. Batches whose outcome the journal has are skipped. The service stores after it responds, so a missing
   * reading may still appear. A reading whose place holds another value counts as stored when a later batch of `others`
   * wrote to that place.
   */
  readBack(run: Run, segmentPath: string, signal: AbortSignal, others?: OpenOtherDeliveries): Promise<ReadBackResult>;
  /**
   * Checks targets before the first push, by the read interface: whether each is one variable of this account, and
   * whether units, dates and versions fit. Callers pass bounded lists. Never rejects because of the service; results
   * are cached for a while. With `fresh`, missing targets are queried again.
   */
  inspect(
    facts: readonly TargetFacts[],
    signal: AbortSignal,
    options?: { readonly fresh?: boolean },
  ): Promise<Inspection>;
  /** Drops the cached structure of the account, which may have changed. */
  forgetStructure(): void;
  /** For `headgate check`: token, account, push right. */
  probe(signal: AbortSignal): Promise<readonly { level: "ok" | "warning" | "failed"; what: string; hint?: string }[]>;
  /**
   * Ends this delivery because another replaces it: running calls end, no further call starts, and its runs are
   * returned as `kept` without a pause. Resolves when no call is left.
   */
  retire(): Promise<void>;
  close(): Promise<void>;
}

export type GuardAct = "hold" | "warn" | "push";

/** Reaction of a trigger to the findings of the guard; see `guard` of the triggers. */
export interface GuardPolicy {
  readonly targets: GuardAct;
  readonly units: GuardAct;
  readonly dates: GuardAct;
  readonly versions: GuardAct;
  readonly unreadable: GuardAct;
}

/** Limits that the guard compares with, beside the structure of the account. */
export interface GuardRule {
  readonly futureMs: number;
  /** No limit when absent. */
  readonly pastMs?: number | undefined;
  /** The service stores a repeated batch only once. */
  readonly idempotency: boolean;
}

/**
 * Changes the segment of a run, as only a split does; other runs are not affected. Durable when a method resolves.
 * Rejects on a disk error. Called concurrently for different segments.
 */
export interface SegmentChanges {
  /** Appends bytes. Returns the offset of the first. */
  append(segmentPath: string, bytes: Buffer): Promise<number>;
  /** Writes a body again at its recorded offset. */
  restore(segmentPath: string, offset: number, body: Buffer): Promise<void>;
}

/** Limits the pushes of a gateway beyond what the service itself asks for: a rate, a time of day, other traffic. */
export interface Admission {
  /**
   * Called before each push call, also when a batch is repeated; called concurrently. True when the push may start,
   * false when no further push starts: the batch then stays for the next start.
   */
  admit(batch: Pick<Batch, "points" | "length" | "attempts">, service: string, signal: AbortSignal): Promise<boolean>;
}

export type Inspection =
  /** `missing`: the facts of targets that name no variable. */
  | {
      readonly status: "seen";
      readonly findings: readonly TargetFinding[];
      readonly missing: readonly TargetFacts[];
    }
  /** Not possible now: readings that must not be pushed unchecked have to wait. */
  | {
      readonly status: "unknown";
      readonly reason: string;
      readonly code: ErrorCode;
      readonly retryAfterMs: number;
    }
  /** Not possible with these rights. */
  | { readonly status: "unreadable"; readonly reason: string };

/** The answer of a batch from before a call until its response is known. */
export const UNANSWERED = "sent, and not answered so far";
const UNCERTAIN_NOTE = "; an attempt without a clear answer may be stored";

/** No connection was made, so that nothing was sent. */
const NOT_CONNECTED: ReadonlySet<string> = new Set([
  "ECONNREFUSED",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "UND_ERR_CONNECT_TIMEOUT",
]);
/** Statuses of a service that has not processed any part of the batch. */
const UNTOUCHED: ReadonlySet<number> = new Set([401, 425, 429]);

/** Reason for a reading whose place holds another value now. */
export const OVERWRITTEN = "value differs";

/** Place of a reading in the account: `version` is null where the variable has none. */
export interface StoredPlace {
  readonly variableId: number;
  /** Milliseconds since 1970 in UTC. */
  readonly atMs: number;
  readonly version: string | null;
}

/** Deliveries of other runs to the same account: a differing value may come from them. */
export interface OtherDeliveries {
  /** Whether a batch that was accepted no earlier than `acceptedAt` wrote a reading to this place. */
  has(place: StoredPlace, acceptedAt: IsoInstant): boolean;
  /** Why some deliveries are not known; null when all are known. */
  readonly unknown: string | null;
  close(): Promise<void>;
}

/**
 * Called once, and only when a value differs. `placesOf` returns the places of the readings of a batch, by the
 * variables of the service.
 */
export type OpenOtherDeliveries = (
  placesOf: (elements: readonly PushElement[]) => Promise<readonly StoredPlace[]>,
) => Promise<OtherDeliveries>;

export type ReadBackResult =
  | {
      readonly status: "read";
      readonly outcomes: readonly Outcome[];
      readonly missing: number;
      /** Number of readings that were stored and then overwritten by another run; they count as stored. */
      readonly overwritten: number;
      /** Why it is not known whether another run overwrote some missing readings; null when it is known for all. */
      readonly unclear: string | null;
    }
  /** Unknown: no right to read, or, with `away`, the service is not reachable now. */
  | {
      readonly status: "unknown";
      readonly reason: string;
      readonly retryAfterMs: number;
      readonly isAway: boolean;
    };

// Whether an attempt to send a batch may have been stored without a confirmation. The journal keeps this as text in the
// answer of the batch, so that a person can read it and a process that resumes the batch knows it.

export function mayBeStored({ attempts, answer }: Pick<Batch, "attempts" | "answer">): boolean {
  if (attempts === 0) return false;
  return answer === null || answer.startsWith(UNANSWERED) || answer.endsWith(UNCERTAIN_NOTE);
}

export function withUnknownOutcome(words: string, isUncertain: boolean): string {
  return isUncertain ? `${words}${UNCERTAIN_NOTE}` : words;
}

/** A response that does not refuse the batch as a whole leaves its outcome open. */
export function isOpenResponse(verdict: Verdict, status: number): boolean {
  return verdict === "transient" && !UNTOUCHED.has(status);
}

/** An established connection may be lost with the same code: then the system call was a read or write. */
export function isOpenFault(thrown: unknown): boolean {
  // The client's own error, with a code of its own, wraps that of the system.
  const fault = thrown instanceof HeadgateError ? thrown.cause : thrown;
  if (!NOT_CONNECTED.has(systemCode(fault) ?? "")) return true;
  return fault instanceof Error && "syscall" in fault && (fault.syscall === "read" || fault.syscall === "write");
}
