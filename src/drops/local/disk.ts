/** The lists of a local drop: its thread does the usual files (`disk-work.ts`), and the drop itself the rest, one by one. */
import { realpath } from "node:fs/promises";
import { join } from "node:path";
import type { FetchedFile, FileEntry, FinishResult } from "../../model.ts";
import { DiskThread } from "../../support/disk-thread.ts";
import { faultPoint } from "../../support/faults.ts";
import { bytesOf, type NameEncoding } from "../../support/file-names.ts";
import type { Logger } from "../../support/log.ts";
import { openForWriting } from "../../support/open-files.ts";
import { type Settled, settleRest } from "../../support/settled.ts";
import { asideName } from "../archive-name.ts";
import type { FetchedPart, FinishPlanned } from "../drop.ts";
import { fetchEach } from "../fetch-list.ts";
import { warnOfOvertaken } from "../finish.ts";
import { isInside } from "../paths.ts";
import type { Destination } from "../receive.ts";
import { interrupted } from "../refusals.ts";
import type { FinishWanted, LocalAnswer, LocalOrder } from "./disk-work.ts";

/** How the drop finishes files: `Result` is that of the whole, or of its first half. */
export interface FinishWay<Result> {
  /** The first half alone: a file to be deleted stays aside. */
  readonly inHalves: boolean;
  /** Hears of each file before it may go. */
  readonly onLeaving: (path: string) => void;
  /** Of a file that the thread has finished. */
  readonly resultOf: (result: FinishResult, planned: FinishPlanned) => Result;
  /** Finishes a file that the thread left. */
  readonly finishOne: (planned: FinishPlanned) => Promise<Result>;
}

export interface LocalDiskFacts {
  /** Of the drop. */
  readonly name: string;
  /** The drop's root. */
  readonly path: string;
  readonly names: NameEncoding;
  /** Bytes. */
  readonly maxFileSize: number;
  readonly log: Logger;
}

export class LocalDisk {
  readonly #facts: LocalDiskFacts;
  readonly #thread: DiskThread<LocalOrder, LocalAnswer>;

  constructor(facts: LocalDiskFacts) {
    this.#facts = facts;
    // Compiled, this file is JavaScript and so is the worker beside it.
    const file = import.meta.url.endsWith(".ts") ? "./worker.ts" : "./worker.js";
    this.#thread = new DiskThread({
      module: new URL(file, import.meta.url),
      data: { root: facts.path },
      onFault: (reason) =>
        facts.log.warn(
          { drop: facts.name, reason },
          "the thread for the files of this drop ended; they are taken one by one, and it is started again",
        ),
    });
  }

  /** See `Drop.fetch`; `fetchOne` fetches what the thread left. */
  async fetch(
    entries: readonly FileEntry[],
    destination: string,
    signal: AbortSignal,
    fetchOne: (entry: FileEntry, to: Destination) => Promise<FetchedFile>,
  ): Promise<readonly Settled<FetchedPart>[]> {
    // A file alone is worth no message to the thread.
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
    const answer = order.entries.length === 0 ? [] : await this.#thread.ask(order, signal);
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
    // The caller must know how it ended.
    const order = { kind: "finish", wanted: usual } as const;
    const answer = usual.length === 0 ? [] : await this.#thread.ask(order, signal, true);
    for (const result of answer ?? []) if (result === "done") faultPoint("drops.finish.after-rename");
    const moves = orders.map((order) => order !== null);
    const told = merge(moves, answer, (result, at) => this.#told(result, usual[at]));
    return wanted.map(({ entry, plan }, at) =>
      plan.action === "leave" && isInside(entry.path) ? "done" : (told[at] ?? null),
    );
  }

  /** Of the paths, those that a process has open for writing. */
  async #writtenOf(paths: readonly string[]): Promise<ReadonlySet<string>> {
    const root = await realpath(this.#facts.path).catch(() => this.#facts.path);
    const writers = await openForWriting(paths.map((path) => join(root, path)));
    return new Set(paths.filter((_, at) => writers[at] !== null));
  }

  close(): Promise<void> {
    return this.#thread.close();
  }

  /** Its path is UTF-8: the thread knows no others. */
  #isText(path: string): boolean {
    return typeof bytesOf(path, this.#facts.names) === "string";
  }

  #told(result: LocalAnswer[number], order: FinishWanted | undefined): FinishResult | null {
    if (result !== "overtaken") return typeof result === "string" ? result : null;
    if (order !== undefined) warnOfOvertaken(this.#facts, order.entry, order.to);
    return "changed";
  }
}

/** Null for a file that stays as it is, and for one that the drop itself finishes. A file to be deleted is first moved aside, as `finishSource` does it. */
function orderOf({ entry, plan }: FinishPlanned, inHalves: boolean): FinishWanted | null {
  if (plan.action === "leave" || !isInside(entry.path)) return null;
  if (plan.action === "delete") return { entry, to: asideName(entry, plan), remove: !inHalves };
  return isInside(plan.to) ? { entry, to: plan.to, remove: false } : null;
}

/** The answers of the thread, in the places of the files that it was given. */
function merge<Result>(
  belongs: readonly boolean[],
  answer: LocalAnswer | null,
  tell: (result: LocalAnswer[number], at: number) => Result | null,
): (Result | null)[] {
  let at = -1;
  return belongs.map((one) => {
    if (!one) return null;
    at += 1;
    return tell(answer?.[at] ?? null, at);
  });
}
