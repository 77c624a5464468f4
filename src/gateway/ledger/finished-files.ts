/**
 * The part of the ledger about source files after their end: which of them are still watched at their present
 * places, which folders are or were archives of a drop, and how long writers paused. Writes about a drop are
 * refused (`HG-LEDG-010`) while another node polls it.
 */
import type { FinishPlan, IsoInstant } from "../model.ts";

/** A finished file that is still watched. */
export interface FinishedFile {
  readonly drop: string;
  /**
   * Present place of the file, relative to the drop's root: its path, a name beside it, or its place in the
   * archive.
   */
  readonly place: string;
  /** Path from which it came. */
  readonly path: string;
  readonly arrivalId: number;
  readonly runId: string | null;
  readonly size: number;
  readonly mtime: string;
  /**
   * Distinguishes the file from another one at the same place, where the drop provides an identity (device
   * and inode); null while it is unknown.
   */
  readonly identity: string | null;
  /** Digest of the fetched bytes; null for a file that was not fetched. */
  readonly sha256: string | null;
  /** The finish steps that the file still needs. */
  readonly plan: FinishPlan;
  /** Other content was found at the place: the file returns to its path, to be processed as a new version. */
  readonly changed: boolean;
  /** Since when another file at its path prevents the return; null while nothing prevents it. */
  readonly occupiedSince: IsoInstant | null;
  readonly begunAt: IsoInstant;
  readonly endsAt: IsoInstant;
  readonly checkAt: IsoInstant;
}

/** The facts with which the watch of a file begins. */
export type NewFinishedFile = Pick<FinishedFile, "place" | "identity" | "plan" | "endsAt" | "checkAt">;

/** Absent facts stay unchanged. */
export interface FinishedFileChange {
  readonly place?: string;
  readonly size?: number;
  readonly mtime?: string;
  readonly identity?: string | null;
  readonly plan?: FinishPlan;
  readonly changed?: boolean;
  readonly occupiedSince?: IsoInstant;
  readonly endsAt?: IsoInstant;
  readonly checkAt?: IsoInstant;
  /** The watch has ended. */
  readonly ended?: boolean;
  /** The file has left its path. */
  readonly left?: boolean;
  /** An event in the history of the file, such as `source.deleted`. */
  readonly event?: { readonly what: string; readonly detail: string };
}

export interface GrowthPause {
  readonly path: string;
  readonly pauseMs: number;
  readonly at: IsoInstant;
}

/** A file that its finish has moved, as the last event about its place says. */
export interface PlacedFile {
  readonly arrivalId: number;
  readonly path: string;
  /** Relative to the drop's root. */
  readonly place: string;
}

export interface FinishedFiles {
  /**
   * Begins to watch a file that has no run, with the event; when its place differs from its path, it has left
   * the path. The file of a run is watched by `noteRun`.
   */
  watch(
    file: NewFinishedFile & Pick<FinishedFile, "drop" | "path" | "arrivalId" | "size" | "mtime">,
    event: { readonly what: string; readonly detail: string },
  ): Promise<void>;
  /**
   * Files of a drop whose check is due by then, the earliest first, up to the limit; and all files that wait
   * at their own paths after a later version arrived there.
   */
  due(drop: string, by: IsoInstant, limit: number): Promise<readonly FinishedFile[]>;
  /** The file of an arrival that is watched, or null. */
  of(arrivalId: number): Promise<FinishedFile | null>;
  /**
   * Files of a drop that their finish has moved, in the order of arrivals after `after`: as many as there are among the
   * next `limit` arrivals. `next` is null after the last of them.
   */
  placed(
    drop: string,
    after: number,
    limit: number,
  ): Promise<{ readonly files: readonly PlacedFile[]; readonly next: number | null }>;
  /** Files of all drops that cannot return to their paths. */
  occupied(): Promise<readonly FinishedFile[]>;
  /** Records a finding about a file, or a step that was done to it. */
  change(file: FinishedFile, change: FinishedFileChange): Promise<void>;
  /** Postpones the next check of several unchanged files, in one transaction. */
  postpone(drop: string, checks: readonly Pick<FinishedFile, "place" | "identity" | "checkAt">[]): Promise<void>;
  /** Adds the given folders, and returns all folders that are or were archives of the drop. */
  archives(drop: string, folders?: readonly string[]): Promise<readonly string[]>;
  /** Records the pause when it is longer than the known one. */
  noteGrowthPause(drop: string, path: string, pauseMs: number): Promise<void>;
  growthPause(drop: string): Promise<GrowthPause | null>;
}
