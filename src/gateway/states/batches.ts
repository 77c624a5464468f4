/** The states of batches. See `states.ts` for their meaning. */
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

export type BatchState = keyof typeof BATCH;
export const BATCH_STATES: Readonly<Record<BatchState, BatchFacts>> = BATCH;

export const ALL_BATCH_STATES = Object.keys(BATCH) as readonly BatchState[];
export const MAY_BE_STORED_STATES = ALL_BATCH_STATES.filter((state) => BATCH_STATES[state].mayBeStored);
/** Leaves that keep their run from being accepted. */
export const NOT_ACCEPTED_STATES = ALL_BATCH_STATES.filter(
  (state) => BATCH_STATES[state].isLeaf && state !== "accepted",
);
