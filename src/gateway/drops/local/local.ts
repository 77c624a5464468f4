/** A local folder as a drop. Symbolic links are not followed, so no path leads out of it. */
import { constants } from "node:fs";
import { lstat, mkdir, open, realpath, rm, rmdir, statfs, unlink, writeFile } from "node:fs/promises";
import { basename, dirname, join, sep } from "node:path";
import { Chunks } from "#core/chunks.ts";
import { digestOfFile } from "#core/digest.ts";
import { moveDurably, renameDurably, restoreDurably, syncDirectory } from "#core/durable.ts";
import {
  ConfigError,
  HeadgateError,
  isMissing,
  RejectedError,
  systemCode,
  TransientError,
  unlessMissing,
  wordsOf,
} from "#core/errors.ts";
import { folderOnDisk, localPath, type NameEncoding, type PathOnDisk } from "#core/file-names.ts";
import type { Logger } from "#core/log.ts";
import { makeFolderAsAround } from "#core/private-files.ts";
import type { Settled } from "#core/promises.ts";
import type { FetchedFile, FileEntry, FinishPlan, FinishResult } from "../../model.ts";
import {
  type Drop,
  type FinishPlanned,
  movedAside,
  type OnFolder,
  type ProbeFinding,
  type SetAside,
  setOneAside,
} from "../drop.ts";
import { finishSource, planInside, type SourceFiles, sameVersion } from "../finish.ts";
import type { LocalOptions } from "../options.ts";
import {
  type ArchiveClearing,
  type DropFilter,
  EVERYTHING,
  insideDrop,
  type ListingFilter,
  listingFilter,
  oldest,
} from "../paths.ts";
import { type ProbeFacts, type ProbeSteps, probeDrop } from "../probe.ts";
import type { TrialFiles } from "../probe-trial.ts";
import { type Destination, openReceiver } from "../receive.ts";
import {
  changedWhileFetched,
  interrupted,
  notPermitted,
  refuseTooLarge,
  unlessAborted,
  vanished,
} from "../refusals.ts";
import { LocalDisk } from "./disk.ts";
import { type ListedTree, LocalEvents, WATCHED_MAX } from "./events.ts";
import { openForWriting } from "./open-files.ts";
import { entryOf, type LocalTree, listTree, readEntry } from "./walk.ts";

/** File systems by the type number of statfs(2); only those that make a difference. */
const NETWORK: Readonly<Record<number, string>> = {
  26985: "NFS",
  20859: "SMB",
  4283649346: "SMB (cifs)",
  4266872130: "SMB 2",
  1702057286: "FUSE",
  16914839: "9P",
  12805120: "Ceph",
  1397113167: "AFS",
};
/** Bytes; below this senders may soon be refused. */
const FREE_LEAST = 200_000_000;

const CLOSE_WAIT_MS = 2_000;
/** Size of the buffers for copies, and how many of them are kept for the next files. */
const CHUNK = { bytes: 256 * 1024, keptMax: 8 };

export class LocalDrop implements Drop {
  readonly kind = "local";
  readonly gainsByLists = true;
  readonly name: string;
  readonly log: Logger;
  readonly #options: LocalOptions;
  readonly #filter: DropFilter;
  readonly #closing = new AbortController();
  readonly #chunks = new Chunks(CHUNK.bytes, CHUNK.keptMax);
  /** Running copies, including those whose caller no longer waits. */
  readonly #copying = new Set<Promise<unknown>>();
  readonly #disk: LocalDisk;
  #events: LocalEvents | null = null;
  #rootSearch: Promise<string> | null = null;
  #linksSeen = 0;
  #listed: ListedTree | null = null;

  constructor(options: LocalOptions, log: Logger) {
    this.name = options.name;
    this.log = log;
    this.#options = options;
    this.#filter = listingFilter(options);
    this.#disk = new LocalDisk({ ...options, log });
  }

  async *list(signal: AbortSignal, onListed?: OnFolder): AsyncGenerator<readonly FileEntry[]> {
    const root = await this.#guard("list drop", signal, this.#root());
    this.#linksSeen = 0;
    const { dev, ino } = await this.#guard("list drop", signal, lstat(root, { bigint: true }));
    this.#filter.begin();
    const tally = { entries: 0, folders: 0 };
    const remembered = this.#disk.beginRemembered();
    yield* this.#listTree(root, "", this.#filter, signal, { onListed, tally, remembered });
    this.#listed = { root, identity: `${dev}:${ino}`, ...tally };
    this.#events?.listed(this.#listed);
    this.#disk.listed();
    this.#filter.end();
  }

  async stat(path: string, signal: AbortSignal): Promise<FileEntry | null> {
    return this.#guard("stat file", signal, this.#statEntry(path));
  }

  fetch(entries: readonly FileEntry[], destination: string, signal: AbortSignal) {
    return this.#disk.fetch(entries, destination, signal, async (entry, to) => {
      refuseTooLarge(this.name, entry, this.#options.maxFileSize);
      const copy = this.#copy(entry, to, signal);
      this.#copying.add(copy);
      const forget = () => this.#copying.delete(copy);
      copy.then(forget, forget);
      return this.#guard("fetch file", signal, copy, entry.path);
    });
  }

  finish(planned: readonly FinishPlanned[], signal: AbortSignal): Promise<readonly Settled<FinishResult>[]> {
    return this.#disk.finish(planned, signal, {
      ...{ inHalves: false, onLeaving: this.#onLeaving },
      resultOf: (result) => result,
      finishOne: ({ entry, plan }) => this.#finishOne(entry, plan),
    });
  }

  setAside(planned: readonly FinishPlanned[], signal: AbortSignal): Promise<readonly Settled<SetAside>[]> {
    return this.#disk.finish(planned, signal, {
      ...{ inHalves: true, onLeaving: this.#onLeaving },
      resultOf: (result, { entry, plan }) => ({ ...movedAside(entry, plan), result }),
      finishOne: (one) => setOneAside(this, one, signal),
    });
  }

  readonly #onLeaving = (path: string) => this.#events?.expect(path);

  async #finishOne(entry: FileEntry, plan: FinishPlan): Promise<FinishResult> {
    planInside(this.name, entry, plan);
    if (plan.action !== "leave") this.#onLeaving(entry.path);
    try {
      // Without a signal: its steps are few, and the caller must know the result.
      return await finishSource(this, this.#files(), entry, plan);
    } catch (thrown) {
      throw this.#translate("finish source file", thrown, entry.path);
    }
  }

  async withFiles<T>(
    path: string,
    _signal: AbortSignal,
    work: (files: SourceFiles, log: Logger) => Promise<T>,
  ): Promise<T> {
    insideDrop(this.name, path);
    this.#events?.expect(path);
    try {
      return await work(this.#files(), this.log);
    } catch (thrown) {
      throw this.#translate("finish source file", thrown, path);
    }
  }

  probe(signal: AbortSignal, onEntry: (entry: FileEntry) => void = () => undefined): Promise<readonly ProbeFinding[]> {
    const { path } = this.#options;
    const facts: ProbeFacts = {
      options: this.#options,
      place: path,
      who: "the gateway's user",
      whyNoClock: "the file of this check vanished",
      list: (given) => this.list(given),
      linksSeen: () => this.#linksSeen,
      listedWhere: () => `in ${path}`,
      files: () => localTrial(path),
    };
    const steps = localSteps(this.#options, this.log, () => this.#listed);
    return probeDrop(facts, steps, signal, onEntry);
  }

  watch(onChange: () => void): () => Promise<void> {
    if (!this.#options.watch) return async () => undefined;
    const events = new LocalEvents(this.#options, this.log, onChange);
    this.#events = events;
    return () => events.stop();
  }

  eventsArrive(): boolean | null {
    return this.#events?.arrive ?? null;
  }

  async *listArchive(folder: string, signal: AbortSignal): AsyncGenerator<readonly FileEntry[]> {
    const root = await this.#guard("list archive", signal, this.#root());
    yield* this.#listTree(root, insideDrop(this.name, folder), EVERYTHING, signal);
  }

  async clearArchive(clearing: ArchiveClearing, signal: AbortSignal): Promise<number> {
    const old = await oldest(this.listArchive(clearing.folder, signal), clearing);
    for (const path of old) await this.#guard("clear archive", signal, this.#files().remove(path), path);
    return old.length;
  }

  modifiedMs(entry: FileEntry): number | null {
    return Number(BigInt(entry.mtime) / 1_000_000n);
  }

  async close(): Promise<void> {
    this.#closing.abort();
    const closed = this.#disk.close();
    // A hung network share must not keep the gateway from stopping.
    const waited = Promise.withResolvers<void>();
    const timer = setTimeout(waited.resolve, CLOSE_WAIT_MS);
    await Promise.race([Promise.allSettled(this.#copying), waited.promise]);
    clearTimeout(timer);
    await closed;
  }

  #listTree(
    root: string,
    from: string,
    filter: ListingFilter,
    signal: AbortSignal,
    notes: Pick<LocalTree, "onListed" | "tally" | "remembered"> = {},
  ) {
    const tree = {
      ...{ root, filter, names: this.#options.names },
      guard: <T>(work: Promise<T>) => this.#guard("list drop", signal, work),
      onLink: () => {
        this.#linksSeen += 1;
      },
      ...this.#disk.listing(root, signal),
      ...notes,
    };
    return listTree(tree, from);
  }

  async #statEntry(path: string, root?: string): Promise<FileEntry | null> {
    const full = await this.#resolve(path, root);
    return full === null ? null : readEntry(full, path);
  }

  async #copy(entry: FileEntry, destination: Destination, signal: AbortSignal): Promise<FetchedFile> {
    const root = await this.#root();
    const full = await this.#resolve(entry.path, root);
    if (full === null) throw vanished(this.name, entry.path);
    const source = await open(full, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0));
    const receiver = await openReceiver(this.name, entry, destination).catch(async (thrown: unknown) => {
      await source.close();
      throw thrown;
    });
    try {
      if (!sameVersion(entryOf(entry.path, await source.stat({ bigint: true })), entry))
        throw changedWhileFetched(this.name, entry, "it has another size or time now");
      // Smaller files end within it, and larger ones after their listed size.
      await this.#chunks.lend(async (chunk) => {
        for (let more = true; more; ) {
          if (signal.aborted || this.#closing.signal.aborted) throw interrupted(this.name, "fetch file");
          const { bytesRead } = await source.read(chunk, 0, chunk.length);
          if (bytesRead > 0) await receiver.write(chunk.subarray(0, bytesRead));
          more = bytesRead === chunk.length || (bytesRead > 0 && receiver.bytes < entry.size);
        }
      });
      const fetched = await receiver.finish();
      const after = await this.#statEntry(entry.path, root);
      if (after === null) throw vanished(this.name, entry.path);
      if (!sameVersion(after, entry)) throw changedWhileFetched(this.name, entry, "it has another size or time now");
      return fetched;
    } finally {
      await receiver.close();
      await source.close();
    }
  }

  /** Operations on files that resolve the root once. */
  #files(): SourceFiles {
    let looked: Promise<string> | undefined;
    const root = () => {
      looked ??= this.#root();
      return looked;
    };
    const at = async (path: string) => {
      const full = await this.#resolve(path, await root());
      if (full === null) throw vanished(this.name, path);
      return full;
    };
    return {
      stat: async (path: string) => this.#statEntry(path, await root()),
      makeFolder: async (path: string) => {
        if (path === "." || (await isFolder(localPath(await root(), path, this.#options.names)))) return;
        const parts = path.split("/");
        for (const nth of parts.keys()) {
          // Nothing is made where a link leads out of the drop.
          const folder = await at(parts.slice(0, nth + 1).join("/"));
          await makeFolderAsAround(folder).catch((thrown: unknown) => {
            if (systemCode(thrown) !== "EEXIST") throw thrown;
          });
        }
      },
      move: async (from: string, to: string) => {
        const copied = await moveDurably(await at(from), await at(to));
        return copied === null ? null : entryOf(from, copied);
      },
      remove: async (path: string) => {
        const full = await this.#resolve(path, await root());
        if (full === null) return;
        await rm(full, { force: true });
        await syncDirectory(folderOnDisk(full));
      },
      sameContent: async (one: string, other: string) =>
        (await digestOfFile(await at(one))) === (await digestOfFile(await at(other))),
      rename: async (from: string, to: string) => renameDurably(await at(from), await at(to)),
      restore: async (from: string, to: string) => restoreDurably(await at(from), await at(to)),
      // Its folder may have vanished with it.
      identity: async (path: string) => {
        const full = await this.#resolve(path, await root());
        return full === null ? null : identityOf(full);
      },
      writer: async (path: string) => {
        const full = await this.#resolve(path, await root());
        return full === null ? null : ((await openForWriting([String(full)]))[0] ?? null);
      },
    };
  }

  /** The root without symbolic links. Concurrent callers share one resolution. */
  #root(): Promise<string> {
    this.#rootSearch ??= this.#findRoot().finally(() => {
      this.#rootSearch = null;
    });
    return this.#rootSearch;
  }

  async #findRoot(): Promise<string> {
    const root = await realpath(this.#options.path);
    if ((await lstat(root)).isDirectory()) return root;
    throw this.#noFolder(`${this.#options.path} is not a folder`);
  }

  /** The full path when its folder is really inside the root; null when there is no such folder. */
  async #resolve(path: string, known?: string): Promise<PathOnDisk | null> {
    insideDrop(this.name, path);
    const full = await resolveInside(known ?? (await this.#root()), path, this.#options.names);
    if (full !== "outside") return full;
    throw new RejectedError("HG-DROP-005", {
      operation: "resolve path",
      subject: this.name,
      message: `${path} leads out of the drop ${this.name} by a symbolic link`,
    });
  }

  async #guard<T>(operation: string, signal: AbortSignal, work: Promise<T>, path?: string): Promise<T> {
    try {
      return await unlessAborted(this.name, operation, [signal, this.#closing.signal], work);
    } catch (thrown) {
      throw this.#translate(operation, thrown, path);
    }
  }

  #translate(operation: string, thrown: unknown, path?: string): unknown {
    if (thrown instanceof HeadgateError) return thrown;
    const code = systemCode(thrown);
    if (path !== undefined && (code === "EACCES" || code === "EPERM" || code === "EROFS" || code === "ELOOP"))
      return notPermitted(this.name, operation, path, thrown);
    if (path !== undefined && code === "ENOENT") return vanished(this.name, path);
    if (code === "EACCES" || code === "EPERM")
      return new ConfigError("HG-DROP-007", {
        operation,
        subject: this.name,
        message: `drop ${this.name} cannot be listed: ${wordsOf(thrown)}`,
        hint: "Give the gateway's user the right to read and enter this folder.",
        cause: thrown,
      });
    // Its archive may be what is missing, or be a file.
    if (isMissing(thrown) && path === undefined) return this.#noFolder(`${wordsOf(thrown)}`, thrown);
    if (operation === "finish source file")
      return new TransientError("HG-DROP-009", {
        operation,
        subject: `${this.name}: ${path}`,
        message: `${path} in drop ${this.name} could not be archived or deleted: ${wordsOf(thrown)}`,
        cause: thrown,
      });
    return new TransientError("HG-DROP-001", {
      operation,
      subject: this.name,
      message: `drop ${this.name} (${this.#options.path}) cannot be used now: ${wordsOf(thrown)}`,
      hint: "It is retried. Check the disk or the network share.",
      cause: thrown,
    });
  }

  #noFolder(why: string, cause?: unknown): ConfigError {
    return new ConfigError("HG-DROP-002", {
      operation: "open drop",
      subject: this.name,
      message: `the folder ${this.#options.path} of drop ${this.name} cannot be opened: ${why}`,
      cause,
    });
  }
}

// Checks of a single path of a local drop.

async function isFolder(path: PathOnDisk): Promise<boolean> {
  return (await unlessMissing(lstat(path), null))?.isDirectory() === true;
}

/** Device and inode, which distinguish a file from another one of its name; null when it has vanished. */
async function identityOf(path: PathOnDisk): Promise<string | null> {
  const status = await unlessMissing(lstat(path, { bigint: true }), null);
  return status === null ? null : `${status.dev}:${status.ino}`;
}

/** The full path of a file when its folder is really inside the root; null when there is no such folder. */
async function resolveInside(root: string, path: string, names: NameEncoding): Promise<PathOnDisk | "outside" | null> {
  const full = localPath(root, path, names);
  if (!path.includes("/")) return full;
  try {
    if (typeof full === "string") {
      const folder = await realpath(dirname(full));
      return folder === root || folder.startsWith(root + sep) ? join(folder, basename(full)) : "outside";
    }
    const at = full.lastIndexOf(sep);
    const folder = await realpath(full.subarray(0, at), { encoding: "buffer" });
    const isInside = Buffer.concat([folder, Buffer.from(sep)]).indexOf(root + sep) === 0;
    return isInside ? Buffer.concat([folder, full.subarray(at)]) : "outside";
  } catch (thrown) {
    if (isMissing(thrown)) return null;
    throw thrown;
  }
}

// `headgate check` at a local folder.

function localSteps(options: LocalOptions, log: Logger, listed: () => ListedTree | null): ProbeSteps {
  return {
    greet: async () => {
      const facts = await statfs(options.path).catch(() => null); // The listing reports the fault.
      return facts === null ? [] : [folderFinding(options, facts)];
    },
    transferred: async () => [await eventsFinding(options, log, listed())],
  };
}

interface FileSystem {
  readonly type: number;
  readonly bsize: number;
  readonly bavail: number;
}

function folderFinding({ path }: LocalOptions, { type, bsize, bavail }: FileSystem): ProbeFinding {
  const free = bsize * bavail;
  const kind = NETWORK[type >>> 0];
  const where = kind === undefined ? "on a file system of this machine" : `on a network file system (${kind})`;
  const what = `${path} ${where}, ${(free / 1e9).toFixed(1)} GB free`;
  if (free >= FREE_LEAST) return { level: "ok", about: "folder", what };
  return { level: "warning", about: "folder", what, hint: "Free disk space: senders may soon be refused." };
}

async function eventsFinding(options: LocalOptions, log: Logger, tree: ListedTree | null): Promise<ProbeFinding> {
  const { watch, cron } = options;
  const unused = (why: string): ProbeFinding => ({ level: "ok", about: "events", what: `not used: ${why}` });
  if (!watch) return unused("`watch: false`");
  if (cron !== undefined) return unused("polls follow `cron`");
  if (tree === null) return unused("the folder was not listed completely");
  const events = new LocalEvents(options, log, () => undefined);
  try {
    events.listed(tree);
    const arrive = await events.tested();
    if (events.isTooLarge) return tooLarge(tree);
    if (arrive === true) return { level: "ok", about: "events", what: "arrive, so that files are seen at once" };
    if (arrive === null) return { level: "ok", about: "events", what: "whether they arrive is unknown" };
    return {
      level: "warning",
      about: "events",
      what: "do not arrive: files are found only by polls",
      hint: "That is usual for network shares. `every` determines how late a file is found.",
    };
  } finally {
    await events.stop();
  }
}

function tooLarge({ entries, folders }: ListedTree): ProbeFinding {
  const found = `${entries} files and folders in ${folders} folders`;
  const limit = `beyond ${WATCHED_MAX.entries}, or ${WATCHED_MAX.folders} folders`;
  return {
    level: "warning",
    about: "events",
    what: `are not used: ${found}; ${limit}, files are found only by polls`,
    hint: "`every` determines how late a file is found. " + "Archived files, and excluded folders, do not count.",
  };
}

function localTrial(root: string): TrialFiles {
  const full = (path: string) => join(root, path);
  const statusOf = (path: string) => unlessMissing(lstat(full(path)), null);
  return {
    write: (path, content) => writeFile(full(path), content, { flag: "wx" }),
    modified: async (path) => {
      const status = await statusOf(path);
      // File systems may round times to steps of the kernel's clock.
      return status === null ? null : { atMs: status.mtimeMs, precisionMs: 10 };
    },
    exists: async (path) => (await statusOf(path)) !== null,
    isFolder: async (path) => (await statusOf(path))?.isDirectory() === true,
    makeFolder: async (path) => void (await mkdir(full(path))),
    removeFolder: (path) => rmdir(full(path)),
    move: async (from, to) => void (await moveDurably(full(from), full(to))),
    remove: (path) => unlink(full(path)),
    isRefusal: (thrown) => ["EACCES", "EPERM", "EROFS"].includes(systemCode(thrown) ?? ""),
  };
}
