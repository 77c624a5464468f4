/**
 * Folders whose listing broke off. A file that was not listed may be older than those that were, so the listed files of
 * such a folder wait until it is listed completely, for at most `order.wait`; afterwards they go, with a warning.
 */
import { posix } from "node:path";
import type { OnFolder } from "./drop.ts";
import type { OrderVerdict } from "./order-waits.ts";

export class CutFolders {
  readonly #waitMs: number;
  /** Folders of the latest listing of which every file was listed. */
  #complete = new Set<string>();
  #isCut = false;
  /** Unix milliseconds since which each folder has not been listed completely. */
  readonly #since = new Map<string, number>();

  constructor(waitMs: number) {
    this.#waitMs = waitMs;
  }

  /** Begins a listing, and returns the function that the drop calls with each folder whose files were all listed. */
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

  /** Judges a file of the latest listing. `nowMs`: Unix milliseconds. */
  judge(path: string, nowMs: number): OrderVerdict {
    const folder = folderOf(path);
    if (!this.#isCut || this.#complete.has(folder)) return { status: "goes", warning: null };
    const since = this.#since.getOrInsert(folder, nowMs);
    const leftMs = since + this.#waitMs - nowMs;
    const name = folder === "" ? "the drop's own folder" : folder;
    if (leftMs > 0) {
      const until = Temporal.Instant.fromEpochMilliseconds(since + this.#waitMs);
      const reason =
        `the listing of ${name} broke off, and an earlier file may not have been listed; it waits for a complete ` +
        `listing, until ${until} at the latest (\`order.wait\`)`;
      // The files that were not listed can then come before it.
      return { status: "waits", reason, leftMs, settlesAgain: true };
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
