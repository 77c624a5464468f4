/**
 * The files of the latest listings of a drop, with their arrivals. A file that is listed as before, and whose arrival
 * is still at rest, needs no query. The memory is one of a process: the first poll after a start, or of another node,
 * asks the ledger for each file.
 */
import type { FileEntry } from "../model.ts";
import { ownText } from "../support/own-copy.ts";
import type { PickupPoll } from "./pickup-contract.ts";

/** Files in memory, at some 200 bytes each, of all drops of a process. The ledger is asked for those beyond. */
const FILES_MAX = 200_000;

export class FileBudget {
  #left: number;

  constructor(filesMax = FILES_MAX) {
    this.#left = filesMax;
  }

  /** Whether one more file may be kept. */
  take(): boolean {
    if (this.#left === 0) return false;
    this.#left -= 1;
    return true;
  }

  giveBack(files: number): void {
    this.#left += files;
  }
}

interface KnownFile {
  readonly path: string;
  size: number;
  mtime: string;
  /** Of its arrival. */
  id: number;
  /** The latest listing that showed it, and its place there. */
  listing: number;
  at: number;
}

export class KnownFiles {
  readonly #files = new Map<string, KnownFile>();
  readonly #budget: FileBudget;
  #session: number | null = null;
  /** While it lists. */
  #poll: Pick<PickupPoll, "noteAtRest"> | null = null;
  #listing = 0;
  /**
   * The files that the previous listing showed, in its order, which most listings keep: the next one is found without
   * a search, without its hash.
   */
  #before: readonly KnownFile[] = [];
  #next = 0;
  /** Files that the present listing has shown. */
  #shown: KnownFile[] = [];

  constructor(budget = new FileBudget()) {
    this.#budget = budget;
  }

  begin(poll: Pick<PickupPoll, "session" | "noteAtRest">): void {
    // Between two sessions, another node may have recorded other versions.
    if (poll.session !== this.#session) this.forgetAll();
    this.#session = poll.session;
    this.#poll = poll;
    this.#listing += 1;
    this.#before = this.#shown;
    this.#next = 0;
    this.#shown = [];
  }

  /** Notes that the entry was listed. Returns whether the ledger need not be asked for it. */
  noteAtRest(entry: FileEntry): boolean {
    const known = this.#find(entry.path);
    if (known === undefined || known.size !== entry.size || known.mtime !== entry.mtime) return false;
    if (this.#poll?.noteAtRest(known.id) !== true) return false;
    this.#show(known);
    return true;
  }

  /** See `PickupPoll.record`. */
  async record(poll: PickupPoll, entries: readonly FileEntry[]): ReturnType<PickupPoll["record"]> {
    try {
      return await poll.record(entries, (entry, id) => this.#note(entry, id));
    } catch (thrown) {
      this.forgetAll(); // It is unknown what the ledger has recorded.
      throw thrown;
    }
  }

  /** The listing was complete: files that it did not show are forgotten. */
  complete(): void {
    this.#poll = null;
    if (this.#shown.length === this.#files.size) return;
    for (const [path, { listing }] of this.#files)
      if (listing !== this.#listing) {
        this.#files.delete(path);
        this.#budget.giveBack(1);
      }
  }

  #note({ path, size, mtime }: FileEntry, id: number): void {
    const known = this.#files.get(path);
    if (known === undefined) {
      if (!this.#budget.take()) return;
      const added = { path: ownText(path), size, mtime: ownText(mtime), id, listing: 0, at: 0 };
      this.#files.set(added.path, added);
      this.#show(added);
    } else {
      Object.assign(known, { size, mtime: ownText(mtime), id });
      this.#show(known);
    }
  }

  forgetAll(): void {
    this.#budget.giveBack(this.#files.size);
    this.#files.clear();
    this.#before = [];
    this.#shown = [];
  }

  #find(path: string): KnownFile | undefined {
    const next = this.#before[this.#next];
    if (next?.path === path) {
      this.#next += 1;
      return next;
    }
    const known = this.#files.get(path);
    if (known !== undefined) this.#next = known.at + 1;
    return known;
  }

  #show(known: KnownFile): void {
    if (known.listing === this.#listing) return;
    known.listing = this.#listing;
    known.at = this.#shown.push(known) - 1;
  }
}
