/** One poll of one drop: list, record what was seen, settle, and hand what is ready to the gateway. */
import type { Arrival, ArrivalState, FileEntry, IsoInstant } from "../model.ts";
import type { Clock } from "../support/clock.ts";
import { Marks } from "../support/marks.ts";
import { DoneFiles } from "./done-files.ts";
import type { Drop } from "./drop.ts";
import { whySkipped } from "./initial.ts";
import { type Aged, Oldest } from "./oldest.ts";
import type { DropOptions } from "./options.ts";
import { Settling } from "./settling.ts";
import { type Group, inTakeOrder } from "./take-order.ts";

/** What pick-up needs of the ledger; `Ledger` has this shape. */
export interface PickupJournal {
  beginPoll(drop: string): Promise<PickupPoll>;
  advanceArrival(id: number, to: ArrivalState, reason: string): Promise<Arrival>;
  arrivals(ids: readonly number[]): Promise<readonly Arrival[]>;
  arrivalsIn(
    drop: string,
    states: readonly ArrivalState[],
    limit?: number,
    after?: number,
  ): Promise<readonly Arrival[]>;
  settlingAges(drop: string, limit: number, after: number): Promise<readonly Aged[]>;
}

export interface PickupPoll {
  readonly firstContact: boolean;
  record(
    entries: readonly FileEntry[],
  ): Promise<readonly { readonly arrival: Arrival; readonly seen: "new" | "changed" | "known" }[]>;
  complete(): Promise<readonly number[]>;
  abandon(): Promise<void>;
}

/**
 * Matches settled arrivals against the triggers, and opens their runs, in the order in which they are given, or marks them unmatched;
 * afterwards they are no longer `settling`. What it throws ends the poll, when the others of them are claimed: those that are
 * still `settling` are offered again.
 */
export type Claim = (arrivals: readonly Arrival[]) => Promise<void>;

export interface PickupReport {
  /** Files in the listing. */
  readonly listed: number;
  /** Files whose size or time may still change. */
  readonly settling: number;
  /** Files under temporary names, or without their done-file: they wait for their sender. */
  readonly temporary: number;
  /** Files left alone: at first contact by the drop's rule, and done-files. */
  readonly skipped: number;
  /** Of the settling and temporary ones, those that wait longer than the drop's limit. */
  readonly overdue: number;
  /** Files that were handed to `claim`. */
  readonly claimed: number;
  /** Settled files beyond the limit of one poll; the next poll goes on with them. */
  readonly left: number;
  /** Arrivals that have gone from the listing. */
  readonly gone: number;
  /** Why the listing broke off or a claim failed; then the poll is not complete. */
  readonly error?: unknown;
}

/** For `runs --waiting`: a file that is not taken yet, and why. */
export interface WaitingFile {
  readonly path: string;
  readonly reason: string;
  /** Since this process has looked. */
  readonly waitingMs: number;
  /** When the file was first seen. */
  readonly since: IsoInstant;
  readonly overdue: boolean;
}

export interface PickupFacts {
  readonly drop: Drop;
  readonly options: Pick<DropOptions, "settle" | "temporaryNames" | "perPollMax" | "initial"> &
    Partial<Pick<DropOptions, "order">>;
  readonly journal: PickupJournal;
  readonly claim: Claim;
  readonly clock: Clock;
  /** See `AGES_KEPT`. */
  readonly agesKept?: number;
  /** A file has not settled within the drop's limit; told once a file. */
  readonly onOverdue?: (file: WaitingFile) => void;
}

/** Arrivals that are claimed together, so that they share a transaction and what is looked up for them. */
const CLAIMED_AT_ONCE = 50;
/** Entries recorded in one transaction. More at once would be no faster, and outlive the young generation of the heap. */
const CHUNK = 200;
/** Arrivals read at once. */
const READ_AT_ONCE = 100;
/** Settled files whose ages are kept for the takes to come: to read them again means to look at every file that is left. */
const AGES_KEPT = 20_000;
/** Waiting files whose reasons are kept for people. */
const WAITING_SHOWN = 100;

export const NOTHING: PickupReport = {
  listed: 0,
  settling: 0,
  temporary: 0,
  skipped: 0,
  overdue: 0,
  claimed: 0,
  left: 0,
  gone: 0,
};

interface Tally {
  listed: number;
  settling: number;
  temporary: number;
  skipped: number;
  overdue: number;
  claimed: number;
  left: number;
  gone: number;
}

/** What one poll has found so far. */
interface Found {
  readonly tally: Tally;
  readonly oldest: Oldest;
  readonly waiting: WaitingFile[];
  readonly firstContact: boolean;
  /** Paths of the done-files in the listing. */
  readonly done: Set<string>;
  /** Settled files that wait to be told that their done-file is there. */
  readonly undecided: { readonly arrival: Arrival; readonly sinceMs: number }[];
}

export class Pickup {
  readonly #facts: PickupFacts;
  readonly #settling: Settling;
  readonly #doneFiles: DoneFiles | null;
  /** Arrivals that were told to be overdue. */
  readonly #toldOverdue = new Set<number>();
  #waiting: WaitingFile[] = [];
  /** Ids of the arrivals that the last listing showed to be settled and that were not taken yet. */
  #ready = new Marks();
  #readyCount = 0;
  /** The oldest of these, oldest first. */
  #left: readonly Aged[] = [];
  /** What the last listing found. */
  #listed: PickupReport = NOTHING;
  #busy: Promise<unknown> = Promise.resolve();

  constructor(facts: PickupFacts) {
    this.#facts = facts;
    const { doneFile } = facts.options.settle;
    this.#doneFiles = doneFile === undefined ? null : new DoneFiles(doneFile);
    this.#settling = new Settling({
      observations: facts.options.settle.observations,
      intervalMs: facts.options.settle.interval,
      temporaryNames: facts.options.temporaryNames,
    });
  }

  /** Never throws for faults of the drop or the ledger: they are in the report. Polls and re-matches wait for each other. */
  poll(signal: AbortSignal): Promise<PickupReport> {
    return this.#inTurn(() => this.#poll(signal));
  }

  /** Takes what the last listing showed to be settled and no poll has taken yet, without listing again. Otherwise as `poll`. */
  takeLeft(signal: AbortSignal): Promise<PickupReport> {
    return this.#inTurn(async () => {
      const found = { ...this.#listed, claimed: 0, left: 0, gone: 0 };
      try {
        if (this.#left.length === 0 && this.#readyCount > 0) await this.#readLeft();
      } catch (error) {
        return { ...found, error };
      }
      return this.#take(found, null, signal);
    });
  }

  /** Offers the unmatched arrivals again, after the triggers changed. Answers how many were offered. */
  rematch(signal: AbortSignal): Promise<number> {
    return this.#inTurn(async () => {
      let offered = 0;
      let some: Arrival[] = [];
      for await (const arrival of this.#arrivalsIn("unmatched")) {
        if (signal.aborted) break;
        some.push(arrival);
        offered += 1;
        if (some.length < CLAIMED_AT_ONCE) continue;
        await this.#facts.claim(some);
        some = [];
      }
      if (some.length > 0) await this.#facts.claim(some);
      return offered;
    });
  }

  /** As of the last poll. */
  waiting(): readonly WaitingFile[] {
    return this.#waiting;
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const turn = this.#busy.then(work);
    this.#busy = turn.catch(() => undefined); // Its caller hears of it.
    return turn;
  }

  async #readLeft(): Promise<void> {
    const { drop, journal } = this.#facts;
    const oldest = this.#newOldest();
    for (let after = 0, more = true; more; ) {
      const some = await journal.settlingAges(drop.name, READ_AT_ONCE, after);
      for (const age of some) if (this.#ready.has(age.id)) oldest.add(age);
      after = some.at(-1)?.id ?? after;
      more = some.length === READ_AT_ONCE;
    }
    this.#keep(oldest);
  }

  #newOldest(): Oldest {
    const { perPollMax, order } = this.#facts.options;
    return new Oldest(Math.max(perPollMax, this.#facts.agesKept ?? AGES_KEPT), order);
  }

  #keep(oldest: Oldest): void {
    this.#left = oldest.take();
    this.#readyCount = this.#left.length + oldest.beyond;
  }

  async *#arrivalsIn(state: ArrivalState): AsyncGenerator<Arrival> {
    const { drop, journal } = this.#facts;
    for (let after = 0, more = true; more; ) {
      const some = await journal.arrivalsIn(drop.name, [state], READ_AT_ONCE, after);
      yield* some;
      after = some.at(-1)?.id ?? after;
      more = some.length === READ_AT_ONCE;
    }
  }

  async #poll(signal: AbortSignal): Promise<PickupReport> {
    const tally: Tally = { ...NOTHING };
    const oldest = this.#newOldest();
    this.#ready = new Marks();
    const error = await this.#listAndSettle(tally, oldest, signal);
    this.#keep(oldest);
    this.#listed = { ...tally };
    // A settled file is settled, also when another folder of the drop could not be listed.
    return this.#take(tally, error, signal);
  }

  async #take(found: PickupReport, error: unknown, signal: AbortSignal): Promise<PickupReport> {
    const { journal, options } = this.#facts;
    const batch = this.#left.slice(0, options.perPollMax);
    const tally: Tally = { ...found, left: this.#readyCount - batch.length };
    let done = 0;
    try {
      while (done < batch.length && !signal.aborted) {
        const some = batch.slice(done, done + CLAIMED_AT_ONCE);
        const arrivals = await journal.arrivals(some.map(({ id }) => id));
        const settled = arrivals.filter(({ state }) => state === "settling");
        if (settled.length > 0) await this.#facts.claim(settled);
        tally.claimed += settled.length;
        for (const { id } of settled) this.#forget(id);
        for (const { id } of some) this.#ready.delete(id);
        done += some.length;
      }
    } catch (thrown) {
      return { ...tally, error: error ?? thrown };
    } finally {
      // What was not come to is offered again.
      this.#left = this.#left.slice(done);
      this.#readyCount -= done;
    }
    return error === null ? tally : { ...tally, error };
  }

  /** Answers what went wrong, or null when the listing was complete. */
  async #listAndSettle(tally: Tally, oldest: Oldest, signal: AbortSignal): Promise<unknown> {
    const { clock, drop, journal, options } = this.#facts;
    const waiting: WaitingFile[] = [];
    let poll: PickupPoll | null = null;
    try {
      poll = await journal.beginPoll(drop.name);
      const { firstContact } = poll;
      const found: Found = { tally, oldest, waiting, firstContact, done: new Set(), undecided: [] };
      for await (const chunk of inTakeOrder(drop.list(signal), CHUNK, clock, options.order)) {
        // Thousands may be listed and not recorded; who stops does not wait for that.
        signal.throwIfAborted();
        await this.#recordChunk(poll, chunk, found);
      }
      const gone = await poll.complete();
      for (const id of gone) this.#forget(id);
      tally.gone = gone.length;
      await this.#decideByDoneFiles(found);
      return null;
    } catch (thrown) {
      await poll?.abandon();
      return thrown;
    } finally {
      this.#waiting = waiting;
    }
  }

  #forget(id: number): void {
    this.#settling.forget(id);
    this.#toldOverdue.delete(id);
  }

  async #recordChunk(poll: PickupPoll, { entries, listedMs }: Group, found: Found): Promise<void> {
    found.tally.listed += entries.length;
    const nowMs = this.#facts.clock.monotonicMs();
    const noted: Promise<unknown>[] = [];
    for (const { path } of entries) if (this.#doneFiles?.isDoneFile(path) === true) found.done.add(path);
    for (const { arrival, seen } of await poll.record(entries)) {
      const doneFile = found.done.has(arrival.path);
      const skipped = doneFile
        ? "it is a done-file: it tells that another file is complete"
        : this.#whySkipped(arrival, found);
      if (skipped !== null) {
        found.tally.skipped += 1;
        this.#forget(arrival.id);
        noted.push(this.#facts.journal.advanceArrival(arrival.id, "skipped", skipped));
        continue;
      }
      const verdict = this.#settling.observe(arrival, nowMs, listedMs);
      if (verdict.settled && this.#doneFiles !== null)
        found.undecided.push({ arrival, sinceMs: verdict.sinceMs });
      else if (verdict.settled) this.#offer(arrival, found);
      else noted.push(this.#wait(arrival, verdict, seen === "changed", found));
    }
    await Promise.all(noted);
  }

  #offer(arrival: Arrival, { oldest }: Found): void {
    this.#ready.add(arrival.id);
    oldest.add(arrival);
  }

  #whySkipped(arrival: Arrival, found: Found): string | null {
    if (!found.firstContact) return null;
    return whySkipped(this.#facts.options.initial, this.#facts.drop.modifiedMs(arrival));
  }

  /** The listing is complete, and so the set of done-files. */
  async #decideByDoneFiles(found: Found): Promise<void> {
    const noted: Promise<unknown>[] = [];
    for (const { arrival, sinceMs } of found.undecided) {
      const doneFile = this.#doneFiles?.of(arrival.path) ?? "";
      if (found.done.has(doneFile)) {
        this.#offer(arrival, found);
        continue;
      }
      const verdict = { reason: `waits for its done-file ${doneFile}`, sinceMs, temporary: true };
      noted.push(this.#wait(arrival, verdict, false, found));
    }
    await Promise.all(noted);
  }

  async #wait(
    arrival: Arrival,
    verdict: { readonly reason: string; readonly sinceMs: number; readonly temporary: boolean },
    changed: boolean,
    { tally, waiting }: Found,
  ): Promise<void> {
    const { clock, journal, onOverdue, options } = this.#facts;
    const waitingMs = clock.monotonicMs() - verdict.sinceMs;
    const overdue = waitingMs >= options.settle.limit;
    const reason = overdue ? `has not settled for long: ${verdict.reason}` : verdict.reason;
    const file = { path: arrival.path, reason, waitingMs, since: arrival.seenAt, overdue };
    if (verdict.temporary) tally.temporary += 1;
    else tally.settling += 1;
    if (overdue) tally.overdue += 1;
    if (overdue && !this.#toldOverdue.has(arrival.id)) {
      this.#toldOverdue.add(arrival.id);
      onOverdue?.(file);
    }
    // The overdue come first: there is room for some.
    if (waiting.length < WAITING_SHOWN) waiting.push(file);
    else if (overdue) {
      const at = waiting.findIndex((one) => !one.overdue);
      if (at >= 0) waiting[at] = file;
    }
    // Such a file may lie there for ever, so the ledger tells why; the other reasons pass with the next polls.
    if ((verdict.temporary || overdue) && !changed && arrival.reason !== reason)
      await journal.advanceArrival(arrival.id, "settling", reason);
  }
}
