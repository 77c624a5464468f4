/** The result of one poll of a drop. */
export interface PickupReport {
  /** Files in the listing. */
  readonly listed: number;
  /** Files whose size or time may still change. */
  readonly settling: number;
  /** Files under temporary names, or without their done-file: they wait for their sender. */
  readonly temporary: number;
  /** Files left alone: at first contact by the drop's rule, and done-files. */
  readonly skipped: number;
  /** Settling and temporary files that wait longer than the drop's limit. */
  readonly overdue: number;
  /** Files that were passed to `claim`. */
  readonly claimed: number;
  /** Settled files beyond the limit of one poll; the next poll continues with them. */
  readonly left: number;
  /**
   * Milliseconds until a file no longer waits for one that cannot be listed; null when none waits for that.
   */
  readonly orderWaitMs: number | null;
  /** Arrivals that have gone: two complete listings in a row did not show them. */
  readonly gone: number;
  /** Arrivals that this listing did not show and the previous one did. */
  readonly missing: number;
  /** The error of an interrupted listing or a failed claim; then the poll is not complete. */
  readonly error?: unknown;
}

export const NOTHING: PickupReport = {
  listed: 0,
  settling: 0,
  temporary: 0,
  skipped: 0,
  overdue: 0,
  claimed: 0,
  left: 0,
  orderWaitMs: null,
  gone: 0,
  missing: 0,
};
