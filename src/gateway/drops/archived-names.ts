/**
 * Recognizes archived files in a listing: they were delivered from the same drop, and do not count as new.
 */
import { posix } from "node:path";
import type { FileEntry } from "../model.ts";
import { archivedRun } from "./paths.ts";

export interface KnownArchives {
  /** Folders that are or were archives of the drop. */
  readonly archives: readonly string[];
  /** Whether the run of an archived file belongs to this drop, or is unknown to the ledger. */
  ownsRun(id: string): Promise<boolean>;
}

/** Distinguishes an unmatched file from others in the archive; see `planFinish`. */
const UNMATCHED = /\.unmatched-\d+(?:\.[^.]*)?$/;

export class ArchivedNames {
  readonly #known: KnownArchives;
  readonly #beginnings: readonly string[];

  constructor(known: KnownArchives) {
    this.#known = known;
    this.#beginnings = known.archives.map((folder) => `${folder}/`);
  }

  /** Without those in a folder that is or was an archive of the drop; the same list when there are none. */
  outside(entries: readonly FileEntry[]): readonly FileEntry[] {
    if (!entries.some(this.#isInArchive)) return entries;
    return entries.filter((entry) => !this.#isInArchive(entry));
  }

  readonly #isInArchive = ({ path }: FileEntry): boolean => {
    for (const beginning of this.#beginnings) if (path.startsWith(beginning)) return true;
    return false;
  };

  /**
   * Why a file outside the archives is not new, or null. A drop that never archived has only names that its
   * senders gave.
   */
  async whyArchived(path: string): Promise<string | null> {
    if (this.#known.archives.length === 0) return null;
    const name = posix.basename(path);
    if (UNMATCHED.test(name)) return "its name is that of an archived file, which no trigger claimed";
    const run = archivedRun(name);
    if (run === null || !(await this.#known.ownsRun(run))) return null;
    return `its name is that of an archived file: it carries the run ${run}`;
  }
}
