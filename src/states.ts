/**
 * The states of arrivals, runs and batches, and what each of them means. Every list of states, SQL text, count and
 * label derives from the records here: a new state is one more record, and the compiler asks for each of its facts.
 *
 * An **arrival** is `settling` while its size and mtime still change. Once it is still, its name is matched:
 * `unmatched` when no trigger claims it (matched again whenever the triggers change), or `matched` when a run was
 * opened for it. When the bytes turn out to be those of an earlier version that was delivered or is under way, it is a
 * `duplicate`. It is `skipped` when it lay there at the first contact and the drop's rule leaves such files, and when
 * it is the done-file of another. A person may have a duplicate or a skipped file processed, and a file that changed
 * while it was taken settles again.
 *
 * A **run** is `claimed` by a trigger, `fetched` into the spool, and while a worker has it, `mapping`. It is `mapped`
 * when its batches are durable, `delivering` from the first send, `accepted` when the service took every batch, and
 * `confirmed` when the service reported, or showed, that all is stored. Aside: `empty` when the file held no readings;
 * `held` while structure, a unit or a person is waited for; `discarded` when the service accepted and then dropped
 * something (this may become known late, and a webhook may correct what reading back had found); `unconfirmed` when it
 * was accepted and nobody could say in time whether it is stored: its lane continues, it is never sent again, and the
 * service is asked about it again; `quarantined` when a person is needed; `cancelled` when it was given up, such as a
 * duplicate. The run of a container is `opened` instead of mapped: each of its entries is an arrival from then on, with
 * a run of its own. When all of them came to a good end the source of the container is finished; while one did not, the
 * container rests, and is checked again when an entry changes. What a crash or a lost spool interrupted returns to
 * where it can be done again: `mapping → fetched`, and `→ claimed` when the input is lost.
 *
 * A **batch** is `ready` once durable, `sending` from the moment before its first attempt, through all its attempts,
 * and ends `accepted`, `rejected` by an answer, or `split` into children.
 */
import type { ArrivalState, BatchState, End, FileStanding, Points, RunState } from "./model.ts";

// ───────────────────────────────────────────────────────────── runs

/** The queue of the scheduler that takes runs of a state. */
export type RunStage =
  | "intake"
  | "delivery"
  | "containers"
  | "held"
  | "confirming"
  | "unconfirmed"
  | "finishing";

export interface RunFacts {
  /** The states that may follow. */
  readonly next: readonly RunState[];
  /** Null while a worker has it. */
  readonly stage: RunStage | null;
  /**
   * The index that the ledger keeps it in: `runs_intake` until it is mapped, since what it will deliver is not known
   * before.
   */
  readonly index: "runs_intake" | "runs_delivery" | "runs_resting";
  /** Where its file stands; null for a container, whose entries are counted. */
  readonly standing: FileStanding | null;
  /** How its source ends at the drop; null while it does not, and where that depends on more than the state. */
  readonly end: End | null;
  /** Neither accepted nor at rest: later runs of the lane that share a target wait for it. */
  readonly isOpen: boolean;
  /** Its readings are still to be delivered: open, or held. */
  readonly isUnderWay: boolean;
  /** The service took every batch, whatever became of them then. */
  readonly isAccepted: boolean;
  /** The service took every batch, and nothing of them is known to be lost. */
  readonly isDelivered: boolean;
  /** While it is not settled, something is awaited that is certain to come: an outcome, or the end of entries. */
  readonly isClosing: boolean;
  /** The service is still asked what it stored. */
  readonly isAwaited: boolean;
  /** Nothing is left to do but to finish the source. */
  readonly isAtRest: boolean;
  /** A person has to see to it. */
  readonly needsAttention: boolean;
  /**
   * The points that are final once a run comes to this state, for the metrics; those that are mapped are counted with
   * their batches.
   */
  readonly counts: readonly Exclude<keyof Points, "mapped">[];
  /** What it waits for when nothing else is known. */
  readonly waitsFor: string;
  readonly tone: "plain" | "good" | "warning" | "bad" | "faint";
}

const OPEN = {
  standing: "pending",
  end: null,
  isOpen: true,
  isUnderWay: true,
  isAccepted: false,
  isDelivered: false,
  isClosing: false,
  isAwaited: false,
  isAtRest: false,
  needsAttention: false,
  counts: [],
  tone: "plain",
} as const satisfies Partial<RunFacts>;

/** Nothing is open; each state that is made of it says what it is instead. */
const CLOSED = {
  index: "runs_resting",
  isOpen: false,
  isUnderWay: false,
  isAccepted: false,
  isDelivered: false,
  isClosing: false,
  isAwaited: false,
  isAtRest: false,
  needsAttention: false,
  counts: [],
  waitsFor: "its turn",
} as const satisfies Partial<RunFacts>;

/** In the order in which lists and indexes name them. */
const RUN = {
  claimed: {
    ...OPEN,
    next: ["fetched", "quarantined", "cancelled"],
    stage: "intake",
    index: "runs_intake",
    waitsFor: "its turn to be fetched",
  },
  fetched: {
    ...OPEN,
    next: ["mapping", "opened", "empty", "claimed", "quarantined", "cancelled"],
    stage: "intake",
    index: "runs_intake",
    waitsFor: "its turn to be mapped",
  },
  opened: {
    ...CLOSED,
    next: [],
    stage: "containers",
    standing: null,
    // Once all its entries came to a good end.
    end: "delivered",
    isClosing: true,
    waitsFor: "its entries",
    tone: "plain",
  },
  mapping: {
    ...OPEN,
    next: ["mapped", "empty", "fetched", "claimed", "quarantined", "cancelled"],
    stage: null,
    index: "runs_intake",
    waitsFor: "its mapper to end",
  },
  mapped: {
    ...OPEN,
    next: ["delivering", "held", "empty", "fetched", "claimed", "quarantined", "cancelled"],
    stage: "delivery",
    index: "runs_delivery",
    waitsFor: "its turn to be delivered",
  },
  delivering: {
    ...OPEN,
    next: ["accepted", "held", "fetched", "claimed", "quarantined", "cancelled"],
    stage: "delivery",
    index: "runs_delivery",
    waitsFor: "the answers of the service",
  },
  accepted: {
    ...CLOSED,
    next: ["confirmed", "discarded", "unconfirmed"],
    stage: "confirming",
    standing: "delivered",
    end: "delivered",
    isAccepted: true,
    isDelivered: true,
    isClosing: true,
    isAwaited: true,
    counts: ["accepted", "rejected"],
    waitsFor: "the service to confirm what it stored",
    tone: "good",
  },
  confirmed: {
    ...CLOSED,
    next: ["discarded"],
    stage: "finishing",
    standing: "delivered",
    end: "delivered",
    isAccepted: true,
    isDelivered: true,
    isAtRest: true,
    counts: ["stored"],
    tone: "good",
  },
  unconfirmed: {
    ...CLOSED,
    next: ["confirmed", "discarded"],
    stage: "unconfirmed",
    standing: "unconfirmed",
    end: "delivered",
    isAccepted: true,
    isDelivered: true,
    isAwaited: true,
    needsAttention: true,
    waitsFor: "the next query of what the service stored",
    tone: "warning",
  },
  empty: {
    ...CLOSED,
    next: [],
    stage: "finishing",
    standing: "empty",
    end: "delivered",
    isAtRest: true,
    counts: ["rejected"],
    tone: "plain",
  },
  held: {
    ...CLOSED,
    next: ["mapped", "delivering", "quarantined", "cancelled"],
    stage: "held",
    index: "runs_delivery",
    standing: "held",
    end: null,
    isUnderWay: true,
    needsAttention: true,
    tone: "warning",
  },
  discarded: {
    ...CLOSED,
    next: ["confirmed"],
    stage: "finishing",
    standing: "discarded",
    end: "quarantined",
    isAccepted: true,
    isAtRest: true,
    needsAttention: true,
    counts: ["stored", "discarded"],
    tone: "bad",
  },
  quarantined: {
    ...CLOSED,
    next: ["cancelled"],
    stage: "finishing",
    standing: "quarantined",
    end: "quarantined",
    isAtRest: true,
    needsAttention: true,
    counts: ["accepted", "rejected"],
    tone: "bad",
  },
  cancelled: {
    ...CLOSED,
    next: [],
    stage: "finishing",
    standing: "cancelled",
    // A duplicate ends by the rule for duplicates; what a person gave up stays.
    end: null,
    isAtRest: true,
    tone: "faint",
  },
} as const satisfies Readonly<Record<RunState, RunFacts>>;

export const RUN_STATES: Readonly<Record<RunState, RunFacts>> = RUN;

export const ALL_RUN_STATES = Object.keys(RUN) as readonly RunState[];

/** The states of which this is true, in their order. */
export function runStatesThat(
  isOne: (facts: RunFacts, state: RunState) => boolean,
): readonly [RunState, ...RunState[]] {
  const [first, ...others] = ALL_RUN_STATES.filter((state) => isOne(RUN_STATES[state], state));
  if (first === undefined) throw new RangeError("no state of a run is like that");
  return [first, ...others];
}

/** What it will deliver is not known. */
export const UNMAPPED_STATES = runStatesThat(({ index }) => index === "runs_intake");
export const OPEN_STATES = runStatesThat(({ isOpen }) => isOpen);
/** Open, and fetched: the spool has the input, or the batches. */
export const STARTED_STATES = runStatesThat(({ isOpen }, state) => isOpen && state !== "claimed");
export const UNDER_WAY_STATES = runStatesThat(({ isUnderWay }) => isUnderWay);
/** With batches to deliver, and none of them refused. */
export const DELIVERABLE_STATES = runStatesThat(({ stage }) => stage === "delivery");
export const ACCEPTED_STATES = runStatesThat(({ isAccepted }) => isAccepted);
/** Something of it was sent, and not refused as a whole. */
export const SENT_STATES = runStatesThat(({ isAccepted }, state) => isAccepted || state === "delivering");
/** The service may have accepted some of its batches: it is being sent, was sent, or was stopped meanwhile. */
export const TOUCHED_STATES = runStatesThat(
  ({ end }, state) =>
    SENT_STATES.includes(state) || end === "quarantined" || RUN_STATES.delivering.next.includes(state),
);
export const CLOSING_STATES = runStatesThat(({ isClosing }) => isClosing);
export const AT_REST_STATES = runStatesThat(({ isAtRest }) => isAtRest);
/** Ended without all its readings delivered: rests until a person, or what it waits for, changes that. */
export const UNDELIVERED_STATES = runStatesThat(({ isOpen, end }) => !isOpen && end !== "delivered");
/** Those that a person may have done again. */
export const REPLAYABLE_STATES = runStatesThat(({ isOpen, standing }) => !isOpen && standing !== null);
export const CANCELLABLE_STATES = runStatesThat(({ next }) => next.includes("cancelled"));
/** Their service is needed for what comes next. */
export const NEEDS_SERVICE_STATES = runStatesThat(
  ({ stage, isAwaited }) => stage === "delivery" || isAwaited,
);
/** How a run leaves the front of its lane. */
export const LEAVES_LANE_STATES = runStatesThat(
  ({ isOpen }, state) => !isOpen && OPEN_STATES.some((open) => RUN_STATES[open].next.includes(state)),
);

/** States that need a person, as a type: each has words of its own in notifications. */
export type AttentionState = {
  [State in RunState]: (typeof RUN)[State]["needsAttention"] extends true ? State : never;
}[RunState];

export const ATTENTION_STATES = runStatesThat(({ needsAttention }) => needsAttention) as readonly [
  AttentionState,
  ...AttentionState[],
];

/** When the source of a delivered run may be archived or deleted. */
export const FINISH_AFTER = ["accepted", "confirmed"] as const satisfies readonly RunState[];
export type FinishAfter = (typeof FINISH_AFTER)[number];

// ───────────────────────────────────────────────────────────── arrivals

export interface ArrivalFacts {
  readonly next: readonly ArrivalState[];
  /** No run was opened for it yet: a file that changes at its path is still the same arrival. */
  readonly isUnclaimed: boolean;
  /** Where it stands; null when its run decides. */
  readonly standing: FileStanding | null;
}

export const ARRIVAL_STATES = {
  settling: {
    // To itself: the same state for another reason.
    next: ["settling", "unmatched", "duplicate", "skipped", "matched"],
    isUnclaimed: true,
    standing: "settling",
  },
  unmatched: {
    next: ["unmatched", "settling", "duplicate", "matched"],
    isUnclaimed: true,
    standing: "unmatched",
  },
  matched: { next: ["duplicate", "settling", "matched"], isUnclaimed: false, standing: null },
  duplicate: { next: ["duplicate", "matched"], isUnclaimed: false, standing: "duplicate" },
  skipped: { next: ["skipped", "settling", "matched"], isUnclaimed: false, standing: "skipped" },
} as const satisfies Readonly<Record<ArrivalState, ArrivalFacts>>;

export const UNCLAIMED_STATES = (Object.keys(ARRIVAL_STATES) as readonly ArrivalState[]).filter(
  (state) => ARRIVAL_STATES[state].isUnclaimed,
);

/** In the order in which a summary names them. */
const STANDINGS = {
  delivered: true,
  unconfirmed: true,
  empty: true,
  duplicate: true,
  skipped: true,
  quarantined: true,
  discarded: true,
  held: true,
  unmatched: true,
  cancelled: true,
  settling: true,
  pending: true,
} as const satisfies Readonly<Record<FileStanding, true>>;

export const FILE_STANDINGS = Object.keys(STANDINGS) as readonly FileStanding[];

// ───────────────────────────────────────────────────────────── batches

export interface BatchFacts {
  readonly next: readonly BatchState[];
  /** It waits for an answer, or to be sent. */
  readonly isUnanswered: boolean;
  /** It is at the service, or may be: the answer was lost. */
  readonly mayBeStored: boolean;
  /** The service took it, or refused it for good. */
  readonly isAnswer: boolean;
  /** It is what is sent, and not only where children came from. */
  readonly isLeaf: boolean;
}

export const BATCH_STATES = {
  ready: { next: ["sending"], isUnanswered: true, mayBeStored: false, isAnswer: false, isLeaf: true },
  // To itself: one more attempt.
  sending: {
    next: ["sending", "ready", "accepted", "rejected", "split"],
    isUnanswered: true,
    mayBeStored: true,
    isAnswer: false,
    isLeaf: true,
  },
  accepted: { next: [], isUnanswered: false, mayBeStored: true, isAnswer: true, isLeaf: true },
  rejected: { next: [], isUnanswered: false, mayBeStored: false, isAnswer: true, isLeaf: true },
  split: { next: [], isUnanswered: false, mayBeStored: false, isAnswer: false, isLeaf: false },
} as const satisfies Readonly<Record<BatchState, BatchFacts>>;

export const ALL_BATCH_STATES = Object.keys(BATCH_STATES) as readonly BatchState[];
export const MAY_BE_STORED_STATES = ALL_BATCH_STATES.filter((state) => BATCH_STATES[state].mayBeStored);
/** Leaves that keep their run from being accepted. */
export const NOT_ACCEPTED_STATES = ALL_BATCH_STATES.filter(
  (state) => BATCH_STATES[state].isLeaf && state !== "accepted",
);
