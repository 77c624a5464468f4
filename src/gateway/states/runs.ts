/**
 * The states of runs, one record each. The lists in `run-lists.ts`, counts, metrics, labels, and the checks and indexes
 * of the ledger derive from it.
 *
 * A run is `claimed` by a trigger, `fetched` into the spool, and while a worker has it, `mapping`. It is
 * `mapped` when its batches are durable, `delivering` from the first send, `accepted` when the service took
 * every batch, and `confirmed` when the service reported, or showed, that all is stored. What a crash or a lost spool
 * interrupted returns to where it can be done again: `mapping → fetched`, and `→ claimed` when the input is lost.
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

export type RunState = keyof typeof RUN;
export const RUN_STATES = Object.fromEntries(
  Object.entries<StateRecord<RunState>>(RUN).map(([state, record]) => [state, factsOf(record)]),
) as Readonly<Record<RunState, RunFacts>>;

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
