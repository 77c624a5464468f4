/** The states of arrivals. See `states.ts` for their meaning. */
import { type FileStanding, RUN_STATES, type RunState } from "./runs.ts";

export interface ArrivalFacts<State = ArrivalState> {
  readonly next: readonly State[];
  /** No run was opened for it yet: a file that changes at its path is still the same arrival. */
  readonly isUnclaimed: boolean;
  /** Where it stands; null when its run decides. */
  readonly standing: FileStanding | null;
}

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

export type ArrivalState = keyof typeof ARRIVAL;
export const ARRIVAL_STATES: Readonly<Record<ArrivalState, ArrivalFacts>> = ARRIVAL;

/** Where a file stands, with the state of its latest run; null for a container that was opened. */
export function standingOf(arrival: ArrivalState, run: RunState | null): FileStanding | null {
  return ARRIVAL_STATES[arrival].standing ?? (run === null ? "pending" : RUN_STATES[run].standing);
}

export const ALL_ARRIVAL_STATES = Object.keys(ARRIVAL) as readonly ArrivalState[];
export const UNCLAIMED_STATES = ALL_ARRIVAL_STATES.filter((state) => ARRIVAL_STATES[state].isUnclaimed);
