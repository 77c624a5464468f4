/**
 * The folder of an account: unfinished uploads, the sender's sub-folders, and what was taken lately. Its tree is one of
 * the disk. The permissions of a file show what it is, since they change at once and survive a crash. A taken
 * file has its size and no bytes (a sparse file): these are in the store of files alone.
 */
import { constants, type Stats } from "node:fs";
import { type FileHandle, lstat, mkdir, open, readdir, rename, rm, rmdir, utimes } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import type { Clock } from "#core/clock.ts";
import { systemCode, wordsOf } from "#core/errors.ts";
import { faultPoint } from "#core/faults.ts";
import type { Logger } from "#core/log.ts";
import { PRIVATE_FOLDER } from "#core/private-files.ts";
import { REFUSED } from "../files/intake.ts";
import { fileNameFault } from "../files/names.ts";
import { type Entry, type FileTree, noSuchFile, type OpenMode, TreeFault, type Upload } from "./file-tree.ts";
import {
  closeDurably,
  entryOf,
  isClosed,
  isTaken,
  markTaken,
  OWNER,
  onlySent,
  rethrow,
  statusOf,
  type Taken,
  UNFINISHED,
} from "./folder-entry.ts";
import { contentOf, OpenUpload } from "./open-upload.ts";
import type { TransferOptions } from "./options.ts";
import type { Sender, Taker } from "./take.ts";

export interface FolderParts {
  readonly accountId: number;
  /** Exists. */
  readonly root: string;
  readonly options: TransferOptions;
  /** Of one file. */
  readonly bytesMax: number;
  readonly taker: Taker;
  readonly clock: Clock;
  readonly log: Logger;
}

/** With the files that it may not have got the answer for. */
interface TreeSender extends Sender {
  readonly unanswered: Set<number>;
}

/** Beyond the limit, a tenth more goes, so that not every further file needs a sweep. */
const KEPT_SHARE = 0.9;

const FOUND = constants.O_RDWR | constants.O_NOFOLLOW;
const NEW = FOUND | constants.O_CREAT | constants.O_EXCL;
/** Whether the process takes permissions of their owner from new files. */
const IS_MASKED = (process.umask() & OWNER) !== 0;

export class AccountFolder {
  readonly #parts: FolderParts;
  readonly #open = new Map<string, OpenUpload>();
  /** Paths that are being changed. */
  readonly #busy = new Map<string, Promise<unknown>>();
  readonly #usage: FolderUsage;

  constructor(parts: FolderParts) {
    this.#parts = parts;
    const { unfinishedBytes, entries } = parts.options;
    this.#usage = new FolderUsage({ unfinishedBytes, entries, bytesMax: parts.bytesMax });
  }

  treeFor(user: Sender): FileTree {
    const sender = { ...user, unanswered: new Set<number>() };
    const admitted = async <T>(work: () => Promise<T>): Promise<T> => {
      await user.admit(this.#parts.accountId);
      return await work();
    };
    const change = <T>(paths: readonly string[], work: () => Promise<T>) =>
      admitted(() => this.#exclusively(paths, work));
    return {
      stat: (path) => admitted(() => this.#stat(path)),
      list: (path) => admitted(() => this.#list(path)),
      write: (path, mode) => admitted(() => this.#write(path, mode, sender)),
      read: (path) => admitted(async () => onlySent(await this.#existing(path))),
      rename: (from, to) => change([from, to], () => this.#rename(from, to, sender)),
      remove: (path) => change([path], () => this.#remove(path)),
      makeFolder: (path) => admitted(() => this.#makeFolder(path)),
      removeFolder: (path) => admitted(() => this.#removeFolder(path)),
      setModified: (path, ms) => admitted(() => this.#setModified(path, ms)),
      truncate: (path, size) => change([path], () => this.#truncate(path, size)),
      answersArrived: () => {
        for (const id of sender.unanswered) this.#parts.taker.answered(id);
        sender.unanswered.clear();
      },
    };
  }

  /** Removes what is too old, and counts what remains. */
  async sweep(): Promise<void> {
    const { root, options, clock } = this.#parts;
    const isOpen = (file: string) =>
      [...this.#open.keys(), ...this.#busy.keys()].some((path) => join(root, path) === file);
    const found = await sweepFolder(root, { options, isOpen, nowMs: clock.now().epochMilliseconds });
    this.#usage.taken = found.taken;
    // Otherwise files have grown meanwhile.
    if (this.#open.size === 0) this.#usage.count(found.bytes, found.entries);
  }

  /** Uploads that are being written end, and can be continued. */
  async close(): Promise<void> {
    await Promise.allSettled([...this.#busy.values()]);
    for (const upload of this.#open.values()) await upload.abandon();
  }

  async #stat(path: string): Promise<Entry> {
    return entryOf(basename(path) || "/", await this.#existing(path));
  }

  async #list(path: string): Promise<readonly Entry[]> {
    const folder = this.#onDisk(path);
    if (!(await this.#existing(path)).isDirectory()) throw new TreeFault("failed", "is no folder");
    const entries: Entry[] = [];
    for (const name of (await readdir(folder).catch(rethrow)).sort()) {
      const status = await statusOf(join(folder, name));
      // It may have been removed meanwhile.
      if (status !== null) entries.push(entryOf(name, status));
    }
    return entries;
  }

  async #write(path: string, mode: OpenMode, sender: TreeSender): Promise<Upload> {
    return await this.#exclusively([path], async () => {
      const file = this.#onDisk(path);
      const { accountId, taker, options } = this.#parts;
      const checkQuota = taker.quotaCheck(accountId, finalName(path, options).slice(1));
      await logRefusal(this.#parts, path, sender, () => checkQuota(1));
      // A connection that was lost unnoticed must not keep its sender from continuing.
      await this.#open.get(path)?.end(new TreeFault("failed", "another connection writes this file now"));
      const upload = new OpenUpload({
        ...(await openForUpload(file, mode, this.#usage)),
        grow: (bytes, size) =>
          logRefusal(this.#parts, path, sender, () => checkQuota(size).then(() => this.#usage.grow(bytes, size))),
        shrink: (bytes) => this.#usage.shrink(bytes),
        finish: (own, isWanted) => this.#finish(path, own, sender, isWanted),
      });
      this.#open.set(path, upload);
      return upload;
    });
  }

  async #finish(path: string, upload: OpenUpload, sender: TreeSender, isWanted: (() => boolean) | null): Promise<void> {
    const { handle } = upload;
    try {
      if (isWanted === null) return;
      if (upload.size === 0 || isTemporary(path, this.#parts.options)) await closeDurably(handle);
      else
        await this.#exclusively(
          [path],
          async () => {
            const taken = await this.#take(path, upload, sender, isWanted);
            await this.#mark(path, handle, taken, sender);
          },
          false,
        );
    } finally {
      this.#open.delete(path);
      await handle.close();
    }
  }

  async #take(
    name: string,
    whole: Pick<OpenUpload, "content" | "size" | "modifiedMs">,
    sender: Sender,
    isWanted: () => boolean,
  ): Promise<Taken> {
    const { accountId, taker } = this.#parts;
    const { size, modifiedMs } = whole;
    const file = { accountId, name: name.slice(1), content: () => whole.content(), size, sender, isWanted };
    const id = await logRefusal(this.#parts, name, sender, () => taker.take(file));
    faultPoint("hub.transfer.taken");
    return { id, size, modifiedMs };
  }

  /** A failure is only logged: the file was taken. */
  async #mark(name: string, handle: FileHandle, taken: Taken, sender: TreeSender): Promise<void> {
    const { accountId, log, options } = this.#parts;
    this.#usage.take(taken.size);
    sender.unanswered.add(taken.id);
    try {
      await markTaken(handle, taken);
    } catch (thrown) {
      log.warn({ account: accountId, name, err: wordsOf(thrown) }, "a taken file could not be marked in its folder");
    }
    faultPoint("hub.transfer.marked");
    if (this.#usage.taken > options.listed) await this.sweep();
  }

  async #rename(from: string, to: string, sender: TreeSender): Promise<void> {
    const found = await this.#existing(from);
    const [source, target] = [this.#onDisk(from), this.#onDisk(to)];
    if (from === to) return;
    if (found.isDirectory()) throw new TreeFault("denied", "folders cannot be renamed");
    if (isTaken(found)) throw new TreeFault("denied", "the file was taken already, under its first name");
    if (this.#open.has(from)) throw new TreeFault("failed", "the file is still being written");
    if (!isClosed(found)) throw new TreeFault("failed", "the file was not written to its end");
    await this.#open.get(to)?.end(new TreeFault("failed", "another file got this name"));
    const replaced = await statusOf(target);
    if (replaced?.isDirectory() === true) throw new TreeFault("exists", "there is a folder of this name");
    if ((await statusOf(dirname(target)))?.isDirectory() !== true) throw noSuchFile();
    const handle = await open(source, constants.O_RDWR | constants.O_NOFOLLOW).catch(rethrow);
    try {
      const isComplete = found.size > 0 && !isTemporary(to, this.#parts.options);
      const { size, mtimeMs: modifiedMs } = found;
      const whole = { content: () => contentOf(handle, size), size, modifiedMs };
      const taken = isComplete ? await this.#take(to, whole, sender, () => true) : null;
      await rename(source, target);
      if (replaced !== null) this.#usage.forget(replaced);
      // Last: a sender whose hub was killed before may rename the file again.
      if (taken !== null) await this.#mark(to, handle, taken, sender);
    } finally {
      await handle.close();
    }
  }

  async #remove(path: string): Promise<void> {
    const found = await this.#existing(path);
    if (found.isDirectory()) throw new TreeFault("failed", "is a folder");
    await this.#open.get(path)?.end(new TreeFault("failed", "the file was removed"));
    const now = await this.#existing(path);
    await this.#removeFile(this.#onDisk(path), now);
  }

  async #removeFile(file: string, found: Stats): Promise<void> {
    await removeFile(file, found, this.#usage);
  }

  async #makeFolder(path: string): Promise<void> {
    const folder = this.#onDisk(path);
    this.#usage.enter();
    await mkdir(folder, { mode: PRIVATE_FOLDER }).catch((thrown) => {
      this.#usage.leave();
      return rethrow(thrown);
    });
  }

  async #removeFolder(path: string): Promise<void> {
    if (path === "/") throw new TreeFault("denied", "the folder of the account stays");
    if (!(await this.#existing(path)).isDirectory()) throw new TreeFault("failed", "is no folder");
    await rmdir(this.#onDisk(path)).catch(rethrow);
    this.#usage.leave();
  }

  async #setModified(path: string, ms: number): Promise<void> {
    const upload = this.#open.get(path);
    if (upload !== undefined) return await upload.setModified(ms);
    await this.#existing(path);
    await utimes(this.#onDisk(path), ms / 1_000, ms / 1_000).catch(rethrow);
  }

  async #truncate(path: string, size: number): Promise<void> {
    const upload = this.#open.get(path);
    if (upload !== undefined) return await upload.truncate(size);
    const found = await this.#existing(path);
    if (found.isDirectory() || isTaken(found)) throw new TreeFault("denied", "only an unfinished upload is shortened");
    if (size > found.size) throw new TreeFault("failed", "a file can be shortened, and not lengthened");
    await using handle = await open(this.#onDisk(path), constants.O_RDWR | constants.O_NOFOLLOW);
    await handle.truncate(size);
    this.#usage.shrink(found.size - size);
  }

  async #existing(path: string): Promise<Stats> {
    const status = await statusOf(this.#onDisk(path));
    if (status === null) throw noSuchFile();
    return status;
  }

  #onDisk(path: string): string {
    const why = path === "/" ? null : fileNameFault(path.slice(1));
    if (why !== null) throw new TreeFault("denied", `the name ${why}`);
    return join(this.#parts.root, path);
  }

  /** Not `isPatient`: another connection that has the path may wait for this one. */
  async #exclusively<T>(paths: readonly string[], work: () => Promise<T>, isPatient = true): Promise<T> {
    const others = () => paths.map((path) => this.#busy.get(path)).filter((other) => other !== undefined);
    while (isPatient && others().length > 0) await Promise.allSettled(others());
    if (others().length > 0) throw new TreeFault("failed", "another connection changes the file");
    const running = work();
    for (const path of paths) this.#busy.set(path, running);
    try {
      return await running;
    } catch (thrown) {
      return rethrow(thrown);
    } finally {
      for (const path of paths) this.#busy.delete(path);
    }
  }
}

interface Place {
  readonly accountId: number;
  readonly log: Logger;
}

/** Devices show their answers to no person, so refusals for want of space are in the log, too. */
async function logRefusal<T>(place: Place, path: string, sender: Sender, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (thrown) {
    const { accountId: account, log } = place;
    const { username: user, via } = sender;
    if (thrown instanceof TreeFault && thrown.reason === "full")
      log.warn({ account, user, via, name: path.slice(1), reason: thrown.message }, REFUSED);
    throw thrown;
  }
}

// Names under which senders write files that are not complete yet.

interface Names {
  /** Endings (`*.part`) and beginnings (`.in.*`), in any case. */
  readonly temporaryNames: readonly string[];
}

function isTemporary(path: string, { temporaryNames }: Names): boolean {
  return temporaryNames.some((pattern) => isOf(basename(path), pattern));
}

/** The name that the file will probably get: without the part that makes its name a temporary one. */
function finalName(path: string, { temporaryNames }: Names): string {
  const name = basename(path);
  const pattern = temporaryNames.find((one) => isOf(name, one));
  if (pattern === undefined) return path;
  const length = pattern.length - 1;
  return join(dirname(path), pattern.startsWith("*") ? name.slice(0, -length) : name.slice(length));
}

function isOf(name: string, pattern: string): boolean {
  const part = pattern.toLowerCase().replace("*", "");
  return pattern.startsWith("*") ? name.toLowerCase().endsWith(part) : name.toLowerCase().startsWith(part);
}

// Opens the file of an upload in the folder of an account: most are new, and cost one call.

interface OpenedFile {
  readonly handle: FileHandle;
  readonly size: number;
  /** Milliseconds of the epoch; null: it is new. */
  readonly modifiedMs: number | null;
}

async function openForUpload(file: string, mode: OpenMode, usage: FolderUsage): Promise<OpenedFile> {
  if (mode.create && !usage.isFull) {
    const opened = await openNew(file, usage);
    if (opened !== null) return opened;
  }
  const found = await statusOf(file);
  if (found === null && !mode.create) throw noSuchFile();
  if (found?.isDirectory() === true) throw new TreeFault("failed", "is a folder");
  if (found !== null && mode.exclusive) throw new TreeFault("exists", "there is a file of this name");
  if (found !== null && isTaken(found) && !mode.truncate)
    throw new TreeFault("denied", "the file was taken already; send it as a whole, or under another name");
  if (found !== null && !mode.truncate)
    return { handle: await openUnfinished(file, FOUND), size: found.size, modifiedMs: found.mtimeMs };
  if (found !== null) await removeFile(file, found, usage);
  const opened = await openNew(file, usage);
  if (opened === null) throw new TreeFault("failed", "another file got this name");
  return opened;
}

async function removeFile(file: string, found: Stats, usage: FolderUsage): Promise<void> {
  await rm(file).catch(rethrow);
  usage.forget(found);
}

/** Null when there is a file or a folder of this name. */
async function openNew(file: string, usage: FolderUsage): Promise<OpenedFile | null> {
  usage.enter();
  try {
    const handle = await (IS_MASKED ? openUnfinished(file, NEW) : open(file, NEW, UNFINISHED));
    return { handle, size: 0, modifiedMs: null };
  } catch (thrown) {
    usage.leave();
    if (systemCode(thrown) === "EEXIST") return null;
    return rethrow(thrown);
  }
}

async function openUnfinished(file: string, flags: number): Promise<FileHandle> {
  const handle = await open(file, flags, UNFINISHED).catch(rethrow);
  try {
    await handle.chmod(UNFINISHED);
    return handle;
  } catch (thrown) {
    await handle.close();
    throw thrown;
  }
}

// Removes what has been in the folder of an account for too long.

interface Swept {
  /** Of unfinished uploads. */
  readonly bytes: number;
  /** Folders and unfinished uploads. */
  readonly entries: number;
  readonly taken: number;
}

interface SweepParts {
  readonly options: TransferOptions;
  readonly isOpen: (file: string) => boolean;
  readonly nowMs: number;
}

async function sweepFolder(root: string, { options, isOpen, nowMs }: SweepParts): Promise<Swept> {
  const taken: { file: string; ms: number }[] = [];
  let [bytes, entries] = [0, 0];
  // The time of the last change of a file's facts, which senders cannot set.
  const isOld = ({ ctimeMs }: Stats, keptMs: number) => nowMs - ctimeMs > keptMs;
  const visit = async (folder: string): Promise<void> => {
    for (const name of await readdir(folder)) {
      const file = join(folder, name);
      const status = await lstat(file).catch(() => null); // It may have been removed meanwhile.
      if (status === null) continue;
      if (status.isDirectory()) {
        await visit(file);
        // Only an empty folder is removed.
        if (isOld(status, options.keepFolders) && (await removed(() => rmdir(file)))) continue;
        entries += 1;
      } else if (isTaken(status)) {
        if (isOld(status, options.keepListed)) await removed(() => rm(file));
        else taken.push({ file, ms: status.ctimeMs });
      } else if (isOld(status, options.keepUnfinished) && !isOpen(file)) {
        await removed(() => rm(file));
      } else {
        entries += 1;
        bytes += status.size;
      }
    }
  };
  await visit(root);
  if (taken.length > options.listed) {
    const surplus = taken.length - Math.floor(options.listed * KEPT_SHARE);
    const oldest = taken.sort((one, other) => one.ms - other.ms).splice(0, surplus);
    for (const { file } of oldest) await removed(() => rm(file));
  }
  return { bytes, entries, taken: taken.length };
}

async function removed(remove: () => Promise<void>): Promise<boolean> {
  try {
    await remove();
    return true;
  } catch {
    return false; // It is in use again, or gone; the next sweep sees it.
  }
}

interface Limits extends Pick<TransferOptions, "unfinishedBytes" | "entries"> {
  /** Of one file. */
  readonly bytesMax: number;
}

/** How much the folder of an account holds, beside its limits. */
class FolderUsage {
  readonly #limits: Limits;
  #unfinished = 0;
  #entries = 0;
  #taken = 0;

  constructor(limits: Limits) {
    this.#limits = limits;
  }

  /** Taken files that the folder shows. */
  get taken(): number {
    return this.#taken;
  }

  set taken(count: number) {
    this.#taken = count;
  }

  /** Bytes of unfinished uploads; folders and unfinished uploads. */
  count(bytes: number, entries: number): void {
    this.#unfinished = bytes;
    this.#entries = entries;
  }

  /** Reserves bytes of a file that then has this size. */
  grow(bytes: number, size: number): void {
    const { bytesMax, unfinishedBytes } = this.#limits;
    if (size > bytesMax)
      throw new TreeFault("full", `the file is larger than ${bytesMax} bytes (\`limits.file\` of the hub)`);
    if (this.#unfinished + bytes > unfinishedBytes)
      throw new TreeFault("full", `the account has unfinished uploads of ${this.#unfinished} bytes; remove some`);
    this.#unfinished += bytes;
  }

  shrink(bytes: number): void {
    this.#unfinished -= bytes;
  }

  /** No folder and no unfinished upload may be added. */
  get isFull(): boolean {
    return this.#entries >= this.#limits.entries;
  }

  /** A folder or an unfinished upload more. */
  enter(): void {
    const { entries } = this.#limits;
    if (this.#entries >= entries)
      throw new TreeFault("full", `the account has ${entries} folders and unfinished uploads; remove some`);
    this.#entries += 1;
  }

  leave(): void {
    this.#entries -= 1;
  }

  /** An unfinished upload became a taken file. */
  take(size: number): void {
    this.#unfinished -= size;
    this.#entries -= 1;
    this.#taken += 1;
  }

  /** A file was removed or replaced. */
  forget(found: Stats): void {
    if (isTaken(found)) {
      this.#taken -= 1;
      return;
    }
    this.#unfinished -= found.size;
    this.#entries -= 1;
  }
}
