/**
 * What of the ledger is about source files after their end: which of them are still watched where they are now, which folders
 * are or were archives of a drop, and how long writers paused. Writes about a drop are refused (`HG-LEDG-010`) while another node polls it.
 */
import type { FinishPlan, IsoInstant } from "../model.ts";

/** A finished file that is still watched. */
export interface FinishedFile {
  readonly drop: string;
  /** Where it is now, relative to the drop's root: its path, a name aside, or its place in the archive. */
  readonly place: string;
  /** Where it came from. */
  readonly path: string;
  readonly arrivalId: number;
  readonly runId: string | null;
  readonly size: number;
  readonly mtime: string;
  /** What tells the file from another one at the same place, where the drop knows (device and inode); null while that is unknown. */
  readonly identity: string | null;
  /** Of the bytes that were fetched; null where nothing was fetched. */
  readonly sha256: string | null;
  /** What is still to be done to it. */
  readonly plan: FinishPlan;
  /** Other content was found there: it goes back to its path, to be taken as a whole. */
  readonly changed: boolean;
  /** Since when it cannot go back, as another file is at its path; null while nothing keeps it. */
  readonly occupiedSince: IsoInstant | null;
  readonly begunAt: IsoInstant;
  readonly endsAt: IsoInstant;
  readonly lookAt: IsoInstant;
}

/** How a file begins to be watched. */
export type NewFinishedFile = Pick<FinishedFile, "place" | "identity" | "plan" | "endsAt" | "lookAt">;

/** Facts that are absent stay as they are. */
export interface FinishedFileChange {
  readonly place?: string;
  readonly size?: number;
  readonly mtime?: string;
  readonly identity?: string | null;
  readonly plan?: FinishPlan;
  readonly changed?: boolean;
  readonly occupiedSince?: IsoInstant;
  readonly endsAt?: IsoInstant;
  readonly lookAt?: IsoInstant;
  /** It is not watched any more. */
  readonly ended?: boolean;
  /** It has left its path now. */
  readonly left?: boolean;
  /** A line in the life of the file, such as `source.deleted`. */
  readonly event?: { readonly what: string; readonly detail: string };
}

export interface GrowthPause {
  readonly path: string;
  readonly pauseMs: number;
  readonly at: IsoInstant;
}

export interface FinishedFiles {
  /**
   * Of a file that has no run: begins to watch it, with the event; at another place than its path it has left that. A file of a run comes by
   * `noteRun`.
   */
  watch(
    file: NewFinishedFile & Pick<FinishedFile, "drop" | "path" | "arrivalId" | "size" | "mtime">,
    event: { readonly what: string; readonly detail: string },
  ): Promise<void>;
  /**
   * Those of a drop that are to be looked at by then, the earliest first, up to a number of them; and all those that wait at their own
   * paths, where a later version came since.
   */
  due(drop: string, by: IsoInstant, limit: number): Promise<readonly FinishedFile[]>;
  /** The file of an arrival that is watched, or null. */
  of(arrivalId: number): Promise<FinishedFile | null>;
  /** Of all drops, those that cannot go back to their paths. */
  occupied(): Promise<readonly FinishedFile[]>;
  /** Records what was found out about a file, or done to it. */
  change(file: FinishedFile, change: FinishedFileChange): Promise<void>;
  /** Several unchanged files are looked at again later, in one transaction. */
  postpone(
    drop: string,
    looks: readonly Pick<FinishedFile, "place" | "identity" | "lookAt">[],
  ): Promise<void>;
  /** Folders that are or were archives of the drop, after these were added. */
  archives(drop: string, folders?: readonly string[]): Promise<readonly string[]>;
  /** Remembered when it is longer than the one that is known. */
  noteGrowthPause(drop: string, path: string, pauseMs: number): Promise<void>;
  growthPause(drop: string): Promise<GrowthPause | null>;
}
