/**
 * The thread of a local drop processes the usual case for many files. For a file with anything unusual it
 * returns null, and leaves the file in a state from which the drop itself (`disk.ts`) resumes and reports.
 * Each thread loads this module, so it imports next to nothing.
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
import { faultPoint } from "#core/faults.ts";
import { syncNamesNow, type TaskFacts, triedOnce } from "#core/threads/disk-work.ts";
import type { FileEntry, FinishResult } from "../../model.ts";
import type { FetchedPart } from "../drop.ts";
import { type NamesOrder, readNames, type SomeNames } from "./names-work.ts";

export interface FinishWanted {
  readonly entry: FileEntry;
  /** Destination of the move, relative to the root. */
  readonly to: string;
  /** Whether the file is removed there. */
  readonly remove: boolean;
}

/** The paths were checked: each is plain and relative. */
export type LocalOrder =
  | NamesOrder
  | { readonly kind: "fetch"; readonly entries: readonly FileEntry[]; readonly destination: string }
  | { readonly kind: "finish"; readonly wanted: readonly FinishWanted[] }
  /** `paths` are separated by a zero character: many texts take longer to pass on than one. */
  | { readonly kind: "status"; readonly root: string; readonly paths: string };

/**
 * `overtaken`: of two uploads that arrived meanwhile, the older one is at the destination, and the newer one
 * at the drop.
 */
type Finished = Exclude<FinishResult, "gone"> | "overtaken";

export type ListAnswer = readonly (FetchedPart | Finished | null)[];

/** Of each path, in columns, since an object for each would take longer to pass on than to make. */
export interface FileStatuses {
  /** Bytes; `NO_FILE`, and NaN where the status cannot be read. */
  readonly sizes: Float64Array;
  /** Nanoseconds of the last change. */
  readonly times: BigInt64Array;
}

/** The size of a path that vanished, or is no file. */
export const NO_FILE = -1;

export type LocalAnswer = ListAnswer | FileStatuses | SomeNames;

type Facts = TaskFacts<{ readonly root: string }>;

/** Bytes of a file that is copied with others; larger ones are copied alone. */
const PIECE_MAX = 256 * 1024;

export function performLocal(order: LocalOrder, facts: Facts): LocalAnswer {
  if (order.kind === "names") return readNames(order, facts.isWanted);
  if (order.kind === "status") return statusesOf(order.root, order.paths.split("\0"), facts);
  const folders = new Folders(facts.data.root);
  return order.kind === "fetch"
    ? fetchAll(order.entries, order.destination, folders, facts)
    : finishAll(order.wanted, folders, facts);
}

function statusesOf(root: string, paths: readonly string[], facts: Facts): FileStatuses {
  const sizes = new Float64Array(paths.length).fill(Number.NaN);
  const times = new BigInt64Array(paths.length);
  for (const [at, path] of paths.entries()) {
    if (!facts.isWanted()) break;
    const status = triedOnce(() => statusOf(`${root}${sep}${path}`) ?? "gone");
    if (status === null) continue;
    const isFile = status !== "gone" && status.isFile();
    sizes[at] = isFile ? Number(status.size) : NO_FILE;
    if (isFile) times[at] = status.mtimeNs;
  }
  return { sizes, times };
}

interface Copy extends FetchedPart {
  readonly source: string;
  readonly entry: FileEntry;
}

/**
 * The destination is written last, so that a share that hangs never leaves half a file that another attempt
 * may write meanwhile.
 */
function fetchAll(
  entries: readonly FileEntry[],
  destination: string,
  folders: Folders,
  facts: Facts,
): (FetchedPart | null)[] {
  const fits = entries.map((entry) => entry.size <= PIECE_MAX);
  const room = entries.reduce((sum, { size }, at) => (fits[at] === true ? sum + size : sum), 0);
  // One more byte, to detect whether a file has grown.
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
    // The cancelled caller has tried to delete the copy already, maybe before it existed.
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

/** Reads into a buffer with one more byte. False for another version than the entry's, or another size. */
function readWhole(path: string, entry: FileEntry, into: Buffer): boolean {
  // A link is not followed, and opening must not wait for a pipe of that name.
  const file = openSync(path, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0));
  try {
    if (!isVersion(fstatSync(file, { bigint: true }), entry)) return false;
    let bytes = 0;
    let read: number;
    // A file that grows meanwhile is detected by the additional byte, or by the later check of its status.
    do {
      read = readSync(file, into, bytes, entry.size + 1 - bytes, bytes);
      bytes += read;
    } while (read > 0 && bytes < entry.size);
    return bytes === entry.size;
  } finally {
    closeSync(file);
  }
}

/**
 * The status of the source is checked once more: a file that was changed or replaced while it was read has
 * parts of two versions.
 */
function settle({ source, entry, bytes, sha256, offset }: Copy): FetchedPart | null {
  return isStillThere(source, entry) ? { bytes, sha256, offset } : null;
}

function finishAll(wanted: readonly FinishWanted[], folders: Folders, facts: Facts): (Finished | null)[] {
  const finished = wanted.map((one) => triedOnce(() => move(one, folders, facts)));
  faultPoint("drops.list.moved");
  for (const [at, one] of wanted.entries())
    if (one.remove && finished[at] === "done" && triedOnce(() => remove(one.to, folders)) === null) finished[at] = null;
  // Once for all of them: no caller relies on their new names before the results.
  const isSynced = triedOnce(() => folders.sync()) !== null;
  return isSynced ? finished : finished.map((result) => (result === "done" ? null : result));
}

/** As `finishSource` does, in the usual case. */
function move({ entry, to }: FinishWanted, folders: Folders, facts: Facts): Finished | null {
  const from = folders.find(entry.path);
  // Another version at the path, or a link, must not be missing at the drop even for a moment: a crash could
  // make that permanent.
  if (from === null || !facts.isWanted()) return null;
  const before = statusOf(from);
  if (before === undefined || !isVersion(before, entry)) return null;
  const target = folders.make(to);
  // A rename would replace an archived file of that name, or a link that leads nowhere.
  if (target === null || statusOf(target) !== undefined || !facts.isAwaited()) return null;
  renameSync(from, target); // It fails for another volume: `finishSource` copies.
  folders.touch(from, target);
  const after = statusOf(target);
  if (after !== undefined && isVersion(after, entry) && after.ino === before.ino) return "done";
  // Another upload arrived between check and move: the moved file is not the delivered one.
  if (statusOf(from) !== undefined) return "overtaken";
  renameSync(target, from);
  return "changed";
}

function remove(path: string, folders: Folders): true {
  const full = folders.find(path);
  if (full !== null) unlinkSync(full);
  return true;
}

function isStillThere(full: string, entry: FileEntry): boolean {
  const status = statusOf(full);
  return status !== undefined && isVersion(status, entry);
}

function isVersion(status: BigIntStats, entry: FileEntry): boolean {
  return status.isFile() && Number(status.size) === entry.size && String(status.mtimeNs) === entry.mtime;
}

function statusOf(full: string): BigIntStats | undefined {
  return lstatSync(full, { bigint: true, throwIfNoEntry: false });
}

/** The folders of a list of files. Each is checked once: that it exists, and is really inside the root. */
class Folders {
  readonly #root: string;
  /**
   * Full paths without symbolic links by those relative to the root; null for a missing folder, or one
   * outside the root.
   */
  readonly #known = new Map<string, string | null>();
  readonly #touched = new Set<string>();

  constructor(root: string) {
    this.#root = realpathSync.native(root);
    this.#known.set(".", this.#root);
  }

  /** The full path of a file; null when its folder is missing, or outside the root. */
  find(path: string): string | null {
    const folder = this.#look(dirname(path));
    return folder === null ? null : join(folder, basename(path));
  }

  /** The same, but a missing folder is created. */
  make(path: string): string | null {
    const folder = this.#make(dirname(path));
    return folder === null ? null : join(folder, basename(path));
  }

  touch(...files: readonly string[]): void {
    for (const file of files) this.#touched.add(dirname(file));
  }

  /** Makes the names in all changed folders durable. */
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
    // An existing path, such as a link that leads outside, is not changed and not used.
    const full = join(above, basename(folder));
    if (triedOnce(() => mkdirSync(full) ?? true) === null) return null;
    // As `makeFolderAsAround`: the readers of the drop can read its archive.
    chmodSync(full, statSync(above).mode & 0o777);
    this.#touched.add(above);
    this.#known.delete(folder);
    return this.#look(folder);
  }
}
