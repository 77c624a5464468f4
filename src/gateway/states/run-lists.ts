/** The lists of states of runs, which derive from their records. */
import { type AttentionState, RUN_STATES, type RunFacts, type RunState } from "./runs.ts";

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
