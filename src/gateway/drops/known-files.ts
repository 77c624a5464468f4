/**
 * The files of the latest listings of a drop, with their arrivals. A file that is listed as before, and whose arrival
 * is still at rest, needs no query; a group that the drop returns as the same object is not compared. The memory is one
 * of a process: the first poll after a start, or of another node, asks the ledger for each file.
 */

import { ownText } from "#core/own-copy.ts";
import type { FileEntry } from "../model.ts";
import type { PickupPoll } from "./pickup-contract.ts";

/** Files in memory, at some 200 bytes each, of all drops of a process. The ledger is asked for those beyond. */
const FILES_MAX = 200_000;

export class FileBudget {
  #left: number;

  constructor(filesMax = FILES_MAX) {
    this.#left = filesMax;
  }

  /** Whether so many more files may be kept. */
  take(files = 1): boolean {
    if (this.#left < files) return false;
    this.#left -= files;
    return true;
  }

  giveBack(files: number): void {
    this.#left += files;
  }
}

/** The id of a file that is no longer known: no arrival has it. */
const NONE = -1;

interface KnownFile {
  readonly path: string;
  readonly size: number;
  readonly mtime: string;
  /** Of its arrival. */
  id: number;
  /** The latest listing that showed it, and its place there. */
  listing: number;
  at: number;
}

export class KnownFiles {
  readonly #files = new Map<string, KnownFile>();
  readonly #budget: FileBudget;
  /** The files of groups in which all were at rest. */
  #groups = new WeakMap<readonly FileEntry[], readonly KnownFile[]>();
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

  /** Notes that a group was listed. Returns the entries for which the ledger must be asked. */
  notAtRest(entries: readonly FileEntry[]): readonly FileEntry[] {
    if (this.#groups.get(entries)?.every(this.#noteAtRest) === true) {
      this.#next += entries.length;
      return [];
    }
    const files: KnownFile[] = [];
    const asked: FileEntry[] = [];
    for (const entry of entries) {
      const known = this.#find(entry.path);
      const isSame = known !== undefined && known.size === entry.size && known.mtime === entry.mtime;
      if (isSame && this.#noteAtRest(known)) files.push(known);
      else asked.push(entry);
    }
    if (asked.length === 0) this.#groups.set(entries, files);
    return asked;
  }

  readonly #noteAtRest = (known: KnownFile): boolean => {
    if (this.#poll?.noteAtRest(known.id) !== true) return false;
    this.#show(known);
    return true;
  };

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
    for (const [path, known] of this.#files)
      if (known.listing !== this.#listing) {
        known.id = NONE;
        this.#files.delete(path);
        this.#budget.giveBack(1);
      }
  }

  #note({ path, size, mtime }: FileEntry, id: number): void {
    const known = this.#files.get(path);
    if (known === undefined && !this.#budget.take()) return;
    const isSame = known !== undefined && known.size === size && known.mtime === mtime && known.id === id;
    this.#show(isSame ? known : this.#keep({ path, size, mtime }, id, known));
  }

  /** In another version it is another file: groups that contain the earlier one are no longer at rest. */
  #keep({ path, size, mtime }: FileEntry, id: number, before: KnownFile | undefined): KnownFile {
    if (before !== undefined) before.id = NONE;
    const known = { path: before?.path ?? ownText(path), size, mtime: ownText(mtime), id, listing: 0, at: 0 };
    this.#files.set(known.path, known);
    return known;
  }

  forgetAll(): void {
    this.#budget.giveBack(this.#files.size);
    this.#files.clear();
    this.#groups = new WeakMap();
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
