/**
 * The lists of a local drop: its thread processes the usual files (`disk-work.ts`), and the drop itself the
 * others, one by one.
 */
import { realpath } from "node:fs/promises";
import { join } from "node:path";
import { TransientError } from "#core/errors.ts";
import { faultPoint } from "#core/faults.ts";
import { bytesOf, type NameEncoding, type PathOnDisk } from "#core/file-names.ts";
import type { Logger } from "#core/log.ts";
import { type Settled, settleRest } from "#core/promises.ts";
import { besideModule } from "#core/threads/beside.ts";
import { DiskThread } from "#core/threads/disk-thread.ts";
import type { FetchedFile, FileEntry, FinishResult } from "../../model.ts";
import type { FetchedPart, FinishPlanned } from "../drop.ts";
import { fetchEach } from "../fetch-list.ts";
import { asideName, warnOfOvertaken } from "../finish.ts";
import { isInside } from "../paths.ts";
import type { Destination } from "../receive.ts";
import { interrupted } from "../refusals.ts";
import type { FileStatuses, FinishWanted, ListAnswer, LocalAnswer, LocalOrder } from "./disk-work.ts";
import type { SomeNames } from "./names-work.ts";
import { openForWriting } from "./open-files.ts";
import { RememberedParts } from "./remembered.ts";
import type { LocalTree } from "./walk.ts";

/** How the drop finishes files: `Result` is that of the whole finish, or of its first half. */
export interface FinishWay<Result> {
  /** Only the first half: a file for deletion stays set aside. */
  readonly inHalves: boolean;
  /** Called for each file before it may be removed. */
  readonly onLeaving: (path: string) => void;
  /** The result for a file that the thread has finished. */
  readonly resultOf: (result: FinishResult, planned: FinishPlanned) => Result;
  /** Finishes a file that the thread left. */
  readonly finishOne: (planned: FinishPlanned) => Promise<Result>;
}

export interface LocalDiskFacts {
  /** Name of the drop. */
  readonly name: string;
  /** The drop's root. */
  readonly path: string;
  readonly names: NameEncoding;
  /** Bytes. */
  readonly maxFileSize: number;
  readonly log: Logger;
}

/** Milliseconds. */
const IDLE_MS = 60_000;
const LISTING = "list drop";

export class LocalDisk {
  readonly #facts: LocalDiskFacts;
  readonly #thread: DiskThread<LocalOrder, LocalAnswer>;
  readonly #remembered = new RememberedParts();
  #listings = 0;
  /**
   * False after the thread failed within a folder, until a listing is complete: a thread that always fails there would
   * cut off every listing.
   */
  #threadReadsNames = true;

  constructor(facts: LocalDiskFacts) {
    this.#facts = facts;
    this.#thread = new DiskThread({
      module: besideModule(import.meta.url, "worker"),
      data: { root: facts.path },
      // Longer than the pause between two polls of a large folder: a start of the thread costs as much as such a poll.
      idleMs: IDLE_MS,
      onFault: (reason) =>
        facts.log.warn(
          { drop: facts.name, reason },
          "the thread for the files of this drop ended; its files are processed one by one, and it is restarted",
        ),
    });
  }

  /** The part of the thread in the listing of a tree. */
  listing(root: string, signal: AbortSignal): Pick<LocalTree, "someNames" | "statuses"> {
    return {
      someNames: (folder) => this.#names(folder, signal),
      statuses: (paths) => this.#statuses(root, paths, signal),
    };
  }

  /** For a listing of the whole drop. */
  beginRemembered(): RememberedParts {
    this.#remembered.begin();
    return this.#remembered;
  }

  /** A listing of the drop was complete. */
  listed(): void {
    this.#remembered.complete();
    this.#threadReadsNames = true;
  }

  /**
   * The statuses of files at these paths below `root`, which lead to them as text, and are separated by a zero
   * character; null when the thread did not read them.
   */
  async #statuses(root: string, paths: string, signal: AbortSignal): Promise<FileStatuses | null> {
    const answer = await this.#thread.ask({ kind: "status", root, paths }, signal);
    return answer !== null && "sizes" in answer ? answer : null;
  }

  /**
   * The names in a folder with this full path, in parts; no part when the thread did not read it, and the caller does.
   * Fails when the thread fails after a part: what it has not read is unknown.
   */
  async *#names(folder: PathOnDisk, signal: AbortSignal): AsyncGenerator<SomeNames> {
    if (!this.#threadReadsNames) return;
    this.#listings += 1;
    const order = { kind: "names", listing: this.#listings, folder, names: this.#facts.names } as const;
    let ended = false;
    try {
      for (let step: "begin" | "continue" = "begin"; !ended; step = "continue") {
        const answer = await this.#thread.ask({ ...order, step }, signal);
        if (answer === null || !("linksCount" in answer)) {
          // A thread that fails closes the folder; after an abort it may have read more.
          ended = !signal.aborted;
          if (step === "begin") return;
          throw this.#brokeOff(folder, signal);
        }
        ended = answer.ended;
        yield answer;
      }
    } finally {
      if (!ended) void this.#thread.ask({ ...order, step: "end" });
    }
  }

  #brokeOff(folder: PathOnDisk, signal: AbortSignal): TransientError {
    const { name } = this.#facts;
    if (signal.aborted) return interrupted(name, LISTING, signal.reason);
    this.#threadReadsNames = false;
    return new TransientError("HG-DROP-001", {
      operation: LISTING,
      subject: name,
      message: `the listing of ${folder} in drop ${name} broke off: the thread that reads its names failed`,
      hint: "The folder is listed again, without that thread. Check the disk or the network share.",
    });
  }

  /** See `Drop.fetch`; `fetchOne` fetches the files that the thread left. */
  async fetch(
    entries: readonly FileEntry[],
    destination: string,
    signal: AbortSignal,
    fetchOne: (entry: FileEntry, to: Destination) => Promise<FetchedFile>,
  ): Promise<readonly Settled<FetchedPart>[]> {
    // For a single file, a message to the thread costs more than it saves.
    const usual = entries.length < 2 ? [] : await this.#fetchUsual(entries, destination, signal);
    return await fetchEach(this.#facts, entries, destination, fetchOne, usual);
  }

  /** See `Drop.finish`. */
  async finish<Result>(
    planned: readonly FinishPlanned[],
    signal: AbortSignal,
    way: FinishWay<Result>,
  ): Promise<readonly Settled<Result>[]> {
    const usual = planned.length < 2 ? [] : await this.#finishUsual(planned, signal, way);
    const results = planned.map((one, at) => {
      const result = usual[at] ?? null;
      return result === null ? null : way.resultOf(result, one);
    });
    return await settleRest(planned, results, (one) => {
      if (signal.aborted) throw interrupted(this.#facts.name, "finish source file", signal.reason);
      return way.finishOne(one);
    });
  }

  async #fetchUsual(
    entries: readonly FileEntry[],
    destination: string,
    signal: AbortSignal,
  ): Promise<readonly (FetchedPart | null)[]> {
    const { maxFileSize } = this.#facts;
    const fits = entries.map(({ size, path }) => size <= maxFileSize && isInside(path) && this.#isText(path));
    const order = { kind: "fetch", entries: entries.filter((_, at) => fits[at]), destination } as const;
    const answer = order.entries.length === 0 ? [] : await this.#askList(order, signal);
    return merge(fits, answer, (result) => (typeof result === "object" ? result : null));
  }

  async #finishUsual(
    wanted: readonly FinishPlanned[],
    signal: AbortSignal,
    { inHalves, onLeaving }: FinishWay<unknown>,
  ): Promise<readonly (FinishResult | null)[]> {
    if (signal.aborted) return wanted.map(() => null);
    const written = await this.#writtenOf(wanted.map(({ entry }) => entry.path));
    const isUnusual = ({ entry, plan }: FinishPlanned) =>
      written.has(entry.path) ||
      ![entry.path, plan.action === "archive" ? plan.to : ""].every((path) => this.#isText(path));
    const orders = wanted.map((one) => (isUnusual(one) ? null : orderOf(one, inHalves)));
    const usual = orders.filter((order) => order !== null);
    for (const { entry } of usual) {
      onLeaving(entry.path);
      faultPoint("drops.finish.before-rename");
    }
    // Without a signal: the caller must know the result.
    const order = { kind: "finish", wanted: usual } as const;
    const answer = usual.length === 0 ? [] : await this.#askList(order, signal, true);
    for (const result of answer ?? []) if (result === "done") faultPoint("drops.finish.after-rename");
    const moves = orders.map((order) => order !== null);
    const results = merge(moves, answer, (result, at) => this.#resultFor(result, usual[at]));
    return wanted.map(({ entry, plan }, at) =>
      plan.action === "leave" && isInside(entry.path) ? "done" : (results[at] ?? null),
    );
  }

  async #askList(order: LocalOrder, signal: AbortSignal, mustReceive = false): Promise<ListAnswer | null> {
    const answer = await this.#thread.ask(order, signal, mustReceive);
    return answer === null || "sizes" in answer || "linksCount" in answer ? null : answer;
  }

  /** The paths that a process has open for writing. */
  async #writtenOf(paths: readonly string[]): Promise<ReadonlySet<string>> {
    const root = await realpath(this.#facts.path).catch(() => this.#facts.path);
    const writers = await openForWriting(paths.map((path) => join(root, path)));
    return new Set(paths.filter((_, at) => writers[at] !== null));
  }

  close(): Promise<void> {
    this.#remembered.forgetAll();
    return this.#thread.close();
  }

  /** Whether the path is UTF-8, since the thread supports no others. */
  #isText(path: string): boolean {
    return typeof bytesOf(path, this.#facts.names) === "string";
  }

  #resultFor(result: ListAnswer[number], order: FinishWanted | undefined): FinishResult | null {
    if (result !== "overtaken") return typeof result === "string" ? result : null;
    if (order !== undefined) warnOfOvertaken(this.#facts, order.entry, order.to);
    return "changed";
  }
}

/**
 * Null for a file that stays unchanged, and for one that the drop itself finishes. A file for deletion is
 * first set aside, as `finishSource` does.
 */
function orderOf({ entry, plan }: FinishPlanned, inHalves: boolean): FinishWanted | null {
  if (plan.action === "leave" || !isInside(entry.path)) return null;
  if (plan.action === "delete") return { entry, to: asideName(entry, plan), remove: !inHalves };
  return isInside(plan.to) ? { entry, to: plan.to, remove: false } : null;
}

/** The results of the thread, at the positions of its files. */
function merge<Result>(
  belongs: readonly boolean[],
  answer: ListAnswer | null,
  convert: (result: ListAnswer[number], at: number) => Result | null,
): (Result | null)[] {
  let at = -1;
  return belongs.map((one) => {
    if (!one) return null;
    at += 1;
    return convert(answer?.[at] ?? null, at);
  });
}
