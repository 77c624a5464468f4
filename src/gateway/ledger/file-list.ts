/** The part of the ledger that lists and finds files for people, and counts what needs attention by its cause. */
import type { Arrival, FileStanding, IsoInstant, LedgerEvent, Run, RunState } from "../model.ts";
import type { TargetKey, TracedFile } from "./ledger-records.ts";

export interface FileFilter {
  /** A part of the path; ASCII letters match in either case. */
  readonly text?: string | undefined;
  /** Only files with readings of one of these targets, as far as their runs were mapped. */
  readonly targets?: readonly TargetKey[] | undefined;
  readonly standing?: FileStanding | undefined;
  readonly drop?: string | undefined;
  readonly trigger?: string | undefined;
  /** First seen at this instant or later. */
  readonly from?: IsoInstant | undefined;
  /** First seen before this instant. */
  readonly to?: IsoInstant | undefined;
  /** `next` of the part before. */
  readonly after?: string | undefined;
  readonly limit: number;
}

export interface ListedFile {
  readonly arrival: Arrival;
  /** The latest run. */
  readonly run: Run | null;
}

export interface FileListPart {
  /**
   * Newest first; by the latest run when the filter is about runs. The first part of a search that ends early has
   * beside them the older files whose names begin with the text, which an index finds; they are found again later.
   */
  readonly files: readonly ListedFile[];
  /**
   * Null at the end of the list. A search that takes long ends early, with fewer files than asked for, and continues
   * from here.
   */
  readonly next: string | null;
  /** Where `next` is given: files that were first seen later than this have been searched. */
  readonly searchedTo: IsoInstant | null;
}

/** A run that needs a person, with the facts that its cause is known by. */
export interface RestingCase {
  readonly run: string;
  readonly arrivalId: number;
  readonly state: RunState;
  readonly drop: string;
  readonly trigger: string;
  /** Name and version. */
  readonly mapper: string;
  readonly changedAt: IsoInstant;
  readonly code: string | null;
  readonly message: string;
  readonly hint: string | null;
}

/** The unmatched files of a drop, which need a trigger; without those that are expected. */
export interface UnmatchedCount {
  readonly count: number;
  /** When the first and the last of them were found to be unmatched. */
  readonly oldest: IsoInstant | null;
  readonly newest: IsoInstant | null;
}

export interface EventPart {
  readonly events: readonly (LedgerEvent & { readonly drop: string; readonly path: string })[];
  /** Number of the newest event. */
  readonly last: number;
}

/** The first of some files. */
export interface CountedFiles {
  readonly files: readonly ListedFile[];
  /** How many there are. */
  readonly total: number;
}

export interface FileList {
  list(filter: FileFilter): Promise<FileListPart>;
  /** The files of an operationId, of the prefix of operationIds, of a run, or of the beginning of a run's id. */
  identified(query: string, limit: number): Promise<readonly ListedFile[]>;
  /** These files, in the order of the ids; without those that are unknown. */
  byId(ids: readonly number[]): Promise<readonly ListedFile[]>;
  /** The whole life of one file, or null. */
  life(arrivalId: number): Promise<TracedFile | null>;
  /** Other versions of a file, newest first. */
  versions(arrival: Arrival, limit: number): Promise<CountedFiles>;
  /** The entries of a container. */
  entries(arrivalId: number, limit: number): Promise<CountedFiles>;
  /**
   * The latest runs of files in these states that no newer version has replaced, newest first. `known`: cases of an
   * earlier answer, by run, which are returned again where the run has not changed since. They are read in parts, so
   * that no statement occupies the process for long: a run that changes meanwhile is found in the next answer.
   */
  resting(
    states: readonly RunState[],
    limit: number,
    known?: ReadonlyMap<string, RestingCase>,
  ): Promise<readonly RestingCase[]>;
  /** Counted without being read, up to `most`. */
  unmatchedCount(drop: string, most: number): Promise<UnmatchedCount>;
  /** Newest first: those whose id is lower than `before`. */
  unmatched(drop: string, limit: number, before?: number): Promise<readonly Arrival[]>;
  /**
   * Events of all nodes that were added after the one with this number, oldest first; of very many the newest. Null:
   * the number alone from which to continue. A transaction that takes long may add one that is passed over.
   */
  eventsAfter(after: number | null, limit: number): Promise<EventPart>;
  /** Selects the runs whose file a newer version has replaced: its sender has resolved them. */
  replaced(runs: readonly string[]): Promise<ReadonlySet<string>>;
}
