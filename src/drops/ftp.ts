/** A directory on an FTP or FTPS server as a drop. Symbolic links are not followed. */
import { posix } from "node:path";
import { Writable } from "node:stream";
import { FTPError } from "basic-ftp";
import type { FetchedFile, FileEntry, FinishPlan, FinishResult } from "../model.ts";
import { ConfigError, HeadgateError, TransientError, wordsOf } from "../support/errors.ts";
import type { Logger } from "../support/log.ts";
import type { Drop, ProbeFinding } from "./drop.ts";
import { finishSource, type SourceFiles, sameVersion } from "./finishing.ts";
import { FtpConnections, type FtpLink, portOf } from "./ftp-connections.ts";
import { itemOf, type ListedItem, parseListText, parseMlsd, parseMlsxLine } from "./ftp-listing.ts";
import type { FtpOptions } from "./options.ts";
import { insideDrop, isPlainName, type ListingFilter, listingFilter } from "./paths.ts";
import { openReceiver, type Receiver } from "./receive.ts";
import { changedWhileFetched, notPermitted, refuseTooLarge, vanished } from "./refusals.ts";

/** Answers that say that a command is not known (RFC 959, section 4.2). */
const NOT_IMPLEMENTED = [500, 501, 502, 504];

export class FtpDrop implements Drop {
  readonly kind = "ftp";
  readonly name: string;
  readonly log: Logger;
  readonly #options: FtpOptions;
  readonly #filter: ListingFilter;
  readonly #connections: FtpConnections;
  /** Once MLSD failed at this server it is not tried again: another way of telling times would look like a change. */
  #mlsdRefused = false;
  #linksSeen = 0;

  constructor(options: FtpOptions, log: Logger) {
    this.name = options.name;
    this.log = log;
    this.#options = options;
    this.#filter = listingFilter(options);
    this.#connections = new FtpConnections(options);
  }

  async *list(signal: AbortSignal): AsyncGenerator<FileEntry> {
    this.#linksSeen = 0;
    const folders = [""];
    for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
      const path = folder;
      // The connection is given back before anything is handed out, so that a slow taker blocks nobody.
      const items = await this.#work("list drop", signal, (link) => this.#listFolder(link, path));
      for (const item of items) {
        const entry = this.#sort(item, path, folders);
        if (entry !== null) yield entry;
      }
    }
  }

  async stat(path: string, signal: AbortSignal): Promise<FileEntry | null> {
    insideDrop(this.name, path);
    return this.#work("stat file", signal, (link) => this.#stat(link, path));
  }

  async fetch(entry: FileEntry, destination: string, signal: AbortSignal): Promise<FetchedFile> {
    insideDrop(this.name, entry.path);
    refuseTooLarge(this.name, entry, this.#options.maxFileSize);
    return this.#work("fetch file", signal, (link) => this.#copy(link, entry, destination), entry.path);
  }

  async finish(entry: FileEntry, plan: FinishPlan, signal: AbortSignal): Promise<FinishResult> {
    insideDrop(this.name, entry.path);
    if (plan.action === "archive") insideDrop(this.name, plan.to);
    return this.#work(
      "finish source file",
      signal,
      (link) => finishSource(this, this.#files(link), entry, plan),
      entry.path,
    );
  }

  async probe(signal: AbortSignal): Promise<readonly ProbeFinding[]> {
    const { host, username, tls, path } = this.#options;
    try {
      let files = 0;
      for await (const _ of this.list(signal)) files += 1;
      const secure = tls === "none" ? "without encryption" : `with ${tls} TLS, certificate verified`;
      const mlsd = await this.#work("list drop", signal, async (link) => this.#machineListing(link));
      return [
        {
          level: tls === "none" ? "warning" : "ok",
          what: `logged in to ${host}:${portOf(this.#options)} as ${username} ${secure}`,
          ...(tls === "none"
            ? { hint: "The password goes over the network readably; use tls if the server can." }
            : {}),
        },
        { level: "ok", what: `${files} files listed in ${path} by ${mlsd ? "MLSD" : "LIST"}` },
        ...(this.#linksSeen > 0
          ? [{ level: "warning" as const, what: `${this.#linksSeen} symbolic links are not followed` }]
          : []),
      ];
    } catch (thrown) {
      if (!(thrown instanceof HeadgateError)) throw thrown;
      return [{ level: "failed", what: wordsOf(thrown), hint: thrown.hint }];
    }
  }

  close(): Promise<void> {
    return this.#connections.close();
  }

  #machineListing(link: FtpLink): boolean {
    const { listing } = this.#options;
    return listing === "mlsd" || (listing === "auto" && link.machineListing && !this.#mlsdRefused);
  }

  async #listFolder(link: FtpLink, folder: string): Promise<readonly ListedItem[]> {
    try {
      // Folders are entered rather than named: servers differ in how LIST reads spaces and brackets.
      await link.client.cd(posix.join(link.root, folder));
    } catch (thrown) {
      if (folder !== "" && thrown instanceof FTPError && thrown.code === 550) {
        if (!(await this.#folderExists(link, folder))) return []; // It went while we listed.
      }
      throw thrown;
    }
    return this.#listHere(link);
  }

  async #listHere(link: FtpLink): Promise<readonly ListedItem[]> {
    const mlsd = this.#machineListing(link);
    link.client.parseList = mlsd ? parseMlsd : parseListText;
    link.client.availableListCommands = mlsd ? ["MLSD"] : ["LIST -a", "LIST"];
    try {
      return (await link.client.list()).map(itemOf);
    } catch (thrown) {
      const unknown = thrown instanceof FTPError && NOT_IMPLEMENTED.includes(thrown.code);
      if (!mlsd || !unknown || this.#options.listing === "mlsd") throw thrown;
      this.#mlsdRefused = true;
      this.log.info({ drop: this.name }, "the server offers MLSD but refuses it; LIST is used from now on");
      return this.#listHere(link);
    }
  }

  async #folderExists(link: FtpLink, folder: string): Promise<boolean> {
    await link.client.cd(posix.join(link.root, posix.dirname(folder)));
    const items = await this.#listHere(link);
    return items.some((item) => item.kind === "folder" && item.name === posix.basename(folder));
  }

  #sort(item: ListedItem, folder: string, folders: string[]): FileEntry | null {
    if (item.name === "." || item.name === "..") return null;
    if (!isPlainName(item.name)) {
      this.log.warn({ drop: this.name, name: item.name }, "a file with an impossible name is ignored");
      return null;
    }
    const path = folder === "" ? item.name : `${folder}/${item.name}`;
    if (item.kind === "folder" && this.#filter.entersFolder(path)) folders.push(path);
    if (item.kind === "link") this.#linksSeen += 1;
    return item.kind === "file" && this.#filter.takesFile(path) ? entryOf(path, item) : null;
  }

  /** By MLST; by a listing of the folder where the server has no MLST, so that times compare equal. */
  async #stat(link: FtpLink, path: string): Promise<FileEntry | null> {
    if (this.#machineListing(link)) return this.#statByFacts(link, path);
    try {
      await link.client.cd(posix.join(link.root, posix.dirname(path)));
    } catch (thrown) {
      if (thrown instanceof FTPError && thrown.code === 550) return null;
      throw thrown;
    }
    const item = (await this.#listHere(link)).find((one) => one.name === posix.basename(path));
    return item?.kind === "file" ? entryOf(path, item) : null;
  }

  async #statByFacts(link: FtpLink, path: string): Promise<FileEntry | null> {
    try {
      const answer = await link.client.send(`MLST ${posix.join(link.root, path)}`);
      const line = answer.message.split(/\r?\n/).find((one) => one.startsWith(" "));
      const item = line === undefined ? null : parseMlsxLine(line.slice(1));
      return item?.kind === "file" ? entryOf(path, item) : null;
    } catch (thrown) {
      if (thrown instanceof FTPError && thrown.code === 550) return null;
      throw thrown;
    }
  }

  async #copy(link: FtpLink, entry: FileEntry, destination: string): Promise<FetchedFile> {
    this.#refuseChanged(await this.#stat(link, entry.path), entry);
    const receiver = await openReceiver(this.name, entry, destination);
    try {
      const sink = sinkOf(receiver);
      try {
        await link.client.downloadTo(sink.stream, posix.join(link.root, entry.path));
      } catch (thrown) {
        const gone = thrown instanceof FTPError && (await this.#stat(link, entry.path)) === null;
        throw gone ? vanished(this.name, entry.path) : (sink.failure() ?? thrown);
      }
      const fetched = await receiver.finish();
      this.#refuseChanged(await this.#stat(link, entry.path), entry);
      return fetched;
    } finally {
      await receiver.close();
    }
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
      },
      remove: async (path) => {
        try {
          await link.client.remove(full(path));
        } catch (thrown) {
          if ((await this.#stat(link, path)) !== null) throw thrown;
        }
      },
    };
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
    if (thrown instanceof FTPError && thrown.code === 550) {
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

function entryOf(path: string, item: ListedItem): FileEntry {
  return { path, size: item.size, mtime: item.changed };
}

/** A stream into the receiver that remembers its own failure: basic-ftp reports it as one of the connection. */
function sinkOf(receiver: Receiver): { stream: Writable; failure(): unknown } {
  let failure: unknown = null;
  const stream = new Writable({
    write(chunk: Buffer, _encoding, done) {
      receiver.write(chunk).then(
        () => done(),
        (thrown: unknown) => {
          failure = thrown;
          done(thrown instanceof Error ? thrown : new Error(wordsOf(thrown)));
        },
      );
    },
  });
  return { stream, failure: () => failure };
}
