/**
 * The part of the ledger about the front of each lane: the run that later runs wait for, and since when it
 * has not moved.
 */
import type { IsoInstant, Run } from "../model.ts";

/**
 * The first run of a lane that is neither accepted nor at rest, or the container in front of it whose entries
 * have no runs yet.
 */
export interface LaneHead {
  readonly run: Run;
  /** The lane whose head this is; a container may head another lane than its own. */
  readonly lane: string;
  /** Number of later runs of the lane that are not delivered and not being delivered. */
  readonly behind: number;
}

export interface LaneHeads {
  /** One for each lane that has work, the oldest first. */
  list(): Promise<readonly LaneHead[]>;
  /**
   * When the run last changed its state, or had a batch accepted. A repeated note of its wait reason does not
   * count.
   */
  movedAt(run: Run): Promise<IsoInstant>;
  /** When an earlier run of the lane last left the front after `since`; null when none did. */
  aheadLeftAt(head: LaneHead, since: IsoInstant): Promise<IsoInstant | null>;
}
