/**
 * Decides whether the spool has space for another file. While a service is away, mapped files pile up here and nowhere
 * else, so this bounds an outage: at the budget, or when the disk runs short, no more files are taken, and they stay at
 * their drops. Runs that have their files continue to their end, which frees space again.
 */
import { join } from "node:path";
import type { Clock } from "#core/clock.ts";
import type { Logger } from "#core/log.ts";
import { triedOnce } from "#core/threads/disk-work.ts";
import type { SpoolState } from "../model.ts";
import { sizeOf } from "./kept-files.ts";
import type { SpoolOptions } from "./options.ts";
import {
  countUsage,
  diskShort,
  INPUTS,
  overBudget,
  type Refusal,
  tooLargeNow,
  type UsageCount,
  uncountable,
} from "./usage.ts";

/** A run that did not ask again for this time no longer waits: a waiting run asks more often by itself. */
const ABANDONED_MS = 10_000;

/** The spool has a file as it came, and as the batches that are made of it, which are larger. */
const COPIES = 3;
/** Once full, files are taken again below this share of the budget, and above that share of the headroom. */
const AGAIN = { budget: 0.9, headroom: 1.1 } as const;
/** At most this share of the time is spent on counting. */
const COUNTING_SHARE = 0.05;
/** Least time between two counts. */
const COUNTED_MS = 1_000;
/** Least time between two counts while a run waits for space. */
const AWAITED_MS = 50;
/** Longest time without a count, below this share of the budget and with so many times the headroom left. */
const PLENTY = { budget: 0.5, headroom: 4, countedMs: 10_000 } as const;
/** Below this share of the budget the bytes of held runs are not counted. */
const HELD_COUNTED_SHARE = 0.25;
/** A change of the bytes of held runs is reported from this share of the budget on. */
const HELD_CHANGE_SHARE = 0.1;
const NOT_COUNTED: UsageCount = {
  ...{ bytes: 0, bodies: 0, shared: 0, held: { runs: 0, bytes: 0 } },
  free: Number.POSITIVE_INFINITY,
};
/**
 * After this time a fetched file has no reservation: its run may have been cancelled before it was mapped.
 */
const MAPPED_WITHIN_MS = 600_000;

export interface QuotaParts {
  readonly clock: Clock;
  readonly log: Logger;
  /** Returns the ids of the held runs. */
  readonly held: () => Promise<ReadonlySet<string>>;
  /** Returns the bytes of bodies that wait in the ledger's database. Null where intakes put none there. */
  readonly shared: (() => Promise<number>) | null;
  /** Called with runs that were refused before, in that order, and may have space now. */
  readonly onSpace?: (ids: readonly string[]) => void;
}

export class SpoolQuota {
  readonly #root: string;
  readonly #options: Pick<SpoolOptions, "budget" | "headroom">;
  readonly #parts: QuotaParts;
  readonly #clock: Clock;
  readonly #waiting = new WaitingRuns();
  /** Space was freed since the last count. */
  #isFreer = false;
  #timer: NodeJS.Timeout | undefined;
  /** The result of the last count. */
  #usage = NOT_COUNTED;
  /** The held bytes that the current refusal names. */
  #reportedHeld = NOT_COUNTED.held;
  readonly #reserved = new Reservations();
  /** Bytes that runs have written since the last count. */
  #writtenSince = 0;
  #countTookMs = 0;
  #countedAtMs = Number.NEGATIVE_INFINITY;
  #counting: Promise<void> | null = null;
  #full: Refusal | null = null;

  constructor(root: string, options: Pick<SpoolOptions, "budget" | "headroom">, parts: QuotaParts) {
    this.#root = root;
    this.#options = options;
    this.#parts = parts;
    this.#clock = parts.clock;
  }

  async state(): Promise<SpoolState> {
    await this.#count();
    return {
      usedBytes: this.#used(),
      sharedBytes: this.#usage.shared,
      held: this.#usage.held,
      budgetBytes: this.#options.budget,
      freeBytes: this.#usage.free,
      full: this.#full?.words ?? null,
    };
  }

  /** Returns why no files are taken at all, or null when they are. */
  async full(): Promise<Refusal | null> {
    await this.#count();
    return this.#full;
  }

  /**
   * Reserves space for a file until `fetched`, or returns why the file has to stay where it is.
   *
   * @param isEntry The file is an entry of a container in the spool, which stays until all its entries came:
   *   they are taken regardless of the budget, as long as the disk has space.
   * @param isBody An intake has the file, which is therefore counted already.
   */
  async reserve(id: string, bytes: number, isEntry: boolean, isBody = false): Promise<Refusal | null> {
    if (!this.#hasPlenty()) await this.#count();
    const need = bytes * COPIES;
    this.#reserved.set(id, null);
    // The part that an earlier attempt fetched is overwritten, so it does not count.
    const own = this.#hasPlenty() ? 0 : (triedOnce(() => sizeOf(join(this.#root, INPUTS, id))) ?? 0);
    const refusal = this.#refusalOf(need, own, isEntry, isBody);
    if (refusal !== null) {
      this.#waiting.add(id, need, this.#clock.monotonicMs());
      // While no run waited, freed space was not counted.
      if (this.#isFreer) this.freed();
      return refusal;
    }
    this.#waiting.delete(id);
    this.#reserved.set(id, { bytes: Math.max(0, need - own), untilMs: Number.POSITIVE_INFINITY });
    return null;
  }

  /** `own`: bytes of the file that are in the spool already. */
  #refusalOf(need: number, own: number, isEntry: boolean, isBody: boolean): Refusal | null {
    if (this.#full?.code === "HG-SPOOL-004") return this.#full;
    const { budget, headroom } = this.#options;
    if (this.#usage.free + own - need < headroom) {
      if (this.#usage.free < AGAIN.headroom * headroom) this.#close(diskShort(headroom));
      return diskShort(headroom);
    }
    if (!isEntry) {
      // Waiting bodies free space only when they are processed, so they do not count against themselves.
      const used = this.#used() - own - (isBody ? this.#usage.bodies : 0);
      // A file larger than the budget is taken when the spool is empty, or it would never be.
      if (used <= 0 && own > 0 && this.#full?.code !== "HG-SPOOL-006") return null;
      const over = used > 0 && used + need > budget;
      if (over && used >= AGAIN.budget * budget) this.#close(this.#overBudget());
      if (this.#full !== null && (over || !isBody)) return this.#full;
      if (over) return tooLargeNow(this.#usage.held);
    }
    return null;
  }

  /** A file of so many bytes was fetched, and is going to be mapped. Null: it was not fetched. */
  fetched(id: string, bytes: number | null): void {
    if (bytes === null) {
      this.#reserved.set(id, null);
      this.freed();
      return;
    }
    const untilMs = this.#clock.monotonicMs() + MAPPED_WITHIN_MS;
    this.#reserved.set(id, { bytes: bytes * (COPIES - 1), untilMs });
    this.#writtenSince += bytes;
  }

  /** The run has written all of its bytes. */
  mapped(id: string): void {
    this.#writtenSince += this.#reserved.of(id);
    this.#reserved.set(id, null);
    this.freed();
  }

  /** Space was freed: runs that were refused are notified after the next count. */
  freed(): void {
    this.#isFreer = true;
    if (this.#waiting.size === 0 || this.#timer !== undefined) return;
    const waitMs = Math.max(0, this.#countDueMs() - this.#clock.monotonicMs());
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      void this.#recount();
    }, waitMs).unref();
  }

  close(): void {
    this.#waiting.clear();
    clearTimeout(this.#timer);
  }

  #used(): number {
    return this.#reserved.bytes + this.#usage.bytes + this.#writtenSince;
  }

  /**
   * Decides by the bytes that runs have written since the last count: other changes of the disk are small in
   * that time.
   */
  #hasPlenty(): boolean {
    const { budget, headroom } = this.#options;
    return (
      this.#full === null &&
      this.#clock.monotonicMs() < this.#countedAtMs + PLENTY.countedMs &&
      this.#used() < PLENTY.budget * budget &&
      this.#usage.free - this.#reserved.bytes - this.#writtenSince > PLENTY.headroom * headroom
    );
  }

  /** Counts again when the last count was long enough ago. Concurrent callers wait for the same count. */
  async #count(): Promise<void> {
    if (this.#counting === null && this.#clock.monotonicMs() < this.#countDueMs()) return;
    await this.#recount();
  }

  #recount(): Promise<void> {
    this.#counting ??= this.#countNow().finally(() => {
      this.#counting = null;
    });
    return this.#counting;
  }

  #countDueMs(): number {
    const leastMs = this.#waiting.size > 0 ? AWAITED_MS : COUNTED_MS;
    return this.#countedAtMs + Math.max(leastMs, this.#countTookMs / COUNTING_SHARE);
  }

  async #countNow(): Promise<void> {
    const begunMs = this.#clock.monotonicMs();
    const before = this.#writtenSince;
    const wasFull = this.#full !== null;
    const isFreer = this.#isFreer;
    this.#isFreer = false;
    this.#reserved.expire(begunMs);
    try {
      // While the ledger cannot be read, the last value counts.
      const readShared = async () => (await this.#parts.shared?.().catch(() => this.#usage.shared)) ?? 0;
      this.#usage = await countUsage(this.#root, await this.#heldRuns(), readShared);
      this.#writtenSince -= before;
      this.#judge();
    } catch (thrown) {
      this.#close(uncountable(thrown));
    }
    const nowMs = this.#clock.monotonicMs();
    this.#countedAtMs = nowMs;
    this.#countTookMs = nowMs - begunMs;
    if (this.#full === null && (isFreer || wasFull)) this.#notifyWaiting();
    if (this.#isFreer) this.freed();
  }

  #notifyWaiting(): void {
    const { budget, headroom } = this.#options;
    const freeBytes = Math.min(budget - this.#used(), this.#usage.free - headroom);
    const ids = this.#waiting.takeFitting(freeBytes, this.#used() === 0, this.#clock.monotonicMs());
    if (ids.length > 0) this.#parts.onSpace?.(ids);
  }

  /** Empty while little of the budget is in use, to spare the query. */
  async #heldRuns(): Promise<ReadonlySet<string>> {
    const isFirst = this.#countedAtMs === Number.NEGATIVE_INFINITY;
    if (!isFirst && this.#used() < HELD_COUNTED_SHARE * this.#options.budget) return new Set();
    // The count does not depend on the ledger.
    return await this.#parts.held().catch(() => new Set<string>());
  }

  #judge(): void {
    const { budget, headroom } = this.#options;
    if (this.#full === null) {
      if (this.#used() >= budget) this.#close(this.#overBudget());
      else if (this.#usage.free < headroom) this.#close(diskShort(headroom));
      return;
    }
    if (this.#used() > AGAIN.budget * budget || this.#usage.free < AGAIN.headroom * headroom) {
      if (this.#full.code === "HG-SPOOL-005" && this.#isHeldOutdated()) this.#full = this.#overBudget();
      return;
    }
    this.#full = null;
    this.#parts.log.info(this.#numbers(), "the spool has space again: files are taken again");
  }

  /** Small changes do not count, since each file reports its refusal. */
  #isHeldOutdated(): boolean {
    const [now, reported] = [this.#usage.held, this.#reportedHeld];
    return (
      (now.runs === 0) !== (reported.runs === 0) ||
      Math.abs(now.bytes - reported.bytes) >= HELD_CHANGE_SHARE * this.#options.budget
    );
  }

  #close(refusal: Refusal): void {
    if (this.#full !== null) return;
    this.#full = refusal;
    this.#parts.log.warn({ code: refusal.code, ...this.#numbers() }, refusal.words);
  }

  #numbers() {
    const { budget, headroom } = this.#options;
    return {
      usedBytes: this.#used(),
      budgetBytes: budget,
      freeBytes: this.#usage.free,
      headroomBytes: headroom,
    };
  }

  #overBudget(): Refusal {
    this.#reportedHeld = this.#usage.held;
    return overBudget(this.#options.budget, this.#usage.held);
  }
}

interface Reservation {
  readonly bytes: number;
  readonly untilMs: number;
}

/** The bytes that runs are going to write into the spool. */
class Reservations {
  readonly #runs = new Map<string, Reservation>();
  #bytes = 0;

  /** The sum of all. */
  get bytes(): number {
    return this.#bytes;
  }

  of(id: string): number {
    return this.#runs.get(id)?.bytes ?? 0;
  }

  set(id: string, next: Reservation | null): void {
    this.#bytes += (next?.bytes ?? 0) - this.of(id);
    if (next === null) this.#runs.delete(id);
    else this.#runs.set(id, next);
  }

  expire(nowMs: number): void {
    for (const [id, { untilMs }] of this.#runs) if (untilMs < nowMs) this.set(id, null);
  }
}

/** The runs that the spool had no space for, in the order in which they asked first. */
class WaitingRuns {
  /** The bytes that each needs, and when it asked last. */
  readonly #runs = new Map<string, { readonly need: number; readonly askedMs: number }>();

  get size(): number {
    return this.#runs.size;
  }

  add(id: string, need: number, askedMs: number): void {
    this.#runs.set(id, { need, askedMs });
  }

  delete(id: string): void {
    this.#runs.delete(id);
  }

  clear(): void {
    this.#runs.clear();
  }

  /**
   * Removes and returns as many runs as may fit into `freeBytes`, first come first served: each of them asks
   * again, and others may have asked meanwhile. An empty spool takes the first one whatever its size.
   */
  takeFitting(freeBytes: number, isEmpty: boolean, nowMs: number): readonly string[] {
    let left = freeBytes;
    const fitting: string[] = [];
    for (const [id, { need, askedMs }] of this.#runs) {
      if (nowMs <= askedMs + ABANDONED_MS) {
        left -= need;
        if (left < 0 && !(isEmpty && fitting.length === 0)) break;
        fitting.push(id);
      }
      this.#runs.delete(id);
    }
    return fitting;
  }
}
