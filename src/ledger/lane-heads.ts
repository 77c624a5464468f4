/** What the ledger tells of the front of each lane: what later runs wait for, and since when it has not moved. */
import type { IsoInstant, Run } from "../model.ts";

/** The first run of a lane that is neither accepted nor at rest, or the container in front of it whose entries have no runs yet. */
export interface LaneHead {
  readonly run: Run;
  /** The lane that it heads; a container may head another one than its own. */
  readonly lane: string;
  /** Later runs of the lane that are not delivered yet and are not being delivered. */
  readonly behind: number;
}

export interface LaneHeads {
  /** One for each lane that has work, the oldest first. */
  list(): Promise<readonly LaneHead[]>;
  /** When the run last came to another state, or had a batch accepted. A repeated note of why it waits does not count. */
  movedAt(run: Run): Promise<IsoInstant>;
  /** When an earlier run of the lane last left the front, as far as that was after `since`; null when none did. */
  aheadLeftAt(head: LaneHead, since: IsoInstant): Promise<IsoInstant | null>;
}
