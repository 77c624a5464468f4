/**
 * The states of arrivals, runs and batches. Every list of states, SQL text, count and label derives from the
 * records here: a new state is one more record, and the compiler asks for each of its facts.
 *
 * An **arrival** is `settling` while its size and mtime still change. Once it is still, its name is matched:
 * `unmatched` when no trigger claims it (matched again whenever the triggers change), or `matched` when a run
 * was opened for it. When the bytes turn out to be those of an earlier version that was delivered or is in
 * progress, it is a `duplicate`. It is `skipped` when it was there at the first contact and the drop's rule
 * leaves such files, and when it is the done-file of another. A person may have a duplicate or a skipped file
 * processed, and a file that changed while it was taken settles again.
 *
 * A **batch** is `ready` once durable, `sending` from the moment before its first attempt, through all its
 * attempts, and ends `accepted`, `rejected` by an answer, or `split` into children.
 */

/** Where a file stands, by the state of its arrival or of its latest run; in the order of a summary. */
export const FILE_STANDINGS = [
  "delivered",
  "unconfirmed",
  "empty",
  "duplicate",
  "skipped",
  "quarantined",
  "discarded",
  "held",
  "unmatched",
  "cancelled",
  "settling",
  "pending",
] as const;

const OPEN = {
  standing: "pending",
  end: null,
  isOpen: true,
  isAccepted: false,
  isClosing: false,
  isAwaited: false,
  needsAttention: false,
  counts: [],
  tone: "plain",
} as const satisfies Partial<StateRecord<string>>;

/** Nothing is open; each state that is made of it says what it is instead. */
const CLOSED = {
  index: "runs_resting",
  isOpen: false,
  isAccepted: false,
  isClosing: false,
  isAwaited: false,
  needsAttention: false,
  counts: [],
  waitsFor: "its turn",
} as const satisfies Partial<StateRecord<string>>;

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
  // The run of a container: each of its entries is an arrival from then on, with a run of its own. When all of them
  // came to a good end its source is finished; while one did not, it rests, and is checked again when an entry changes.
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
    next: ["mapped", "empty", "emptied", "fetched", "claimed", "quarantined", "cancelled"],
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
    counts: ["stored"],
    tone: "good",
  },
  // Accepted, and it was not known in time whether it is stored: its lane continues, it is never sent again, and the
  // service is asked about it again.
  unconfirmed: {
    ...CLOSED,
    next: ["confirmed", "discarded"],
    stage: "unconfirmed",
    standing: "unconfirmed",
    end: "delivered",
    isAccepted: true,
    isAwaited: true,
    needsAttention: true,
    waitsFor: "the next query of what the service stored",
    tone: "warning",
  },
  // The file held no readings.
  empty: {
    ...CLOSED,
    next: [],
    stage: "finishing",
    standing: "empty",
    end: "delivered",
    counts: ["rejected"],
    tone: "plain",
  },
  // The file held rows, and every one of them was left out, which its trigger does not expect.
  emptied: {
    ...CLOSED,
    next: ["cancelled"],
    stage: "finishing",
    standing: "empty",
    end: "delivered",
    needsAttention: true,
    counts: ["rejected"],
    tone: "warning",
  },
  // Waits for structure, a unit or a person.
  held: {
    ...CLOSED,
    next: ["mapped", "delivering", "quarantined", "cancelled"],
    stage: "held",
    index: "runs_delivery",
    standing: "held",
    end: null,
    needsAttention: true,
    tone: "warning",
  },
  // The service accepted it and then dropped something. This may become known late, and a webhook may correct what
  // reading back had found.
  discarded: {
    ...CLOSED,
    next: ["confirmed"],
    stage: "finishing",
    standing: "discarded",
    end: "quarantined",
    isAccepted: true,
    needsAttention: true,
    counts: ["stored", "discarded"],
    tone: "bad",
  },
  // A person is needed.
  quarantined: {
    ...CLOSED,
    next: ["cancelled"],
    stage: "finishing",
    standing: "quarantined",
    end: "quarantined",
    needsAttention: true,
    counts: ["accepted", "rejected"],
    tone: "bad",
  },
  // It was given up, such as a duplicate.
  cancelled: {
    ...CLOSED,
    next: [],
    stage: "finishing",
    standing: "cancelled",
    // A duplicate ends by the rule for duplicates; what a person gave up stays.
    end: null,
    tone: "faint",
  },
} as const satisfies Readonly<Record<string, StateRecord<string>>>;

export const RUN_STATES = Object.fromEntries(
  Object.entries<StateRecord<RunState>>(RUN).map(([state, record]) => [state, factsOf(record)]),
) as Readonly<Record<RunState, RunFacts>>;

const ARRIVAL = {
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
} as const satisfies Readonly<Record<string, ArrivalFacts<string>>>;

export const ARRIVAL_STATES: Readonly<Record<ArrivalState, ArrivalFacts>> = ARRIVAL;
export const ALL_ARRIVAL_STATES = Object.keys(ARRIVAL) as readonly ArrivalState[];
export const UNCLAIMED_STATES = ALL_ARRIVAL_STATES.filter((state) => ARRIVAL_STATES[state].isUnclaimed);

const BATCH = {
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
} as const satisfies Readonly<Record<string, BatchFacts<string>>>;

export const BATCH_STATES: Readonly<Record<BatchState, BatchFacts>> = BATCH;
export const ALL_BATCH_STATES = Object.keys(BATCH) as readonly BatchState[];
export const MAY_BE_STORED_STATES = ALL_BATCH_STATES.filter((state) => BATCH_STATES[state].mayBeStored);
/** Leaves that keep their run from being accepted. */
export const NOT_ACCEPTED_STATES = ALL_BATCH_STATES.filter(
  (state) => BATCH_STATES[state].isLeaf && state !== "accepted",
);

/** The states of batches. */
export interface BatchFacts<State = BatchState> {
  readonly next: readonly State[];
  /** It waits for an answer, or to be sent. */
  readonly isUnanswered: boolean;
  /** It is at the service, or may be: the answer was lost. */
  readonly mayBeStored: boolean;
  /** The service took it, or refused it for good. */
  readonly isAnswer: boolean;
  /** It is what is sent, and not only where children came from. */
  readonly isLeaf: boolean;
}

export type BatchState = keyof typeof BATCH;

export interface ArrivalFacts<State = ArrivalState> {
  readonly next: readonly State[];
  /** No run was opened for it yet: a file that changes at its path is still the same arrival. */
  readonly isUnclaimed: boolean;
  /** Where it stands; null when its run decides. */
  readonly standing: FileStanding | null;
}

export type ArrivalState = keyof typeof ARRIVAL;

/** Where a file stands, with the state of its latest run; null for a container that was opened. */
export function standingOf(arrival: ArrivalState, run: RunState | null): FileStanding | null {
  return ARRIVAL_STATES[arrival].standing ?? (run === null ? "pending" : RUN_STATES[run].standing);
}

// The states of runs, one record each. The lists below, counts, metrics, labels, and the checks and indexes
// of the ledger derive from it.
//
// A run is `claimed` by a trigger, `fetched` into the spool, and while a worker has it, `mapping`. It is
// `mapped` when its batches are durable, `delivering` from the first send, `accepted` when the service took
// every batch, and `confirmed` when the service reported, or showed, that all is stored. What a crash or a lost spool
// interrupted returns to where it can be done again: `mapping → fetched`, and `→ claimed` when the input is lost.

export type FileStanding = (typeof FILE_STANDINGS)[number];

/** How an arrival ended at its drop. Each end has a rule of its own. */
export type End = "delivered" | "quarantined" | "unmatched" | "duplicate";

/** The queue of the scheduler that takes runs of a state. */
export type RunStage = "intake" | "delivery" | "containers" | "held" | "confirming" | "unconfirmed" | "finishing";

interface StateRecord<State> {
  /** The states that may follow. */
  readonly next: readonly State[];
  /** Null where no step takes the run, since a worker has it. */
  readonly stage: RunStage | null;
  /**
   * The index that the ledger keeps it in: `runs_intake` until it is mapped, since what it will deliver is
   * not known before; `runs_resting` when nothing is left to be delivered.
   */
  readonly index: "runs_intake" | "runs_delivery" | "runs_resting";
  /** Where its file stands; null for a container, whose entries are counted. */
  readonly standing: FileStanding | null;
  /**
   * How its source ends at the drop; null while it does not, and where that depends on more than the state.
   */
  readonly end: End | null;
  /** Neither accepted nor at rest: later runs of the lane that share a target wait for it. */
  readonly isOpen: boolean;
  /** The service took every batch, whatever became of them then. */
  readonly isAccepted: boolean;
  /**
   * While it is not settled, something is awaited that is certain to come: an outcome, or the end of entries.
   */
  readonly isClosing: boolean;
  /** The service is still asked what it stored. */
  readonly isAwaited: boolean;
  /** A person has to see to it. */
  readonly needsAttention: boolean;
  /**
   * The points that are final once a run comes to this state, for the metrics; those that are mapped are
   * counted with their batches.
   */
  readonly counts: readonly ("accepted" | "stored" | "rejected" | "discarded")[];
  /** The reason why a run waits, when no other one is known. */
  readonly waitsFor: string;
  readonly tone: "plain" | "good" | "warning" | "bad" | "faint";
}

/** With the facts that follow from the others. */
export interface RunFacts extends StateRecord<RunState> {
  /** Its readings are still to be delivered: open, or held. */
  readonly isInProgress: boolean;
  /** The service took every batch, and nothing of them is known to be lost. */
  readonly isDelivered: boolean;
  /** Nothing is left to do but to finish the source. */
  readonly isAtRest: boolean;
}

export type RunState = keyof typeof RUN;

function factsOf(record: StateRecord<RunState>): RunFacts {
  const { index, isAccepted, isClosing, isAwaited, end } = record;
  const isInProgress = index !== "runs_resting";
  const isDelivered = isAccepted && end === "delivered";
  return { ...record, isInProgress, isDelivered, isAtRest: !isInProgress && !isClosing && !isAwaited };
}

/** States that need a person, as a type: each has words of its own in notifications. */
export type AttentionState = {
  [State in RunState]: (typeof RUN)[State]["needsAttention"] extends true ? State : never;
}[RunState];

export const ALL_RUN_STATES = Object.keys(RUN_STATES) as readonly RunState[];

/** The states of which this is true, in their order. */
export function runStatesThat(
  isOne: (facts: RunFacts, state: RunState) => boolean,
): readonly [RunState, ...RunState[]] {
  const [first, ...others] = ALL_RUN_STATES.filter((state) => isOne(RUN_STATES[state], state));
  if (first === undefined) throw new RangeError("no state of a run is like that");
  return [first, ...others];
}

/** The batches of the run are not known yet. */
export const UNMAPPED_STATES = runStatesThat(({ index }) => index === "runs_intake");
export const OPEN_STATES = runStatesThat(({ isOpen }) => isOpen);
/** Open, and fetched: the spool has the input, or the batches. */
export const STARTED_STATES = runStatesThat(({ isOpen }, state) => isOpen && state !== "claimed");
export const IN_PROGRESS_STATES = runStatesThat(({ isInProgress }) => isInProgress);
/** With batches to deliver, and none of them refused. */
export const DELIVERABLE_STATES = runStatesThat(({ stage }) => stage === "delivery");
/** They left the front of their lane with what they have to deliver. */
export const ASIDE_STATES = runStatesThat(({ index, isOpen }) => index === "runs_delivery" && !isOpen);
export const ACCEPTED_STATES = runStatesThat(({ isAccepted }) => isAccepted);
/** Something of it was sent, and not refused as a whole. */
export const SENT_STATES = runStatesThat(({ isAccepted }, state) => isAccepted || state === "delivering");
/** The service may have accepted some of its batches. */
export const TOUCHED_STATES = runStatesThat(
  ({ end }, state) =>
    SENT_STATES.includes(state) || end === "quarantined" || RUN_STATES.delivering.next.includes(state),
);
export const CLOSING_STATES = runStatesThat(({ isClosing }) => isClosing);
export const AT_REST_STATES = runStatesThat(({ isAtRest }) => isAtRest);
/** Ended without all its readings delivered: rests until a person, or what it waits for, changes that. */
export const UNDELIVERED_STATES = runStatesThat(({ isOpen, end }) => !isOpen && end !== "delivered");
/** Runs that a person may have processed again. */
export const REPLAYABLE_STATES = runStatesThat(({ isOpen, standing }) => !isOpen && standing !== null);
export const CANCELLABLE_STATES = runStatesThat(({ next }) => next.includes("cancelled"));
/** Their service is needed for what comes next. */
export const NEEDS_SERVICE_STATES = runStatesThat(({ stage, isAwaited }) => stage === "delivery" || isAwaited);
/** How a run leaves the front of its lane. */
export const LEAVES_LANE_STATES = runStatesThat(
  ({ isOpen }, state) => !isOpen && OPEN_STATES.some((open) => RUN_STATES[open].next.includes(state)),
);

export const ATTENTION_STATES = runStatesThat(({ needsAttention }) => needsAttention) as readonly [
  AttentionState,
  ...AttentionState[],
];

/** When the source of a delivered run may be archived or deleted. */
export const FINISH_AFTER = ["accepted", "confirmed"] as const satisfies readonly RunState[];
export type FinishAfter = (typeof FINISH_AFTER)[number];
