/** What pick-up needs of the others. */
import type { Arrival, ArrivalState, FileEntry, IsoInstant } from "../model.ts";
import type { KnownArchives } from "./archived-names.ts";
import type { Aged } from "./oldest.ts";
import type { Awaited } from "./order-waits.ts";

/** What pick-up needs of the ledger; `Ledger` has this shape. */
export interface PickupJournal {
  /** `archives`: folders that are archives of the drop now. */
  beginPoll(drop: string, archives: readonly string[]): Promise<PickupPoll>;
  advanceArrival(id: number, to: ArrivalState, reason: string): Promise<Arrival>;
  arrivals(ids: readonly number[]): Promise<readonly Arrival[]>;
  arrivalsIn(
    drop: string,
    states: readonly ArrivalState[],
    limit?: number,
    after?: number,
  ): Promise<readonly Arrival[]>;
  settlingAges(drop: string, limit: number, after: number): Promise<readonly Aged[]>;
  awaited(drop: string): Promise<readonly Awaited[]>;
}

export interface PickupPoll extends KnownArchives {
  wasThere(path: string): boolean;
  folderListed(folder: string, below: readonly string[]): void;
  cutShort(isAwaited: (path: string) => boolean, isRecorded: boolean): Promise<ListingEnd>;
  record(
    entries: readonly FileEntry[],
  ): Promise<readonly { readonly arrival: Arrival; readonly seen: "new" | "changed" | "known" }[]>;
  complete(isAwaited: (path: string) => boolean): Promise<ListingEnd>;
  abandon(): Promise<void>;
}

export interface ListingEnd {
  readonly gone: readonly number[];
  readonly missing: number;
  readonly awaited: readonly Awaited[];
}

/**
 * Matches settled arrivals against the triggers, and opens their runs, in the order in which they are given, or marks them unmatched;
 * afterwards they are no longer `settling`. `warnings`, by their ids, are told with their runs. What it throws ends the poll, when the others of them are claimed: those that are
 * still `settling` are offered again.
 */
export type Claim = (arrivals: readonly Arrival[], warnings?: ReadonlyMap<number, string>) => Promise<void>;

/** For `runs --waiting`: a file that is not taken yet, and why. */
export interface WaitingFile {
  readonly path: string;
  readonly reason: string;
  /** Since this process has looked. */
  readonly waitingMs: number;
  /** When the file was first seen. */
  readonly since: IsoInstant;
  readonly overdue: boolean;
}
