/**
 * A drop on a server. It contains the common part of SFTP and FTP; a protocol provides the few steps in which
 * they differ.
 */
import { ConfigError, HeadgateError, TransientError, wordsOf } from "#core/errors.ts";
import type { Logger } from "#core/log.ts";
import { settleEach } from "#core/promises.ts";
import type { FetchedFile, FileEntry } from "../model.ts";
import type { Drop, FinishPlanned, OnFolder, ProbeFinding } from "./drop.ts";
import { fetchEach } from "./fetch-list.ts";
import { finishSource, planInside, type SourceFiles, sameVersion } from "./finish.ts";
import { FolderWalk } from "./folder-walk.ts";
import type { FtpOptions, SftpOptions } from "./options.ts";
import {
  type ArchiveClearing,
  type DropFilter,
  EVERYTHING,
  foldersOf,
  insideDrop,
  listingFilter,
  oldest,
} from "./paths.ts";
import { type ProbeSteps, probeDrop } from "./probe.ts";
import type { TrialFiles } from "./probe-trial.ts";
import { type Destination, openReceiver, type Receiver } from "./receive.ts";
import { changedWhileFetched, notPermitted, refuseTooLarge, vanished } from "./refusals.ts";

/**
 * `Link` is the connection, or a channel of it, on which the steps of one piece of work run. Paths are
 * relative to the drop's root.
 */
export interface RemoteProtocol<Link> {
  readonly kind: "sftp" | "ftp";
  /** Address of the server, with its port. */
  readonly address: string;
  readonly check: RemoteCheck;
  /** Lends a connection, which is opened when there is none. An aborted signal ends the work. */
  use<T>(signal: AbortSignal, work: (link: Link) => Promise<T>): Promise<T>;
  /** The files of all folders of the walk, in groups as the server sends them. */
  list(walk: FolderWalk, signal: AbortSignal): AsyncIterable<readonly FileEntry[]>;
  /** The present version of the file; null for a missing path, or one that is not a file. */
  stat(link: Link, path: string): Promise<FileEntry | null>;
  /**
   * Writes the bytes that the receiver lacks. Whether the file is still the same is checked before and after.
   */
  copy(link: Link, entry: FileEntry, receiver: Receiver): Promise<void>;
  /** `makeFolder` creates one folder in an existing one. */
  files(link: Link): Omit<SourceFiles, "stat">;
  modifiedMs(entry: FileEntry): number | null;
  /** The meaning of a server's error for the file or folder of the operation. */
  meaningOf(thrown: unknown, operation: string): "refused" | "missing" | null;
  close(): Promise<void>;
}

/** For `headgate check`. */
export interface RemoteCheck {
  readonly whyNoClock: string;
  readonly steps: ProbeSteps;
  /** How the folder was listed, such as ` by MLSD`; empty where there is only one way. */
  listedBy(): string;
  /** Called before the folder is listed. */
  begin(): void;
  trial(signal: AbortSignal): TrialFiles;
}

/**
 * Breaks that one fetch survives; after that, and after a break before any byte, a later attempt begins from
 * the start.
 */
const RESUMES_MAX = 10;

const FINISH = "finish source file";

export class RemoteDrop<Link> implements Drop {
  readonly kind: "sftp" | "ftp";
  readonly name: string;
  readonly log: Logger;
  readonly #options: SftpOptions | FtpOptions;
  readonly #protocol: RemoteProtocol<Link>;
  readonly #filter: DropFilter;
  #linksSeen = 0;

  constructor(options: SftpOptions | FtpOptions, log: Logger, protocol: RemoteProtocol<Link>) {
    this.kind = protocol.kind;
    this.name = options.name;
    this.log = log;
    this.#options = options;
    this.#protocol = protocol;
    this.#filter = listingFilter(options);
  }

  async *list(signal: AbortSignal, onFolder?: OnFolder): AsyncGenerator<readonly FileEntry[]> {
    this.#filter.begin();
    const walk = new FolderWalk({ drop: this, from: "", filter: this.#filter, onFolder });
    yield* this.#listWalk(walk, signal);
    this.#linksSeen = walk.linksCount;
    this.#filter.end();
  }

  async stat(path: string, signal: AbortSignal): Promise<FileEntry | null> {
    insideDrop(this.name, path);
    return this.#work("stat file", signal, (link) => this.#protocol.stat(link, path));
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
      const work = (link: Link) => finishSource(this, this.#files(link), entry, plan);
      return await this.#work(FINISH, signal, work, entry.path);
    });
  }

  withFiles<T>(path: string, signal: AbortSignal, work: (files: SourceFiles, log: Logger) => Promise<T>): Promise<T> {
    insideDrop(this.name, path);
    return this.#work(FINISH, signal, (link) => work(this.#files(link), this.log), path);
  }

  probe(signal: AbortSignal, onEntry: (entry: FileEntry) => void = () => undefined): Promise<readonly ProbeFinding[]> {
    const { path, username } = this.#options;
    const { check, address } = this.#protocol;
    check.begin();
    const facts = {
      options: this.#options,
      place: `${address}${path}`,
      who: username,
      whyNoClock: check.whyNoClock,
      list: (given: AbortSignal) => this.list(given),
      linksSeen: () => this.#linksSeen,
      listedWhere: () => `in ${path}${check.listedBy()}`,
      files: (given: AbortSignal) => check.trial(given),
    };
    return probeDrop(facts, check.steps, signal, onEntry);
  }

  listArchive(folder: string, signal: AbortSignal): AsyncIterable<readonly FileEntry[]> {
    const from = insideDrop(this.name, folder);
    return this.#listWalk(new FolderWalk({ drop: this, from, filter: EVERYTHING }), signal);
  }

  async clearArchive(clearing: ArchiveClearing, signal: AbortSignal): Promise<number> {
    const old = await oldest(this.listArchive(clearing.folder, signal), clearing);
    for (const path of old) await this.#work("clear archive", signal, (link) => this.#files(link).remove(path), path);
    return old.length;
  }

  modifiedMs(entry: FileEntry): number | null {
    return this.#protocol.modifiedMs(entry);
  }

  close(): Promise<void> {
    return this.#protocol.close();
  }

  async *#listWalk(walk: FolderWalk, signal: AbortSignal): AsyncGenerator<readonly FileEntry[]> {
    try {
      yield* this.#protocol.list(walk, signal);
    } catch (thrown) {
      throw this.#translate("list drop", thrown);
    }
  }

  async #copy(link: Link, entry: FileEntry, receiver: Receiver): Promise<void> {
    this.#refuseChanged(await this.#protocol.stat(link, entry.path), entry);
    await this.#protocol.copy(link, entry, receiver);
    this.#refuseChanged(await this.#protocol.stat(link, entry.path), entry);
  }

  #refuseChanged(now: FileEntry | null, entry: FileEntry): void {
    if (now === null) throw vanished(this.name, entry.path);
    if (!sameVersion(now, entry)) throw changedWhileFetched(this.name, entry, "it has another size or time now");
  }

  #files(link: Link): SourceFiles {
    const files = this.#protocol.files(link);
    return {
      ...files,
      stat: (path) => this.#protocol.stat(link, path),
      makeFolder: async (path) => {
        for (const folder of foldersOf(path)) await files.makeFolder(folder);
      },
    };
  }

  async #work<T>(operation: string, signal: AbortSignal, work: (link: Link) => Promise<T>, path?: string): Promise<T> {
    try {
      return await this.#protocol.use(signal, work);
    } catch (thrown) {
      throw this.#translate(operation, thrown, path);
    }
  }

  #translate(operation: string, thrown: unknown, path?: string): unknown {
    if (thrown instanceof HeadgateError) return thrown;
    const meaning = this.#protocol.meaningOf(thrown, operation);
    if (path !== undefined && meaning === "refused") return notPermitted(this.name, operation, path, thrown);
    if (path !== undefined && meaning === "missing") return vanished(this.name, path);
    const facts = { operation, subject: this.name, cause: thrown };
    if (meaning === "refused")
      return new ConfigError("HG-DROP-007", {
        ...facts,
        message: `${operation}: the server of drop ${this.name} does not permit it: ${wordsOf(thrown)}`,
      });
    if (meaning === "missing")
      return new ConfigError("HG-DROP-002", {
        ...facts,
        message: `the folder ${this.#options.path} of drop ${this.name} does not exist on ${this.#options.host}`,
      });
    if (operation === FINISH)
      return new TransientError("HG-DROP-009", {
        ...facts,
        message: `${path} in drop ${this.name} could not be archived or deleted: ${wordsOf(thrown)}`,
      });
    return new TransientError("HG-DROP-001", {
      ...facts,
      message: `${operation} failed at drop ${this.name} (${this.#protocol.address}): ${wordsOf(thrown)}`,
    });
  }
}

// A fetch that resumes after a broken connection.

/**
 * Calls `attempt` until the receiver has all bytes. Each attempt continues at `receiver.bytes` (or restarts
 * the receiver), and verifies by size and time, before and after, that the version is still the same. The
 * digest covers every byte on its way to the disk; bytes that an earlier process wrote are never trusted.
 */
async function fetchResuming(
  drop: { readonly name: string; readonly log: Logger },
  entry: FileEntry,
  destination: Destination,
  signal: AbortSignal,
  attempt: (receiver: Receiver) => Promise<void>,
): Promise<FetchedFile> {
  const receiver = await openReceiver(drop.name, entry, destination);
  try {
    for (let resumes = 0; ; resumes += 1) {
      const before = receiver.bytes;
      try {
        await attempt(receiver);
        return await receiver.finish();
      } catch (thrown) {
        const broke = thrown instanceof HeadgateError && thrown.code === "HG-DROP-001";
        if (!broke || signal.aborted || resumes >= RESUMES_MAX || receiver.bytes <= before) throw thrown;
        drop.log.info(
          { drop: drop.name, path: entry.path, bytes: receiver.bytes, reason: wordsOf(thrown) },
          "the connection broke; the fetch resumes",
        );
      }
    }
  } finally {
    await receiver.close();
  }
}
