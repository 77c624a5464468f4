/**
 * The states of runs: one record a state, and the lists that derive from them. See `states.ts` for their
 * meaning.
 */
import type { End, FileStanding, Points, RunState } from "../model.ts";

/** The queue of the scheduler that takes runs of a state. */
export type RunStage = "intake" | "delivery" | "containers" | "held" | "confirming" | "unconfirmed" | "finishing";

export interface RunFacts {
  /** The states that may follow. */
  readonly next: readonly RunState[];
  /** Null where no step takes the run, since a worker has it. */
  readonly stage: RunStage | null;
  /**
   * The index that the ledger keeps it in: `runs_intake` until it is mapped, since what it will deliver is
   * not known before.
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
  /** Its readings are still to be delivered: open, or held. */
  readonly isInProgress: boolean;
  /** The service took every batch, whatever became of them then. */
  readonly isAccepted: boolean;
  /** The service took every batch, and nothing of them is known to be lost. */
  readonly isDelivered: boolean;
  /**
   * While it is not settled, something is awaited that is certain to come: an outcome, or the end of entries.
   */
  readonly isClosing: boolean;
  /** The service is still asked what it stored. */
  readonly isAwaited: boolean;
  /** Nothing is left to do but to finish the source. */
  readonly isAtRest: boolean;
  /** A person has to see to it. */
  readonly needsAttention: boolean;
  /**
   * The points that are final once a run comes to this state, for the metrics; those that are mapped are
   * counted with their batches.
   */
  readonly counts: readonly Exclude<keyof Points, "mapped">[];
  /** The reason why a run waits, when no other one is known. */
  readonly waitsFor: string;
  readonly tone: "plain" | "good" | "warning" | "bad" | "faint";
}

const OPEN = {
  standing: "pending",
  end: null,
  isOpen: true,
  isInProgress: true,
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
  isInProgress: false,
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
    isInProgress: true,
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

/** The batches of the run are not known yet. */
export const UNMAPPED_STATES = runStatesThat(({ index }) => index === "runs_intake");
export const OPEN_STATES = runStatesThat(({ isOpen }) => isOpen);
/** Open, and fetched: the spool has the input, or the batches. */
export const STARTED_STATES = runStatesThat(({ isOpen }, state) => isOpen && state !== "claimed");
export const IN_PROGRESS_STATES = runStatesThat(({ isInProgress }) => isInProgress);
/** With batches to deliver, and none of them refused. */
export const DELIVERABLE_STATES = runStatesThat(({ stage }) => stage === "delivery");
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
