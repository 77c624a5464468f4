/** The part of the ledger's contract that is about one poll of one drop. */
import type { Arrival, FileEntry, IsoInstant } from "../model.ts";
import type { ArrivalAge } from "./ledger.ts";

/** Collects one listing and compares it with what is known, without holding it in memory. */
export interface PollRecord {
  /** Folders that are or were archives of the drop. */
  readonly archives: readonly string[];
  /** Whether a run is one of this drop, or of nobody that the ledger knows. */
  ownsRun(id: string): Promise<boolean>;
  /** No listing of this drop was ever complete with this ledger: what it shows lay there before. */
  readonly firstContact: boolean;
  /**
   * Whether a file at this path lay there at the first contact. While no listing was complete, what is in a folder that an earlier one showed in
   * full is new, and so is a folder that came to such a folder since.
   */
  layBefore(path: string): boolean;
  /** The listing has shown all of this folder ("" for the root), and these folders in it. */
  folderListed(folder: string, below: readonly string[]): void;
  /**
   * The listing broke off; before `abandon`. What settles and was not shown is awaited, also what was awaited before; since when is durable,
   * and never changes. What settles in a folder that was shown in full, and was not shown, is missing there, and has gone when the
   * listing of its folder before did not show it either; nothing else is missing. `isAwaited`: whether anybody waits for such a path.
   * `isRecorded`: all that was listed came to `record`; otherwise no folder was shown in full.
   */
  cutShort(isAwaited: (path: string) => boolean, isRecorded: boolean): Promise<CompletePoll>;
  /**
   * Takes the next entries of the listing. For each: the arrival that lies at this path, which is new (`settling`) when the path
   * was not known or had gone, or when size or mtime differ and the earlier version had been taken; an arrival that
   * is still `settling` or `unmatched` takes over the new size and mtime (`changed`). Answers what is `settling` now; what
   * lies at rest as it did is not told.
   */
  record(entries: readonly FileEntry[]): Promise<readonly Sighting[]>;
  /**
   * The listing was complete, some in each transaction: what it did not show is missing, and has gone when the complete listing before
   * did not show it either. One listing alone may have been cut without a sign of it: what settles and is missing is awaited, unless
   * `isAwaited` says that nobody waits for such a path.
   */
  complete(isAwaited?: (path: string) => boolean): Promise<CompletePoll>;
  /** The listing broke off: nothing has gone. */
  abandon(): Promise<void>;
}

export interface CompletePoll {
  /** Ids of the arrivals that have gone. */
  readonly gone: readonly number[];
  /** How many are missing for the first time. */
  readonly missing: number;
  /** Those that are missing now, or were awaited by an earlier poll, and have neither settled nor gone since. */
  readonly awaited: readonly AwaitedArrival[];
}

/** Later arrivals of its lane wait for it, for a time that begins with `since`. */
export interface AwaitedArrival extends ArrivalAge {
  readonly seenAt: IsoInstant;
  readonly since: IsoInstant;
}

export interface Sighting {
  readonly arrival: Arrival;
  readonly seen: "new" | "changed" | "known";
}
