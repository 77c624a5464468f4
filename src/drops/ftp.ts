/** A directory on an FTP or FTPS server as a drop. Symbolic links are not followed. */
import { posix } from "node:path";
import { Writable } from "node:stream";
import { FTPError } from "basic-ftp";
import type { FileEntry } from "../model.ts";
import { ConfigError, HeadgateError, TransientError, wordsOf } from "../support/errors.ts";
import type { Logger } from "../support/log.ts";
import { settleEach } from "../support/settled.ts";
import { EVERYTHING, oldest } from "./archive-cleanup.ts";
import type { Drop, FinishPlanned, OnFolder, ProbeFinding } from "./drop.ts";
import { fetchEach } from "./fetch-list.ts";
import { finishSource, planInside, type SourceFiles, sameVersion } from "./finish.ts";
import { FtpConnections, type FtpLink, type Lease, portOf } from "./ftp-connections.ts";
import { type ListedItem, mlsdTimeMs, parseMlsxLine } from "./ftp-list-parser.ts";
import { FtpLister } from "./ftp-lister.ts";
import { FtpTimes } from "./ftp-times.ts";
import type { FtpOptions } from "./options.ts";
import { type DropFilter, insideDrop, isPlainName, type ListingFilter, listingFilter } from "./paths.ts";
import { type ProbeFacts, probeDrop } from "./probe.ts";
import { ftpSteps, ftpTrial } from "./probe-ftp.ts";
import type { Receiver } from "./receive.ts";
import { changedWhileFetched, cutShort, notPermitted, refuseTooLarge, vanished } from "./refusals.ts";
import { fetchResuming } from "./resumable-fetch.ts";

const READABLE =
  "the password and the files of this FTP drop go over the network readably; set `tls: explicit` if the server can";

export class FtpDrop implements Drop {
  readonly kind = "ftp";
  readonly name: string;
  readonly log: Logger;
  readonly #options: FtpOptions;
  readonly #filter: DropFilter;
  readonly #connections: FtpConnections;
  readonly #lister: FtpLister;
  readonly #times = new FtpTimes();
  #linksSeen = 0;

  constructor(options: FtpOptions, log: Logger) {
    this.name = options.name;
    this.log = log;
    this.#options = options;
    this.#filter = listingFilter(options);
    this.#connections = new FtpConnections(options);
    this.#lister = new FtpLister(options, log);
    if (options.tls === "none") log.warn({ drop: this.name, host: options.host }, READABLE);
  }

  async *list(signal: AbortSignal, onFolder?: OnFolder): AsyncGenerator<FileEntry> {
    this.#linksSeen = 0;
    this.#filter.begin();
    this.#times.beginListing();
    for await (const files of this.#lentList("", this.#filter, signal, onFolder))
      for (const entry of files) yield entry;
    this.#times.endListing();
    this.#filter.end();
  }

  /** The files in a folder and in those below it, in groups. */
  async *#lentList(
    from: string,
    filter: ListingFilter,
    signal: AbortSignal,
    onFolder?: OnFolder,
  ): AsyncGenerator<readonly FileEntry[]> {
    // The connection stays lent while the taker takes: the server waits for a slow one, and nothing is collected.
    const lease = await this.#lend("list drop", signal);
    let ended = false;
    try {
      yield* this.#listAll(lease.link, from, filter, onFolder);
      ended = true;
      lease.end();
    } catch (thrown) {
      ended = true;
      throw this.#translate("list drop", lease.fail(thrown));
    } finally {
      if (!ended) lease.fail(new Error("the listing was left early"));
    }
  }

  async stat(path: string, signal: AbortSignal): Promise<FileEntry | null> {
    insideDrop(this.name, path);
    return this.#work("stat file", signal, (link) => this.#stat(link, path));
  }

  fetch(entries: readonly FileEntry[], destination: string, signal: AbortSignal) {
    return fetchEach(this, entries, destination, async (entry, to) => {
      refuseTooLarge(this.name, entry, this.#options.maxFileSize);
      return fetchResuming(this, entry, to, signal, (receiver) =>
        this.#work("fetch file", signal, (link) => this.#copy(link, entry, receiver), entry.path),
      );
    });
  }

  finish(planned: readonly FinishPlanned[], signal: AbortSignal) {
    return settleEach(planned, async ({ entry, plan }) => {
      planInside(this.name, entry, plan);
      const work = (link: FtpLink) => finishSource(this, this.#files(link), entry, plan);
      return await this.#work("finish source file", signal, work, entry.path);
    });
  }

  withFiles<T>(
    path: string,
    signal: AbortSignal,
    work: (files: SourceFiles, log: Logger) => Promise<T>,
  ): Promise<T> {
    insideDrop(this.name, path);
    return this.#work("finish source file", signal, (link) => work(this.#files(link), this.log), path);
  }

  probe(
    signal: AbortSignal,
    onEntry: (entry: FileEntry) => void = () => undefined,
  ): Promise<readonly ProbeFinding[]> {
    const { host, path, username } = this.#options;
    this.#lister.askTwice();
    const trial = {
      connections: this.#connections,
      exists: async (own: string, given: AbortSignal) => (await this.stat(own, given)) !== null,
    };
    const facts: ProbeFacts = {
      options: this.#options,
      place: `${host}:${portOf(this.#options)}${path}`,
      who: username,
      whyNoClock: "the server tells times by the minute at best",
      list: (given) => this.list(given),
      linksSeen: () => this.#linksSeen,
      listedWhere: () => `in ${path} by ${this.#lister.usedCommand}`,
      files: (given) => ftpTrial(trial, given),
    };
    return probeDrop(facts, ftpSteps(this.#options, this.#connections), signal, onEntry);
  }

  listArchive(folder: string, signal: AbortSignal): AsyncIterable<readonly FileEntry[]> {
    return this.#lentList(insideDrop(this.name, folder), EVERYTHING, signal);
  }

  async clearArchive(
    folder: string,
    isOld: (path: string) => boolean,
    limit: number,
    signal: AbortSignal,
  ): Promise<number> {
    const files = this.#lentList(insideDrop(this.name, folder), EVERYTHING, signal);
    const old = await oldest(files, isOld, limit);
    for (const path of old)
      await this.#work("clear archive", signal, (link) => this.#files(link).remove(path), path);
    return old.length;
  }

  modifiedMs(entry: FileEntry): number | null {
    return mlsdTimeMs(entry.mtime);
  }

  close(): Promise<void> {
    return this.#connections.close();
  }

  async *#listAll(
    link: FtpLink,
    from: string,
    filter: ListingFilter,
    onFolder?: OnFolder,
  ): AsyncGenerator<readonly FileEntry[]> {
    let partial: ConfigError | null = null;
    const folders = [from];
    for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
      if (!(await this.#lister.enter(link, posix.join(link.root, folder), folder === ""))) continue;
      const unclear: [string, ListedItem][] = [];
      const known = folders.length;
      const closing = yield* this.#listFolder(link, folder, filter, folders, unclear);
      // Asked when the listing has ended, since a connection does one thing at a time; so this waits for files that are new.
      for (const [path, item] of unclear)
        yield [entryOf(path, await this.#times.sharpen(link, path, item, performance.now()))];
      if (isTruncated(closing))
        partial ??= cutShort(this.name, folder === "" ? this.#options.path : folder, closing);
      else onFolder?.(folder, folders.slice(known));
    }
    // What was listed was handed out; but what was not has not gone.
    if (partial !== null) throw partial;
  }

  async *#listFolder(
    link: FtpLink,
    folder: string,
    filter: ListingFilter,
    folders: string[],
    unclear: [string, ListedItem][],
  ): AsyncGenerator<readonly FileEntry[], string> {
    const items = this.#lister.items(link, posix.join(link.root, folder));
    try {
      for (;;) {
        const next = await items.next();
        if (next.done === true) return next.value;
        const files: FileEntry[] = [];
        for (const item of next.value) {
          const path = this.#sort(item, folder, filter, folders);
          if (path === null) continue;
          const told = this.#asksTimes(link) ? this.#times.recall(path, item, performance.now()) : item;
          if (told === null) unclear.push([path, item]);
          else files.push(entryOf(path, told));
        }
        yield files;
      }
    } finally {
      await items.return("");
    }
  }

  #asksTimes(link: FtpLink): boolean {
    const { listing } = this.#options;
    return listing === "auto" && link.fileTimes && this.#times.usable && !this.#lister.byMachine(link);
  }

  /** The path of a file that concerns us, or null. */
  #sort(item: ListedItem, folder: string, filter: ListingFilter, folders: string[]): string | null {
    if (item.name === "." || item.name === "..") return null;
    if (!isPlainName(item.name)) {
      this.log.warn({ drop: this.name, name: item.name }, "a file with an impossible name is ignored");
      return null;
    }
    const path = folder === "" ? item.name : `${folder}/${item.name}`;
    if (item.kind === "folder" && filter.entersFolder(path)) this.#enter(path, folders);
    if (item.kind === "link") this.#linksSeen += 1;
    return item.kind === "file" && filter.takesFile(path) ? path : null;
  }

  /** A line break would end the command that names the folder. */
  #enter(path: string, folders: string[]): void {
    if (/\\x0[AD]/.test(path))
      this.log.warn(
        { drop: this.name, folder: path },
        "a folder with a line break in its name is not listed",
      );
    else folders.push(path);
  }

  /** By MLST; by a listing of the folder where the server has no MLST, so that times compare equal. */
  async #stat(link: FtpLink, path: string): Promise<FileEntry | null> {
    if (this.#lister.byMachine(link)) return this.#statByFacts(link, path);
    if (!this.#asksTimes(link)) return this.#statByListing(link, path);
    const seen = await this.#times.look(link, path);
    if (seen !== "unclear") return seen && { path, size: seen.size, mtime: seen.changed };
    const entry = await this.#statByListing(link, path);
    if (entry === null) return null;
    const item = { name: path, kind: "file" as const, size: entry.size, changed: entry.mtime };
    return entryOf(path, await this.#times.sharpen(link, path, item, performance.now()));
  }

  async #statByListing(link: FtpLink, path: string): Promise<FileEntry | null> {
    const folder = posix.join(link.root, posix.dirname(path));
    try {
      await link.client.cd(folder);
    } catch (thrown) {
      if (thrown instanceof FTPError && thrown.code === 550) return null;
      throw thrown;
    }
    const { item, closing } = await this.#lister.find(link, folder, posix.basename(path));
    if (item === undefined && isTruncated(closing)) throw cutShort(this.name, posix.dirname(path), closing);
    return item?.kind === "file" ? entryOf(path, item) : null;
  }

  async #statByFacts(link: FtpLink, path: string): Promise<FileEntry | null> {
    try {
      const answer = await link.client.send(`MLST ${posix.join(link.root, path)}`);
      const line = answer.message.split(/\r?\n/).find((one) => one.startsWith(" "));
      const item = line === undefined ? null : parseMlsxLine(line.slice(1));
      // ProFTPD calls symbolic links files here, but not in listings.
      if (item?.kind === "file" && item.mayBeLink === true) return await this.#statByListing(link, path);
      return item?.kind === "file" ? entryOf(path, item) : null;
    } catch (thrown) {
      if (thrown instanceof FTPError && thrown.code === 550) return null;
      throw thrown;
    }
  }

  async #copy(link: FtpLink, entry: FileEntry, receiver: Receiver): Promise<void> {
    this.#refuseChanged(await this.#stat(link, entry.path), entry);
    if (!link.restart && receiver.bytes > 0) await receiver.restart();
    if (receiver.bytes < entry.size || entry.size === 0) {
      const sink = sinkOf(receiver);
      try {
        await link.client.downloadTo(sink.stream, posix.join(link.root, entry.path), receiver.bytes);
      } catch (thrown) {
        await sink.atRest();
        const gone = thrown instanceof FTPError && (await this.#stat(link, entry.path)) === null;
        throw gone ? vanished(this.name, entry.path) : (sink.failure() ?? thrown);
      }
    }
    this.#refuseChanged(await this.#stat(link, entry.path), entry);
  }

  #refuseChanged(now: FileEntry | null, entry: FileEntry): void {
    if (now === null) throw vanished(this.name, entry.path);
    if (!sameVersion(now, entry))
      throw changedWhileFetched(this.name, entry, "it has another size or time now");
  }

  #files(link: FtpLink): SourceFiles {
    const full = (path: string) => posix.join(link.root, path);
    return {
      stat: (path) => this.#stat(link, path),
      makeFolder: async (path) => {
        const parts = path === "." ? [] : path.split("/");
        for (const [at] of parts.entries()) {
          const folder = full(parts.slice(0, at + 1).join("/"));
          const answer = await link.client.sendIgnoringError(`MKD ${folder}`);
          // Refused when it is there already, and then it can be entered.
          if (answer.code >= 400) await link.client.cd(folder);
        }
      },
      move: async (from, to) => {
        await link.client.rename(full(from), full(to));
        this.#times.moved(from, to);
        return null;
      },
      remove: async (path) => {
        try {
          await link.client.remove(full(path));
        } catch (thrown) {
          if ((await this.#stat(link, path)) !== null) throw thrown;
        }
      },
      // Refused for good (RFC 959, section 4.2.1); what passes is answered by a 4yz code.
      isRefused: (thrown) => thrown instanceof FTPError && thrown.code >= 500,
    };
  }

  async #lend(operation: string, signal: AbortSignal): Promise<Lease> {
    try {
      return await this.#connections.lend(signal);
    } catch (thrown) {
      throw this.#translate(operation, thrown);
    }
  }

  async #work<T>(
    operation: string,
    signal: AbortSignal,
    work: (link: FtpLink) => Promise<T>,
    path?: string,
  ): Promise<T> {
    try {
      return await this.#connections.use(signal, work);
    } catch (thrown) {
      throw this.#translate(operation, thrown, path);
    }
  }

  #translate(operation: string, thrown: unknown, path?: string): unknown {
    if (thrown instanceof HeadgateError) return thrown;
    const facts = { operation, subject: this.name, cause: thrown };
    if (operation === "finish source file")
      return new TransientError("HG-DROP-009", {
        ...facts,
        message: `${path} in drop ${this.name} could not be archived or deleted: ${wordsOf(thrown)}`,
      });
    // 550: no access; 553: no such names here (RFC 959, section 4.2).
    if (thrown instanceof FTPError && (thrown.code === 550 || thrown.code === 553)) {
      if (path !== undefined) return notPermitted(this.name, operation, path, thrown);
      return new ConfigError("HG-DROP-007", {
        ...facts,
        message: `${operation}: the server of drop ${this.name} does not permit it: ${thrown.message}`,
      });
    }
    return new TransientError("HG-DROP-001", {
      ...facts,
      message: `${operation} failed at drop ${this.name} (${this.#options.host}:${portOf(this.#options)}): ${wordsOf(thrown)}`,
    });
  }
}

/** As Pure-FTPd ends a listing of more files than it may show. */
function isTruncated(closing: string): boolean {
  return /\btruncated\b/i.test(closing);
}

function entryOf(path: string, item: ListedItem): FileEntry {
  return { path, size: item.size, mtime: item.changed };
}

/** A stream into the receiver that remembers its own failure: basic-ftp reports it as one of the connection. */
function sinkOf(receiver: Receiver): { stream: Writable; failure(): unknown; atRest(): Promise<void> } {
  let failure: unknown = null;
  let writing: Promise<void> = Promise.resolve();
  const stream = new Writable({
    write(chunk: Buffer, _encoding, done) {
      writing = receiver.write(chunk).then(
        () => done(),
        (thrown: unknown) => {
          failure = thrown;
          done(thrown instanceof Error ? thrown : new Error(wordsOf(thrown)));
        },
      );
    },
  });
  return { stream, failure: () => failure, atRest: () => writing };
}
