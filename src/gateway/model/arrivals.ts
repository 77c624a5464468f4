/** Versions of files at drops. */
import type { ArrivalState } from "../states.ts";
import type { IsoInstant } from "./time.ts";

export interface Arrival {
  /** Increases with the order of first sighting; lanes deliver in this order. */
  readonly id: number;
  /** The container whose entry the arrival is; null for a file at the drop itself. */
  readonly parentId: number | null;
  readonly drop: string;
  /** Path of an entry: `<path of the container>!/<path in it>`. */
  readonly path: string;
  readonly size: number;
  readonly mtime: string;
  /** Known after the fetch. */
  readonly sha256: string | null;
  readonly state: ArrivalState;
  /** The reason for the state, in words. */
  readonly reason: string;
  readonly seenAt: IsoInstant;
  readonly changedAt: IsoInstant;
  /** When the file was archived, deleted or vanished from the listing; null while it is at the drop. */
  readonly goneAt: IsoInstant | null;
  /**
   * Of an unmatched file that no person has to see to: its drop expects such files, or the trigger that may claim it is
   * paused or not known yet.
   */
  readonly isExpected?: boolean;
}
