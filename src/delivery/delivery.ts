/**
 * The contract of delivery: moves bytes that are ready, and learns what became of them.
 * One `Delivery` per service (invariant 11): its own token, connections, breaker. It owns no ledger; what has to be durable
 * is told through `DeliveryJournal`, which the ledger satisfies.
 */
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
import type { ErrorCode } from "../support/errors.ts";

/** Whether an attempt to send a batch may have been stored although nobody said so. */
export { mayBeStored } from "./unknown-outcome.ts";

export interface DeliveryJournal {
  batches(runId: string): Promise<readonly Batch[]>;
  advanceBatch(
    operationId: string,
    from: BatchState,
    to: BatchState,
    change?: { readonly answer?: string; readonly attempted?: boolean },
  ): Promise<Batch>;
  /** `sending → accepted`; answers the run when it is accepted with this as a whole, and null when it is not. */
  acceptBatch(operationId: string, answer: string, whole: WholeRun): Promise<Run | null>;
  splitBatch(operationId: string, children: readonly BatchSlice[], answer: string): Promise<readonly Batch[]>;
}

/** What is recorded of a run when its last batch is accepted. */
export interface WholeRun {
  readonly service: string;
  readonly finishPlan?: FinishPlan;
}

/** What is known before a run is delivered. */
export interface DeliveryStart {
  /** Of the run, as they stand in the journal. */
  readonly batches?: readonly Batch[];
  /** What becomes of its source when all is accepted; recorded with that. */
  readonly finishPlan?: FinishPlan | null;
}

/** Three ways: all accepted; rejected in part or whole by the service's answers; or kept, to be tried again later. */
export type DeliveryResult =
  /** `recorded`: the run, where it was recorded as accepted together with its last batch. */
  | { readonly status: "accepted"; readonly points: number; readonly recorded?: Run }
  | {
      readonly status: "rejected";
      readonly accepted: number;
      readonly rejected: number;
      /** The service's words, by the smallest rejected batch. */
      readonly faults: readonly { readonly operationId: string; readonly answer: string }[];
      readonly rows: readonly RejectedRow[];
    }
  | KeptResult;

/** `retryAfterMs`: when it makes sense to try again; the reason is for `runs` and health. */
export interface KeptResult {
  readonly status: "kept";
  readonly reason: string;
  /** Of the register: not reachable (HG-PUSH-001), or what a person has to resolve. */
  readonly code: ErrorCode;
  readonly retryAfterMs: number;
  /** Every run of this service has to wait that long (breaker, `Retry-After`, credentials); otherwise only this one, and others may go. */
  readonly wholeService: boolean;
}

export interface Delivery {
  readonly service: string;
  /** Why the service will not send outcomes to the webhook that the latest push named, so that they are to be read back; null: nothing of the kind is known. */
  readonly webhookRefusal: string | null;
  /**
   * Sends the batches of a run that are not accepted yet, in order, from its segment. Each attempt is journalled before it is sent
   * (`sending`) and after its answer (`accepted`, `rejected`, or `split` with durable children); with the last one that is accepted the run
   * is, and is answered as `recorded`. Verifies the digest of each slice first:
   * a difference is `InvariantError`. Returns `kept` on whatever may pass; nothing is lost by calling again.
   */
  deliver(run: Run, segmentPath: string, signal: AbortSignal, start?: DeliveryStart): Promise<DeliveryResult>;
  /**
   * Reads back date, value and version of every reading of the accepted batches and tells the outcome of each operation. Batches
   * whose outcome the journal knows are left out. The service stores after it answered: what is missing may come yet. A reading in whose place
   * another value stands was stored when a later batch of `others` brought one to that place.
   */
  readBack(
    run: Run,
    segmentPath: string,
    signal: AbortSignal,
    others?: OpenOtherDeliveries,
  ): Promise<ReadBackResult>;
  /**
   * Looks at targets before the first push, by the read interface: whether each is one variable of this account, and whether units, dates
   * and versions fit. Callers hand in bounded parts. Never rejects because of the service; what was found is remembered for a while.
   * With `fresh` what was missing is asked for again.
   */
  inspect(
    facts: readonly TargetFacts[],
    signal: AbortSignal,
    options?: { readonly fresh?: boolean },
  ): Promise<Inspection>;
  /** What is remembered of the account may not be true any more. */
  forgetStructure(): void;
  /** For `headgate check`: token, account, push right. */
  probe(
    signal: AbortSignal,
  ): Promise<readonly { level: "ok" | "warning" | "failed"; what: string; hint?: string }[]>;
  /**
   * Another takes its place: the calls under way end, no other begins, and runs that it had are answered as `kept` without a pause.
   * Resolves when none is left.
   */
  retire(): Promise<void>;
  close(): Promise<void>;
}

export type GuardAct = "hold" | "warn" | "push";

/** What a trigger does about what the guard finds; see `guard` of the triggers. */
export interface GuardPolicy {
  readonly targets: GuardAct;
  readonly units: GuardAct;
  readonly dates: GuardAct;
  readonly versions: GuardAct;
  readonly unreadable: GuardAct;
}

/** What the guard compares with, beside the structure of the account. */
export interface GuardRule {
  readonly futureMs: number;
  /** Any date when absent. */
  readonly pastMs?: number | undefined;
  /** The service stores a batch that comes twice only once. */
  readonly idempotency: boolean;
}

/**
 * Told before a segment is changed, since other runs may have a part in its file: when it resolves, the run has one of its own, in which everything lies where it
 * did. Rejects as the disk does. Called for different segments at the same time.
 */
export type GiveOwnFile = (segmentPath: string) => Promise<void>;

/** Who holds back what a gateway sends, beyond what the service itself asks for: a rate, a time of the day, the traffic of others. */
export interface Admission {
  /**
   * Asked before each push call, also with the same batch again; called concurrently. True when it may go, false when none goes any more: the batch then stays for the
   * next start.
   */
  admit(
    batch: Pick<Batch, "points" | "length" | "attempts">,
    service: string,
    signal: AbortSignal,
  ): Promise<boolean>;
}

export type Inspection =
  /** `missing`: the facts of those that name no variable. */
  | {
      readonly status: "seen";
      readonly findings: readonly TargetFinding[];
      readonly missing: readonly TargetFacts[];
    }
  /** Not now: whatever is not to be pushed unseen has to wait. */
  | {
      readonly status: "unknown";
      readonly reason: string;
      readonly code: ErrorCode;
      readonly retryAfterMs: number;
    }
  /** Never, with these rights. */
  | { readonly status: "unreadable"; readonly reason: string };

/** Reason of a reading in whose place another value is stored now. */
export const OVERWRITTEN = "value differs";

/** Where a reading stands in the account: `version` null where the variable has none. */
export interface StoredPlace {
  readonly variableId: number;
  /** Milliseconds since 1970 in UTC. */
  readonly atMs: number;
  readonly version: string | null;
}

/** What other runs delivered to the same account: a value that differs may be theirs. */
export interface OtherDeliveries {
  /** Whether a batch that was accepted no earlier than `acceptedAt` brought a reading to this place. */
  has(place: StoredPlace, acceptedAt: IsoInstant): boolean;
  /** Why this is not known of all of them; null when it is. */
  readonly unknown: string | null;
  close(): Promise<void>;
}

/** Called once, and only when a value differs. `placesOf`: of the readings of a batch, by the variables that the service has. */
export type OpenOtherDeliveries = (
  placesOf: (elements: readonly PushElement[]) => Promise<readonly StoredPlace[]>,
) => Promise<OtherDeliveries>;

export type ReadBackResult =
  | {
      readonly status: "read";
      readonly outcomes: readonly Outcome[];
      readonly missing: number;
      /** Readings that were stored and then overwritten by another run; they count as stored. */
      readonly overwritten: number;
      /** Why of some that are missing it cannot be told whether another run overwrote them; null when of none. */
      readonly unclear: string | null;
    }
  /** Cannot be told: no right to read, or, when it is away, not reachable now. */
  | {
      readonly status: "unknown";
      readonly reason: string;
      readonly retryAfterMs: number;
      readonly isAway: boolean;
    };
