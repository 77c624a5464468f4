/**
 * The files of the latest listings of a drop, with their arrivals. A file that is listed as before, and whose arrival
 * is still at rest, needs no query. The memory is one of a process: the first poll after a start, or of another node,
 * asks the ledger for each file.
 */
import type { FileEntry } from "../model.ts";
import type { PickupPoll } from "./pickup-contract.ts";

/** Files in memory, at some 200 bytes each. The ledger is asked for those beyond. */
const FILES_MAX = 200_000;

interface KnownFile {
  size: number;
  mtime: string;
  /** Of its arrival. */
  id: number;
  /** The latest listing that showed it. */
  listing: number;
}

export class KnownFiles {
  readonly #files = new Map<string, KnownFile>();
  readonly #filesMax: number;
  #session: number | null = null;
  /** While it lists. */
  #poll: Pick<PickupPoll, "showsAtRest"> | null = null;
  #listing = 0;
  /** How many of the files the present listing has shown. */
  #shown = 0;

  constructor(filesMax = FILES_MAX) {
    this.#filesMax = filesMax;
  }

  begin(poll: Pick<PickupPoll, "session" | "showsAtRest">): void {
    // Between two sessions, another node may have recorded other versions.
    if (poll.session !== this.#session) this.#forgetAll();
    this.#session = poll.session;
    this.#poll = poll;
    this.#listing += 1;
    this.#shown = 0;
  }

  /** Whether the ledger need not be asked for the entry. */
  isAtRest(entry: FileEntry): boolean {
    const known = this.#files.get(entry.path);
    if (known === undefined || known.size !== entry.size || known.mtime !== entry.mtime) return false;
    if (this.#poll?.showsAtRest(known.id) !== true) return false;
    this.#show(known);
    return true;
  }

  /** See `PickupPoll.record`. */
  async record(poll: PickupPoll, entries: readonly FileEntry[]): ReturnType<PickupPoll["record"]> {
    try {
      return await poll.record(entries, (entry, id) => this.#note(entry, id));
    } catch (thrown) {
      this.#forgetAll(); // It is unknown what the ledger has recorded.
      throw thrown;
    }
  }

  /** The listing was complete: files that it did not show are forgotten. */
  complete(): void {
    this.#poll = null;
    if (this.#shown === this.#files.size) return;
    for (const [path, { listing }] of this.#files) if (listing !== this.#listing) this.#files.delete(path);
  }

  #note({ path, size, mtime }: FileEntry, id: number): void {
    const known = this.#files.get(path);
    if (known === undefined) {
      if (this.#files.size >= this.#filesMax) return;
      this.#files.set(ownText(path), { size, mtime: ownText(mtime), id, listing: this.#listing });
      this.#shown += 1;
      return;
    }
    Object.assign(known, { size, mtime: ownText(mtime), id });
    this.#show(known);
  }

  #forgetAll(): void {
    this.#files.clear();
    this.#shown = 0;
  }

  #show(known: KnownFile): void {
    if (known.listing !== this.#listing) this.#shown += 1;
    known.listing = this.#listing;
  }
}

/** A copy: a part of a longer text, such as a line of a listing, would keep the whole text in memory. */
function ownText(text: string): string {
  return Buffer.from(text).toString();
}
