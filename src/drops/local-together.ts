/** The side of a local drop that hands parties of files to its thread (`local-party.ts`), and reads what it answers. */
import type { FileEntry, FinishPlan, FinishResult } from "../model.ts";
import { DiskThread } from "../support/disk-thread.ts";
import { faultPoint } from "../support/faults.ts";
import { bytesOf, type NameEncoding } from "../support/file-names.ts";
import type { Logger } from "../support/log.ts";
import { asideName } from "./archive-name.ts";
import type { FetchedPart } from "./drop.ts";
import { warnOfOvertaken } from "./finish.ts";
import type { FinishWanted, LocalAnswer, LocalOrder } from "./local-party.ts";
import { isInside } from "./paths.ts";

export interface FinishPlanned {
  readonly entry: FileEntry;
  readonly plan: FinishPlan;
}

export interface FinishMeans {
  /** The first half alone: a file to be deleted stays aside. */
  readonly inHalves: boolean;
  /** A process has the file open for writing: it is finished alone. */
  readonly isWritten: (path: string) => boolean;
  /** Hears of each file before it may go. */
  readonly onLeaving: (path: string) => void;
}

export interface LocalTogetherFacts {
  /** Of the drop. */
  readonly name: string;
  /** The drop's root. */
  readonly path: string;
  readonly names: NameEncoding;
  /** Bytes. */
  readonly maxFileSize: number;
  readonly log: Logger;
}

export class LocalTogether {
  readonly #facts: LocalTogetherFacts;
  readonly #thread: DiskThread<LocalOrder, LocalAnswer>;

  constructor(facts: LocalTogetherFacts) {
    this.#facts = facts;
    // Compiled, this file is JavaScript and so is the worker beside it.
    const file = import.meta.url.endsWith(".ts") ? "./local-worker.ts" : "./local-worker.js";
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

  /** See `Drop.fetchTogether`. */
  async fetch(
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

  /** See `Drop.finishTogether`. */
  async finish(
    wanted: readonly FinishPlanned[],
    signal: AbortSignal,
    { inHalves, isWritten, onLeaving }: FinishMeans,
  ): Promise<readonly (FinishResult | null)[]> {
    if (signal.aborted) return wanted.map(() => null);
    const isAlone = ({ entry, plan }: FinishPlanned) =>
      isWritten(entry.path) ||
      ![entry.path, plan.action === "archive" ? plan.to : ""].every((path) => this.#isText(path));
    const orders = wanted.map((one) => (isAlone(one) ? null : orderOf(one, inHalves)));
    const party = orders.filter((order) => order !== null);
    for (const { entry } of party) {
      onLeaving(entry.path);
      faultPoint("drops.finish.before-rename");
    }
    // The caller must know how it ended.
    const order = { kind: "finish", wanted: party } as const;
    const answer = party.length === 0 ? [] : await this.#thread.ask(order, signal, true);
    for (const result of answer ?? []) if (result === "done") faultPoint("drops.finish.after-rename");
    const moves = orders.map((order) => order !== null);
    const told = merge(moves, answer, (result, at) => this.#told(result, party[at]));
    return wanted.map(({ entry, plan }, at) =>
      plan.action === "leave" && isInside(entry.path) ? "done" : (told[at] ?? null),
    );
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

/** Null for what stays as it is, and for what has to be finished alone. A file to be deleted is first moved aside, as `finishSource` does it. */
function orderOf({ entry, plan }: FinishPlanned, inHalves: boolean): FinishWanted | null {
  if (plan.action === "leave" || !isInside(entry.path)) return null;
  if (plan.action === "delete") return { entry, to: asideName(entry, plan), remove: !inHalves };
  return isInside(plan.to) ? { entry, to: plan.to, remove: false } : null;
}

/** Answers for the party, in the places of those that belong to it. */
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
