/**
 * Folders whose listing broke off. A file that was not listed may be older than those that were, so the
 * listed files of such a folder wait until it is listed completely, for at most `order.wait`; afterwards they
 * go, with a warning.
 */
import { posix } from "node:path";
import type { OnFolder } from "./drop.ts";
import { GOES, type OrderVerdict } from "./order-verdict.ts";

export class CutFolders {
  readonly #waitMs: number;
  /** Folders of the latest listing of which every file was listed. */
  #complete = new Set<string>();
  #isCut = false;
  /** Unix milliseconds since which each folder has not been listed completely. */
  readonly #since = new Map<string, number>();
  /**
   * Folders that had waiting files, with the Unix milliseconds since then, until a complete listing shows all
   * of their files settled.
   */
  readonly #unsettled = new Map<string, number>();

  constructor(waitMs: number) {
    this.#waitMs = waitMs;
  }

  /**
   * Begins a listing, and returns the function that the drop calls with each folder whose files were all
   * listed.
   */
  begin(onFolder: OnFolder): OnFolder {
    this.#complete = new Set();
    this.#isCut = true;
    return (folder, below) => {
      this.#complete.add(folder);
      this.#since.delete(folder);
      onFolder(folder, below);
    };
  }

  /** The listing is complete. */
  end(): void {
    this.#isCut = false;
    this.#since.clear();
  }

  /**
   * The listing broke off. Without `isRecorded` some of the listed files are not in the ledger, in whichever
   * folder.
   */
  broke(isRecorded: boolean): void {
    if (!isRecorded) this.#complete = new Set();
  }

  /**
   * For a file that has not settled and may be one that an earlier listing of its folder did not reach: the
   * Unix milliseconds since which later files wait for it. Null for other files.
   */
  awaitedSinceMs(path: string): number | null {
    return this.#unsettled.get(folderOf(path)) ?? null;
  }

  /** Called after a listing with the files that have not settled. */
  setUnsettled(paths: readonly string[]): void {
    if (this.#isCut) return;
    const folders = new Set(paths.map(folderOf));
    for (const folder of this.#unsettled.keys()) if (!folders.has(folder)) this.#unsettled.delete(folder);
  }

  /** Judges a file of the latest listing. `nowMs`: Unix milliseconds. */
  judge(path: string, nowMs: number): OrderVerdict {
    if (!this.#isCut) return GOES;
    const folder = folderOf(path);
    if (this.#complete.has(folder)) return GOES;
    const since = this.#since.getOrInsert(folder, nowMs);
    const leftMs = since + this.#waitMs - nowMs;
    const name = folder === "" ? "the drop's own folder" : folder;
    if (leftMs > 0) {
      const until = Temporal.Instant.fromEpochMilliseconds(since + this.#waitMs);
      const reason =
        `the listing of ${name} broke off, and an earlier file may not have been listed; it waits for a complete ` +
        `listing, until ${until} at the latest (\`order.wait\`)`;
      this.#unsettled.getOrInsert(folder, nowMs);
      return { status: "waits", reason, leftMs };
    }
    const warning =
      `it goes although the listing of ${name} has broken off for ${this.#waitMs / 1000} s (\`order.wait\`): an ` +
      "earlier file that was not listed would be delivered after it";
    return { status: "goes", warning };
  }
}

function folderOf(path: string): string {
  const folder = posix.dirname(path);
  return folder === "." ? "" : folder;
}
