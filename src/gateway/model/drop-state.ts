/** The state of the polls of one drop, for health, metrics and operators. */
import type { DropKind } from "./drops.ts";
import type { IsoInstant } from "./time.ts";

export interface DropState {
  readonly drop: string;
  readonly kind: DropKind;
  /** When a poll last ended without an error. */
  readonly lastCompletePoll: IsoInstant | null;
  /** The reason of a pause by an operator; null while the drop is polled. */
  readonly paused: string | null;
  readonly completePolls: number;
  readonly consecutiveFailures: number;
  readonly lastError: {
    readonly code: string | null;
    readonly message: string;
    readonly hint: string | null;
  } | null;
  /** Null while polling, and when stopped. */
  readonly nextPollAt: IsoInstant | null;
  readonly inProgress: boolean;
  /** Files that will be picked up when they have settled. */
  readonly settlingCount: number;
  /** Files under temporary names or without their done-file; they wait for their sender. */
  readonly temporaryCount: number;
  /** Files that wait longer than the drop's limit. */
  readonly overdueCount: number;
  /** Settled files left for the next poll. */
  readonly leftCount: number;
  /** Files that the last listing did not show for the first time; the next one decides whether they have gone. */
  readonly missingCount: number;
  /** Files that are not taken yet, and why; the first of them when there are many. */
  readonly waiting: readonly UntakenFile[];
  /**
   * Whether file-system events make polls come sooner; null when that is unknown, and where there are none.
   */
  readonly eventsArrive: boolean | null;
}

/** For `runs --waiting`: a file that is not picked up yet, and why. */
export interface UntakenFile {
  readonly path: string;
  readonly reason: string;
  /** Since the first observation by this process. */
  readonly waitingMs: number;
  /** When the file was first seen. */
  readonly since: IsoInstant;
  readonly overdue: boolean;
}
