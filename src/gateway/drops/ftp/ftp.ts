/** A directory on an FTP or FTPS server as a drop. Symbolic links are not followed. */
import { posix } from "node:path";
import { Writable } from "node:stream";
import { FTPError } from "basic-ftp";
import { type ConfigError, wordsOf } from "#core/errors.ts";
import type { Logger } from "#core/log.ts";
import type { FileEntry } from "../../model.ts";
import type { Drop } from "../drop.ts";
import type { SourceFiles } from "../finish.ts";
import type { FolderWalk } from "../folder-walk.ts";
import type { FtpOptions } from "../options.ts";
import type { Receiver } from "../receive.ts";
import { cutShort, vanished } from "../refusals.ts";
import { type RemoteCheck, RemoteDrop, type RemoteProtocol } from "../remote-drop.ts";
import { FtpConnections, type FtpLink, portOf } from "./connections.ts";
import { type ListedItem, mlsdTimeMs, parseMlsxLine } from "./list-parser.ts";
import { FtpLister } from "./lister.ts";
import { ftpSteps, ftpTrial } from "./probe.ts";
import { FtpTimes } from "./times.ts";

const READABLE =
  "the password and the files of this FTP drop go over the network readably; set `tls: explicit` if the server can";

/** Does not use the network. */
export function createFtpDrop(options: FtpOptions, log: Logger): Drop {
  if (options.tls === "none") log.warn({ drop: options.name, host: options.host }, READABLE);
  return new RemoteDrop(options, log, new FtpProtocol(options, log));
}

class FtpProtocol implements RemoteProtocol<FtpLink> {
  readonly kind = "ftp";
  readonly address: string;
  readonly check: RemoteCheck;
  readonly #options: FtpOptions;
  readonly #log: Logger;
  readonly #connections: FtpConnections;
  readonly #lister: FtpLister;
  readonly #times = new FtpTimes();

  constructor(options: FtpOptions, log: Logger) {
    this.#options = options;
    this.#log = log;
    this.address = `${options.host}:${portOf(options)}`;
    this.#connections = new FtpConnections(options);
    this.#lister = new FtpLister(options, log);
    const exists = async (path: string, signal: AbortSignal) =>
      (await this.use(signal, (link) => this.stat(link, path))) !== null;
    this.check = {
      whyNoClock: "the server has times by the minute at best",
      steps: ftpSteps(options, this.#connections),
      listedBy: () => ` by ${this.#lister.usedCommand}`,
      begin: () => this.#lister.askTwice(),
      trial: (signal) => ftpTrial({ connections: this.#connections, exists }, signal),
    };
  }

  use<T>(signal: AbortSignal, work: (link: FtpLink) => Promise<T>): Promise<T> {
    return this.#connections.use(signal, work);
  }

  async *list(walk: FolderWalk, signal: AbortSignal): AsyncGenerator<readonly FileEntry[]> {
    if (walk.isWholeDrop) this.#times.beginListing();
    // The connection stays lent while the consumer reads: the server waits for a slow one, and no listing is
    // held in memory.
    const lease = await this.#connections.lend(signal);
    let ended = false;
    try {
      yield* this.#listFolders(lease.link, walk);
      ended = true;
      lease.end();
    } catch (thrown) {
      ended = true;
      throw lease.fail(thrown);
    } finally {
      if (!ended) lease.fail(new Error("the listing was left early"));
    }
    if (walk.isWholeDrop) this.#times.endListing();
  }

  async *#listFolders(link: FtpLink, walk: FolderWalk): AsyncGenerator<readonly FileEntry[]> {
    let partial: ConfigError | null = null;
    for (let folder = walk.next(); folder !== undefined; folder = walk.next()) {
      if (!(await this.#lister.enter(link, posix.join(link.root, folder), folder === ""))) continue;
      const unclear: [string, ListedItem][] = [];
      const closing = yield* this.#listFolder(link, folder, walk, unclear);
      // Queried after the listing, since a connection does one thing at a time; so new files are returned
      // last.
      for (const [path, item] of unclear)
        yield [entryOf(path, await this.#times.sharpen(link, path, item, performance.now()))];
      if (isTruncated(closing))
        partial ??= cutShort(this.#options.name, folder === "" ? this.#options.path : folder, closing);
      else walk.complete();
    }
    // The listed entries were returned, but the listing is not complete.
    if (partial !== null) throw partial;
  }

  async *#listFolder(
    link: FtpLink,
    folder: string,
    walk: FolderWalk,
    unclear: [string, ListedItem][],
  ): AsyncGenerator<readonly FileEntry[], string> {
    const items = this.#lister.items(link, posix.join(link.root, folder));
    try {
      for (;;) {
        const next = await items.next();
        if (next.done === true) return next.value;
        const files: FileEntry[] = [];
        for (const item of next.value) {
          if (this.#cannotBeNamed(item, folder)) continue;
          const path = walk.take(item);
          if (path === null) continue;
          const known = this.#asksTimes(link) ? this.#times.recall(path, item, performance.now()) : item;
          if (known === null) unclear.push([path, item]);
          else files.push(entryOf(path, known));
        }
        yield files;
      }
    } finally {
      await items.return("");
    }
  }

  /** A line break would end the command that names the folder. */
  #cannotBeNamed({ name, kind }: ListedItem, folder: string): boolean {
    if (kind !== "folder" || !/\\x0[AD]/.test(name)) return false;
    const facts = { drop: this.#options.name, folder: posix.join(folder, name) };
    this.#log.warn(facts, "a folder with a line break in its name is not listed");
    return true;
  }

  #asksTimes(link: FtpLink): boolean {
    const { listing } = this.#options;
    return listing === "auto" && link.fileTimes && this.#times.usable && !this.#lister.byMachine(link);
  }

  /** By MLST; where the server has no MLST, by a listing of the folder, so that times compare equal. */
  async stat(link: FtpLink, path: string): Promise<FileEntry | null> {
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
    if (item === undefined && isTruncated(closing)) throw cutShort(this.#options.name, posix.dirname(path), closing);
    return item?.kind === "file" ? entryOf(path, item) : null;
  }

  async #statByFacts(link: FtpLink, path: string): Promise<FileEntry | null> {
    try {
      const answer = await link.client.send(`MLST ${posix.join(link.root, path)}`);
      const line = answer.message.split(/\r?\n/).find((one) => one.startsWith(" "));
      const item = line === undefined ? null : parseMlsxLine(line.slice(1));
      // Here ProFTPD reports symbolic links as files, but not in listings.
      if (item?.kind === "file" && item.mayBeLink === true) return await this.#statByListing(link, path);
      return item?.kind === "file" ? entryOf(path, item) : null;
    } catch (thrown) {
      if (thrown instanceof FTPError && thrown.code === 550) return null;
      throw thrown;
    }
  }

  async copy(link: FtpLink, entry: FileEntry, receiver: Receiver): Promise<void> {
    if (!link.restart && receiver.bytes > 0) await receiver.restart();
    if (receiver.bytes < entry.size || entry.size === 0) {
      const sink = sinkOf(receiver);
      try {
        await link.client.downloadTo(sink.stream, posix.join(link.root, entry.path), receiver.bytes);
      } catch (thrown) {
        await sink.atRest();
        const gone = thrown instanceof FTPError && (await this.stat(link, entry.path)) === null;
        throw gone ? vanished(this.#options.name, entry.path) : (sink.failure() ?? thrown);
      }
    }
  }

  files(link: FtpLink): Omit<SourceFiles, "stat"> {
    const full = (path: string) => posix.join(link.root, path);
    return {
      makeFolder: async (path) => {
        const answer = await link.client.sendIgnoringError(`MKD ${full(path)}`);
        // MKD is refused when the folder exists already; then it can be entered.
        if (answer.code >= 400) await link.client.cd(full(path));
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
          if ((await this.stat(link, path)) !== null) throw thrown;
        }
      },
      // Permanent refusals (RFC 959, section 4.2.1); passing faults have a 4yz code.
      isRefused: (thrown) => thrown instanceof FTPError && thrown.code >= 500,
    };
  }

  modifiedMs(entry: FileEntry): number | null {
    return mlsdTimeMs(entry.mtime);
  }

  /**
   * 550: no access; 553: name not allowed (RFC 959, section 4.2). Servers also use them for other faults of a
   * move.
   */
  meaningOf(thrown: unknown, operation: string): "refused" | null {
    if (operation === "finish source file" || !(thrown instanceof FTPError)) return null;
    return thrown.code === 550 || thrown.code === 553 ? "refused" : null;
  }

  close(): Promise<void> {
    return this.#connections.close();
  }
}

/** Pure-FTPd ends a listing of more files than its limit in this way. */
function isTruncated(closing: string): boolean {
  return /\btruncated\b/i.test(closing);
}

function entryOf(path: string, item: ListedItem): FileEntry {
  return { path, size: item.size, mtime: item.changed };
}

/**
 * A stream into the receiver that remembers its own failure, which basic-ftp would report as one of the
 * connection.
 */
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
