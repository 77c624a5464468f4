/**
 * The thread of a local drop does the usual case for many files. A file with anything unusual about it is answered with null, and left so that the drop
 * finds it (`disk.ts`), resumes from it and words it. Each thread loads this module, so it imports next to nothing.
 */
import { hash } from "node:crypto";
import {
  type BigIntStats,
  chmodSync,
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  mkdirSync,
  openSync,
  readSync,
  realpathSync,
  renameSync,
  statSync,
  unlinkSync,
  writeSync,
} from "node:fs";
import { basename, dirname, join, sep } from "node:path";
import type { FileEntry, FinishResult } from "../../model.ts";
import { syncNamesNow, type TaskFacts, triedOnce } from "../../support/disk-work.ts";
import { faultPoint } from "../../support/faults.ts";
import type { FetchedPart } from "../drop.ts";

export interface FinishWanted {
  readonly entry: FileEntry;
  /** Where it is moved, relative to the root. */
  readonly to: string;
  /** Whether it is removed there. */
  readonly remove: boolean;
}

/** Paths in it were checked: each is a plain relative one. */
export type LocalOrder =
  | { readonly kind: "fetch"; readonly entries: readonly FileEntry[]; readonly destination: string }
  | { readonly kind: "finish"; readonly wanted: readonly FinishWanted[] };

/** `overtaken`: of two uploads that slipped in, the older one is where the file was to be moved, and the newer one at the drop. */
export type Finished = Exclude<FinishResult, "gone"> | "overtaken";

export type LocalAnswer = readonly (FetchedPart | Finished | null)[];

type Facts = TaskFacts<{ readonly root: string }>;

/** Bytes of a file that is copied with others; larger ones are copied alone. */
export const PIECE_MAX = 256 * 1024;

export function performLocal(order: LocalOrder, facts: Facts): LocalAnswer {
  const folders = new Folders(facts.data.root);
  return order.kind === "fetch"
    ? fetchAll(order.entries, order.destination, folders, facts)
    : finishAll(order.wanted, folders, facts);
}

interface Copy extends FetchedPart {
  readonly source: string;
  readonly entry: FileEntry;
}

/** The destination is touched last: a share that hangs is never waited for with half a file that somebody else may make meanwhile. */
function fetchAll(
  entries: readonly FileEntry[],
  destination: string,
  folders: Folders,
  facts: Facts,
): (FetchedPart | null)[] {
  const fits = entries.map((entry) => entry.size <= PIECE_MAX);
  const room = entries.reduce((sum, { size }, at) => (fits[at] === true ? sum + size : sum), 0);
  // One byte more, to see whether a file has grown.
  const bytes = Buffer.allocUnsafeSlow(room + 1);
  let length = 0;
  const copies = entries.map((entry, at): Copy | null => {
    const source = folders.find(entry.path);
    const place = bytes.subarray(length, length + entry.size + 1);
    const isRead = fits[at] === true && source !== null && facts.isWanted();
    if (!isRead || triedOnce(() => readWhole(source, entry, place) || null) === null) return null;
    const sha256 = hash("sha256", place.subarray(0, entry.size), "hex");
    const copy = { source, entry, offset: length, bytes: entry.size, sha256 };
    length += entry.size;
    return copy;
  });
  if (!facts.isWanted() || copies.every((copy) => copy === null)) return entries.map(() => null);
  writeNew(destination, bytes.subarray(0, length));
  if (!facts.isWanted()) {
    // Whoever gave up has looked for it already, maybe before it was there.
    unlinkSync(destination);
    return entries.map(() => null);
  }
  faultPoint("drops.list.copied");
  return copies.map((copy) => (copy === null ? null : triedOnce(() => settle(copy))));
}

function writeNew(path: string, bytes: Buffer): void {
  const file = openSync(path, "wx");
  try {
    for (let at = 0; at < bytes.length; ) at += writeSync(file, bytes, at, bytes.length - at, at);
  } finally {
    closeSync(file);
  }
}

/** Into a buffer of one byte more. False when it is not the entry's version, or not as many bytes. */
function readWhole(path: string, entry: FileEntry, into: Buffer): boolean {
  // A link is not followed, and a pipe of that name would be waited for.
  const file = openSync(path, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0));
  try {
    if (!isVersion(fstatSync(file, { bigint: true }), entry)) return false;
    let bytes = 0;
    let read: number;
    // One that grows meanwhile shows by the byte more, or when it is looked at once more.
    do {
      read = readSync(file, into, bytes, entry.size + 1 - bytes, bytes);
      bytes += read;
    } while (read > 0 && bytes < entry.size);
    return bytes === entry.size;
  } finally {
    closeSync(file);
  }
}

/** The source is looked at once more: what was changed or replaced while it was read is half of one version and half of another. */
function settle({ source, entry, bytes, sha256, offset }: Copy): FetchedPart | null {
  return liesThere(source, entry) ? { bytes, sha256, offset } : null;
}

function finishAll(wanted: readonly FinishWanted[], folders: Folders, facts: Facts): (Finished | null)[] {
  const finished = wanted.map((one) => triedOnce(() => move(one, folders, facts)));
  faultPoint("drops.list.moved");
  for (const [at, one] of wanted.entries())
    if (one.remove && finished[at] === "done" && triedOnce(() => remove(one.to, folders)) === null)
      finished[at] = null;
  // Once for all of them: until they are told, nobody relies on their new names.
  const isSynced = triedOnce(() => folders.sync()) !== null;
  return isSynced ? finished : finished.map((result) => (result === "done" ? null : result));
}

/** As `finishSource` does it, as long as all is as it should be. */
function move({ entry, to }: FinishWanted, folders: Folders, facts: Facts): Finished | null {
  const from = folders.find(entry.path);
  // Another version that lies there by now, or a link, is not to be missing at the drop for a moment: a crash might make that for ever.
  if (from === null || !facts.isWanted()) return null;
  const before = statusOf(from);
  if (before === undefined || !isVersion(before, entry)) return null;
  const target = folders.make(to);
  // A rename would take the place of what is archived under that name, also of a link that leads nowhere.
  if (target === null || statusOf(target) !== undefined || !facts.isAwaited()) return null;
  renameSync(from, target); // Onto another volume it fails, and is copied by `finishSource`.
  folders.touch(from, target);
  const after = statusOf(target);
  if (after !== undefined && isVersion(after, entry) && after.ino === before.ino) return "done";
  // Another upload slipped in between the look and the move: what was moved is not what was delivered.
  if (statusOf(from) !== undefined) return "overtaken";
  renameSync(target, from);
  return "changed";
}

function remove(path: string, folders: Folders): true {
  const full = folders.find(path);
  if (full !== null) unlinkSync(full);
  return true;
}

function liesThere(full: string, entry: FileEntry): boolean {
  const status = statusOf(full);
  return status !== undefined && isVersion(status, entry);
}

function isVersion(status: BigIntStats, entry: FileEntry): boolean {
  return status.isFile() && Number(status.size) === entry.size && String(status.mtimeNs) === entry.mtime;
}

function statusOf(full: string): BigIntStats | undefined {
  return lstatSync(full, { bigint: true, throwIfNoEntry: false });
}

/** The folders of a list of files. Each is checked once: that it is there, and really lies in the root. */
class Folders {
  readonly #root: string;
  /** Full paths without symbolic links by those relative to the root; null for what is not there, or leads out of it. */
  readonly #known = new Map<string, string | null>();
  readonly #touched = new Set<string>();

  constructor(root: string) {
    this.#root = realpathSync.native(root);
    this.#known.set(".", this.#root);
  }

  /** The full path of a file; null when its folder is not there, or leads out of the root. */
  find(path: string): string | null {
    const folder = this.#look(dirname(path));
    return folder === null ? null : join(folder, basename(path));
  }

  /** The same; its folder is made when it is not there. */
  make(path: string): string | null {
    const folder = this.#make(dirname(path));
    return folder === null ? null : join(folder, basename(path));
  }

  touch(...files: readonly string[]): void {
    for (const file of files) this.#touched.add(dirname(file));
  }

  /** Makes names durable in all that were touched. */
  sync(): true {
    for (const folder of this.#touched) syncNamesNow(folder);
    return true;
  }

  #look(folder: string): string | null {
    const known = this.#known.get(folder);
    if (known !== undefined) return known;
    const full = triedOnce(() => realpathSync.native(join(this.#root, folder)));
    const inside = full !== null && (full === this.#root || full.startsWith(this.#root + sep)) ? full : null;
    this.#known.set(folder, inside);
    return inside;
  }

  #make(folder: string): string | null {
    const there = this.#look(folder);
    if (there !== null) return there;
    const above = this.#make(dirname(folder));
    if (above === null) return null;
    // When it is there after all, such as a link that leads out, it stays as it is and is not taken.
    const full = join(above, basename(folder));
    if (triedOnce(() => mkdirSync(full) ?? true) === null) return null;
    // As `makeFolderAsAround`: whoever can read the drop can read its archive.
    chmodSync(full, statSync(above).mode & 0o777);
    this.#touched.add(above);
    this.#known.delete(folder);
    return this.#look(folder);
  }
}
