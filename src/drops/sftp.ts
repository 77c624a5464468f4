/** A directory on an SFTP server as a drop. Symbolic links are not followed. */
import { posix } from "node:path";
import type { FileEntryWithStats, SFTPWrapper, Stats } from "ssh2";
import type { FileEntry } from "../model.ts";
import { ConfigError, HeadgateError, TransientError, wordsOf } from "../support/errors.ts";
import type { Logger } from "../support/log.ts";
import { settleEach } from "../support/settled.ts";
import { EVERYTHING, oldest } from "./archive-cleanup.ts";
import type { Drop, FinishPlanned, OnFolder, ProbeFinding } from "./drop.ts";
import { fetchEach } from "./fetch-list.ts";
import { finishSource, planInside, type SourceFiles, sameVersion } from "./finish.ts";
import type { SftpOptions } from "./options.ts";
import { type DropFilter, insideDrop, isPlainName, type ListingFilter, listingFilter } from "./paths.ts";
import { type ProbeFacts, probeDrop } from "./probe.ts";
import { sftpSteps, sftpTrial } from "./probe-sftp.ts";
import type { Receiver } from "./receive.ts";
import { changedWhileFetched, notPermitted, refuseTooLarge, vanished } from "./refusals.ts";
import { fetchResuming } from "./resumable-fetch.ts";
import { type SftpCalls, SftpConnection } from "./sftp-connection.ts";

/** Status codes of the protocol (draft-ietf-secsh-filexfer-02, section 7). */
const STATUS = { eof: 1, noSuchFile: 2, permissionDenied: 3, failure: 4 } as const;
/** Bytes asked for in one request, and requests on their way at once. */
const READ_BYTES = 32 * 1024;
const READS_AHEAD = 16;

export class SftpDrop implements Drop {
  readonly kind = "sftp";
  readonly name: string;
  readonly log: Logger;
  readonly #options: SftpOptions;
  readonly #filter: DropFilter;
  readonly #connection: SftpConnection;
  #linksSeen = 0;

  constructor(options: SftpOptions, log: Logger) {
    this.name = options.name;
    this.log = log;
    this.#options = options;
    this.#filter = listingFilter(options);
    this.#connection = new SftpConnection(options);
  }

  async *list(signal: AbortSignal, onFolder?: OnFolder): AsyncGenerator<FileEntry> {
    this.#linksSeen = 0;
    this.#filter.begin();
    for await (const files of this.#listTree("", this.#filter, signal, onFolder))
      for (const entry of files) yield entry;
    this.#filter.end();
  }

  async stat(path: string, signal: AbortSignal): Promise<FileEntry | null> {
    insideDrop(this.name, path);
    return this.#work("stat file", signal, (calls) => this.#stat(calls, path));
  }

  fetch(entries: readonly FileEntry[], destination: string, signal: AbortSignal) {
    return fetchEach(this, entries, destination, async (entry, to) => {
      refuseTooLarge(this.name, entry, this.#options.maxFileSize);
      return fetchResuming(this, entry, to, signal, (receiver) =>
        this.#work("fetch file", signal, (calls) => this.#copy(calls, entry, receiver), entry.path),
      );
    });
  }

  finish(planned: readonly FinishPlanned[], signal: AbortSignal) {
    return settleEach(planned, async ({ entry, plan }) => {
      planInside(this.name, entry, plan);
      const work = (calls: SftpCalls) => finishSource(this, this.#files(calls), entry, plan);
      return await this.#work("finish source file", signal, work, entry.path);
    });
  }

  withFiles<T>(
    path: string,
    signal: AbortSignal,
    work: (files: SourceFiles, log: Logger) => Promise<T>,
  ): Promise<T> {
    insideDrop(this.name, path);
    return this.#work("finish source file", signal, (calls) => work(this.#files(calls), this.log), path);
  }

  probe(
    signal: AbortSignal,
    onEntry: (entry: FileEntry) => void = () => undefined,
  ): Promise<readonly ProbeFinding[]> {
    const { path, username } = this.#options;
    const facts: ProbeFacts = {
      options: this.#options,
      place: `${this.#options.host}:${this.#options.port}${path}`,
      who: username,
      whyNoClock: "the server told no time of a file",
      list: (given) => this.list(given),
      linksSeen: () => this.#linksSeen,
      listedWhere: () => `in ${path}`,
      files: (given) => sftpTrial(this.#connection, (own) => this.#full(own), given),
    };
    return probeDrop(facts, sftpSteps(this.#options, this.#connection), signal, onEntry);
  }

  listArchive(folder: string, signal: AbortSignal): AsyncIterable<readonly FileEntry[]> {
    return this.#listTree(insideDrop(this.name, folder), EVERYTHING, signal);
  }

  async clearArchive(
    folder: string,
    isOld: (path: string) => boolean,
    limit: number,
    signal: AbortSignal,
  ): Promise<number> {
    const old = await oldest(this.#listTree(insideDrop(this.name, folder), EVERYTHING, signal), isOld, limit);
    for (const path of old)
      await this.#work("clear archive", signal, (calls) => this.#files(calls).remove(path), path);
    return old.length;
  }

  modifiedMs(entry: FileEntry): number | null {
    return Number(entry.mtime) * 1000;
  }

  close(): Promise<void> {
    return this.#connection.close();
  }

  /** The files in a folder and in those below it, in groups as the server sends them. */
  async *#listTree(
    from: string,
    filter: ListingFilter,
    signal: AbortSignal,
    onFolder?: OnFolder,
  ): AsyncGenerator<readonly FileEntry[]> {
    const folders = [from];
    for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
      const known = folders.length;
      const isThere = yield* this.#listFolder(folder, folders, filter, signal);
      if (isThere) onFolder?.(folder, folders.slice(known));
    }
  }

  /** Returns false for a folder that went meanwhile. */

  async *#listFolder(
    folder: string,
    folders: string[],
    filter: ListingFilter,
    signal: AbortSignal,
  ): AsyncGenerator<readonly FileEntry[], boolean> {
    const list = <T>(work: (calls: SftpCalls) => Promise<T>) => this.#work("list drop", signal, work);
    const opened = await list(async (calls) => {
      try {
        const open = (sftp: SFTPWrapper, answer: (error: Error | undefined, handle: Buffer) => void) =>
          sftp.opendir(this.#full(folder), answer);
        return { calls, handle: await calls.call("open folder", open) };
      } catch (thrown) {
        if (folder !== "" && statusOf(thrown) === STATUS.noSuchFile) return null; // It went while we listed.
        throw thrown;
      }
    });
    if (opened === null) return false;
    const { calls, handle } = opened; // A handle belongs to its channel.
    try {
      for (;;) {
        const items = await list(() => readFolder(calls, handle));
        if (items === null) return true;
        yield items
          .map((item) => this.#sort(item, folder, filter, folders))
          .filter((entry) => entry !== null);
      }
    } finally {
      await closeHandle(calls, handle);
    }
  }

  #sort(
    item: FileEntryWithStats,
    folder: string,
    filter: ListingFilter,
    folders: string[],
  ): FileEntry | null {
    if (item.filename === "." || item.filename === "..") return null;
    if (!isPlainName(item.filename)) {
      this.log.warn({ drop: this.name, name: item.filename }, "a file with an impossible name is ignored");
      return null;
    }
    const path = folder === "" ? item.filename : `${folder}/${item.filename}`;
    if (item.attrs.isDirectory()) {
      if (filter.entersFolder(path)) folders.push(path);
      return null;
    }
    if (item.attrs.isSymbolicLink()) this.#linksSeen += 1;
    return item.attrs.isFile() && filter.takesFile(path) ? entryOf(path, item.attrs) : null;
  }

  async #stat(calls: SftpCalls, path: string): Promise<FileEntry | null> {
    try {
      const full = this.#full(path);
      // ProFTPD follows links in LSTAT too, so both are asked at once; a server without READLINK has no links to show.
      const link = calls
        .call<string>("read link", (sftp, answer) => sftp.readlink(full, answer))
        .then(
          () => true,
          () => false,
        );
      const status = await calls.call<Stats>("stat file", (sftp, answer) => sftp.lstat(full, answer));
      return status.isFile() && !(await link) ? entryOf(path, status) : null;
    } catch (thrown) {
      if (statusOf(thrown) === STATUS.noSuchFile) return null;
      throw thrown;
    }
  }

  async #copy(calls: SftpCalls, entry: FileEntry, receiver: Receiver): Promise<void> {
    this.#refuseChanged(await this.#stat(calls, entry.path), entry);
    const handle = await calls.call<Buffer>("open file", (sftp, answer) =>
      sftp.open(this.#full(entry.path), "r", answer),
    );
    try {
      for await (const chunk of readAhead(calls, handle, receiver.bytes, entry.size))
        await receiver.write(chunk);
      this.#refuseChanged(await this.#stat(calls, entry.path), entry);
    } finally {
      await closeHandle(calls, handle);
    }
  }

  #refuseChanged(now: FileEntry | null, entry: FileEntry): void {
    if (now === null) throw vanished(this.name, entry.path);
    if (!sameVersion(now, entry))
      throw changedWhileFetched(this.name, entry, "it has another size or time now");
  }

  #files(calls: SftpCalls): SourceFiles {
    return {
      stat: (path) => this.#stat(calls, path),
      makeFolder: async (path) => {
        const parts = path === "." ? [] : path.split("/");
        for (const [at] of parts.entries()) {
          const folder = this.#full(parts.slice(0, at + 1).join("/"));
          try {
            await calls.call<void>("make folder", (sftp, answer) =>
              sftp.mkdir(folder, (error) => answer(error, undefined)),
            );
          } catch (thrown) {
            // Servers answer a bare failure when it is there already.
            const there = await calls
              .call<Stats>("stat folder", (sftp, answer) => sftp.stat(folder, answer))
              .catch(() => null);
            if (!there?.isDirectory()) throw thrown;
          }
        }
      },
      move: (from, to) =>
        calls.call<null>("rename file", (sftp, answer) =>
          sftp.rename(this.#full(from), this.#full(to), (error) => answer(error, null)),
        ),
      remove: async (path) => {
        try {
          await calls.call<void>("delete file", (sftp, answer) =>
            sftp.unlink(this.#full(path), (error) => answer(error, undefined)),
          );
        } catch (thrown) {
          if (statusOf(thrown) !== STATUS.noSuchFile) throw thrown;
        }
      },
      isRefused: (thrown) => statusOf(thrown) === STATUS.permissionDenied,
    };
  }

  #full(path: string): string {
    return posix.join(this.#options.path, path);
  }

  async #work<T>(
    operation: string,
    signal: AbortSignal,
    work: (calls: SftpCalls) => Promise<T>,
    path?: string,
  ): Promise<T> {
    try {
      return await this.#connection.use(signal, work);
    } catch (thrown) {
      throw this.#translate(operation, thrown, path);
    }
  }

  #translate(operation: string, thrown: unknown, path?: string): unknown {
    if (thrown instanceof HeadgateError) return thrown;
    const status = statusOf(thrown);
    const facts = { operation, subject: this.name, cause: thrown };
    if (status === STATUS.permissionDenied) {
      if (path !== undefined) return notPermitted(this.name, operation, path, thrown);
      return new ConfigError("HG-DROP-007", {
        ...facts,
        message: `${operation}: the server of drop ${this.name} does not permit it: ${wordsOf(thrown)}`,
      });
    }
    if (status === STATUS.noSuchFile) {
      if (path !== undefined) return vanished(this.name, path);
      return new ConfigError("HG-DROP-002", {
        ...facts,
        message: `the folder ${this.#options.path} of drop ${this.name} does not exist on ${this.#options.host}`,
      });
    }
    if (operation === "finish source file")
      return new TransientError("HG-DROP-009", {
        ...facts,
        message: `${path} in drop ${this.name} could not be archived or deleted: ${wordsOf(thrown)}`,
      });
    return new TransientError("HG-DROP-001", {
      ...facts,
      message: `${operation} failed at drop ${this.name} (${this.#options.host}:${this.#options.port}): ${wordsOf(thrown)}`,
    });
  }
}

function entryOf(path: string, status: { readonly size: number; readonly mtime: number }): FileEntry {
  return { path, size: status.size, mtime: String(status.mtime) };
}

function statusOf(thrown: unknown): number | undefined {
  return thrown instanceof Error && "code" in thrown && typeof thrown.code === "number"
    ? thrown.code
    : undefined;
}

/** The next part of a folder as the server sends it, or null at its end. */
async function readFolder(calls: SftpCalls, handle: Buffer): Promise<FileEntryWithStats[] | null> {
  try {
    return await calls.call<FileEntryWithStats[]>("list folder", (sftp, answer) =>
      sftp.readdir(handle, answer),
    );
  } catch (thrown) {
    if (statusOf(thrown) === STATUS.eof) return null;
    throw thrown;
  }
}

async function closeHandle(calls: SftpCalls, handle: Buffer): Promise<void> {
  // The server closes the handles of a broken connection by itself.
  await calls
    .call<void>("close handle", (sftp, answer) => sftp.close(handle, (error) => answer(error, undefined)))
    .catch(() => undefined);
}

/** The bytes in order, with several requests on their way, so that a long line costs no speed. */
async function* readAhead(
  calls: SftpCalls,
  handle: Buffer,
  from: number,
  size: number,
): AsyncGenerator<Buffer> {
  const coming: Promise<Buffer>[] = [];
  for (let next = from; next < size || coming.length > 0; ) {
    while (next < size && coming.length < READS_AHEAD) {
      const length = Math.min(READ_BYTES, size - next);
      const part = readPart(calls, handle, next, length);
      part.catch(() => undefined); // Seen when its turn comes; until then it must not count as unhandled.
      coming.push(part);
      next += length;
    }
    const part = await coming.shift();
    if (part === undefined || part.length === 0) return; // Shorter than listed; the receiver says so.
    yield part;
  }
}

/** As many bytes as asked for, or fewer at the end of the file. */
async function readPart(calls: SftpCalls, handle: Buffer, from: number, length: number): Promise<Buffer> {
  const buffer = Buffer.allocUnsafe(length);
  let filled = 0;
  while (filled < length) {
    const read = await calls
      .call<number>("read file", (sftp, answer) =>
        sftp.read(handle, buffer, filled, length - filled, from + filled, answer),
      )
      .catch((thrown: unknown) => {
        if (statusOf(thrown) === STATUS.eof) return 0;
        throw thrown;
      });
    if (read === 0) break;
    filled += read;
  }
  return buffer.subarray(0, filled);
}
