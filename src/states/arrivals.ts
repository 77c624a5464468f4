/** The states of arrivals. See `states.ts` for their meaning. */
import type { ArrivalState, FileStanding } from "../model.ts";

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
