/** The interfaces that pickup requires. */

import type { Clock } from "#core/clock.ts";
import type { Arrival, ArrivalState, FileEntry, UntakenFile } from "../model.ts";
import type { KnownArchives } from "./archived-names.ts";
import type { Drop } from "./drop.ts";
import type { DropOptions } from "./options.ts";
import type { Aged, Awaited } from "./order-waits.ts";

/** The part of the ledger that pickup requires; `Ledger` has this shape. */
export interface PickupJournal {
  /** `archives`: the present archive folders of the drop. */
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
  readonly session: number | null;
  wasThere(path: string): boolean;
  noteAtRest(id: number): boolean;
  folderListed(folder: string, below: readonly string[]): void;
  cutShort(isAwaited: (path: string) => boolean, isRecorded: boolean): Promise<ListingEnd>;
  record(
    entries: readonly FileEntry[],
    onId?: (entry: FileEntry, id: number) => void,
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
 * Matches settled arrivals against the triggers, and opens their runs, in the given order, or marks them
 * unmatched; afterwards they are no longer `settling`. `warnings`, by their ids, are recorded with their
 * runs. An error ends the poll, after the other arrivals were claimed: those that are still `settling` are
 * offered again.
 */
type Claim = (arrivals: readonly Arrival[], warnings?: ReadonlyMap<number, string>) => Promise<void>;

export interface PickupFacts {
  readonly drop: Drop;
  readonly options: Pick<DropOptions, "settle" | "temporaryNames" | "perPollMax" | "initial"> &
    Partial<Pick<DropOptions, "order" | "finish">>;
  readonly journal: PickupJournal;
  readonly claim: Claim;
  /**
   * The lanes of a file at this path of a drop (this one when absent); without this function, no file waits
   * for another.
   */
  readonly lanesOf?: (path: string, drop?: string) => readonly string[];
  /** Other drops whose files may belong to the same lanes. */
  readonly laneMates?: () => readonly Pick<Drop, "name" | "modifiedMs">[];
  readonly clock: Clock;
  /** Number of settled files whose ages are kept for later pickups. */
  readonly agesKept?: number;
  /** A file has not settled within the drop's limit; called once per file. */
  readonly onOverdue?: (file: UntakenFile) => void;
}
