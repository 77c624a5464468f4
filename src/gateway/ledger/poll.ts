/** The contract of the ledger for one poll of one drop. */
import type { Arrival, FileEntry, IsoInstant } from "../model.ts";
import type { ArrivalAge } from "./ledger.ts";

/** Collects one listing and compares it with the known arrivals, without holding it in memory. */
export interface PollRecord {
  /** Folders that are or were archives of the drop. */
  readonly archives: readonly string[];
  /** The fence of the node that polls; null for a lone owner. While it is the same, no other node polls this drop. */
  readonly session: number | null;
  /** Whether a run belongs to this drop, or is unknown to the ledger. */
  ownsRun(id: string): Promise<boolean>;
  /**
   * True while no listing of this drop was ever complete with this ledger: a file that it shows was there
   * before.
   */
  readonly firstContact: boolean;
  /**
   * Whether a file at this path was there at the first contact. While no listing was complete, a file in a
   * folder that an earlier one showed in full is new, and so is a folder that was added to such a folder
   * since.
   */
  wasThere(path: string): boolean;
  /** The listing has shown all of this folder ("" for the root), and these subfolders. */
  folderListed(folder: string, below: readonly string[]): void;
  /**
   * The listing broke off; call it before `abandon`. A settling arrival that was not shown is awaited, also
   * one that was awaited before; the time since when is durable, and never changes. A settling arrival in a
   * folder that was shown in full, and that was not shown itself, is missing, and has gone when the previous
   * listing of its folder did not show it either; nothing else is missing. `isAwaited`: whether a later
   * arrival waits for such a path. `isRecorded`: all listed entries reached `record`; otherwise no folder was
   * shown in full.
   */
  cutShort(isAwaited: (path: string) => boolean, isRecorded: boolean): Promise<CompletePoll>;
  /**
   * Takes the next entries of the listing. For each it finds the arrival at this path, which is new
   * (`settling`) when the path was unknown or had gone, or when size or mtime differ and the earlier version
   * had been taken; an arrival that is still `settling` or `unmatched` takes over the new size and mtime
   * (`changed`). Returns the arrivals that are `settling` now; unchanged arrivals at rest are left out. `onId` is
   * called for each entry with the id of its arrival, once that is recorded.
   */
  record(entries: readonly FileEntry[], onId?: (entry: FileEntry, id: number) => void): Promise<readonly Sighting[]>;
  /**
   * Counts an entry that an earlier poll of this session recorded as recorded by this one, if its arrival was at rest
   * when this poll began. False: it settles, has gone, or is missing, and must be recorded.
   */
  noteAtRest(id: number): boolean;
  /**
   * The listing was complete; the changes are written in several transactions. An arrival that it did not
   * show is missing, and has gone when the previous complete listing did not show it either. A single listing
   * may have been cut without a sign of it: a settling arrival that is missing is awaited, unless `isAwaited`
   * returns false for its path.
   */
  complete(isAwaited?: (path: string) => boolean): Promise<CompletePoll>;
  /** The listing broke off: no arrival has gone. */
  abandon(): Promise<void>;
}

export interface CompletePoll {
  /** Ids of the arrivals that have gone. */
  readonly gone: readonly number[];
  /** Number of arrivals that are missing for the first time. */
  readonly missing: number;
  /**
   * Arrivals that are missing now, or were awaited by an earlier poll, and have neither settled nor gone
   * since.
   */
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
