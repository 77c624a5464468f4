/**
 * Makes rollups of what queries have read, in the background: a piece after the other, and a rest after each. Accounts
 * take turns.
 */
import type { Clock } from "#core/clock.ts";
import type { Logger } from "#core/log.ts";
import type { SampleRange } from "../../store/records.ts";
import type { ReadSpan, Rollup } from "../../store/rollups/rollups.ts";
import type { PointStore } from "../../store/store.ts";
import { type Bucket, Buckets, bucketOf } from "../buckets.ts";
import { collectPeriods } from "../periods.ts";
import { bytesOfDays, type Day } from "./days.ts";
import { pointsOnly, RULES } from "./source.ts";

/** Variables and zones of an account that wait; beyond it reports are dropped, since later queries repeat them. */
const WAITING_MAX = 20_000;
/** Periods that were tried are not tried again for this long: their points may change often. */
const AGAIN_MS = 600_000;

export interface BuilderParts {
  readonly points: PointStore;
  readonly clock: Clock;
  readonly log: Logger;
}

interface Tried {
  readonly atMs: number;
  readonly fromMs: number;
  readonly endMs: number;
}

export class RollupBuilder {
  readonly #parts: BuilderParts;
  readonly #closing = new AbortController();
  /** By account, in the order of their turns, then by variable and zone, as `#tried`. */
  readonly #waiting = new Map<number, Map<string, ReadSpan>>();
  readonly #tried = new Map<string, Tried>();
  #running: Promise<void> | null = null;

  constructor(parts: BuilderParts) {
    this.#parts = parts;
    parts.points.rollups.listen((span) => this.#add(span));
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#running;
  }

  #add(span: ReadSpan): void {
    const key = `${span.variable.id} ${span.zone}`;
    const tried = this.#tried.get(key);
    const nowMs = this.#parts.clock.monotonicMs();
    const isRecent = tried !== undefined && nowMs - tried.atMs < AGAIN_MS;
    if (isRecent && tried.fromMs <= span.fromMs && span.endMs <= tried.endMs) return;
    const own = this.#waiting.get(span.variable.accountId) ?? new Map<string, ReadSpan>();
    const known = own.get(key);
    if (this.#closing.signal.aborted || (known === undefined && own.size >= WAITING_MAX)) return;
    const fromMs = Math.min(span.fromMs, known?.fromMs ?? span.fromMs);
    const endMs = Math.max(span.endMs, known?.endMs ?? span.endMs);
    this.#waiting.set(span.variable.accountId, own.set(key, { ...span, fromMs, endMs }));
    this.#running ??= this.#run();
  }

  async #run(): Promise<void> {
    const { clock, log } = this.#parts;
    const { signal } = this.#closing;
    // The query that reported is answered first.
    await clock.sleep(0, signal);
    for (let next = this.#take(); next !== null && !signal.aborted; next = this.#take()) {
      const [key, span] = next;
      this.#remember(key, span);
      try {
        await this.#build(span);
      } catch (thrown) {
        log.warn({ err: thrown, variable: span.variable.id }, "aggregates of days could not be stored");
      }
    }
    this.#running = null;
  }

  /** The account goes to the back. */
  #take(): readonly [key: string, span: ReadSpan] | null {
    for (const [accountId, own] of this.#waiting) {
      this.#waiting.delete(accountId);
      for (const [key, span] of own) {
        own.delete(key);
        if (own.size > 0) this.#waiting.set(accountId, own);
        return [key, span];
      }
    }
    return null;
  }

  /** A year at a time. */
  async #build(span: ReadSpan): Promise<void> {
    const { points, clock } = this.#parts;
    const { signal } = this.#closing;
    for (let fromMs = span.fromMs; fromMs < span.endMs && !signal.aborted; ) {
      const began = clock.monotonicMs();
      const endMs = Math.min(span.endMs, bucketOf(fromMs, "Year", span.zone).endMs);
      await buildRollups(points, { ...span, fromMs, endMs });
      fromMs = endMs;
      await clock.sleep(clock.monotonicMs() - began, signal);
    }
  }

  #remember(key: string, { fromMs, endMs }: ReadSpan): void {
    this.#tried.delete(key);
    this.#tried.set(key, { atMs: this.#parts.clock.monotonicMs(), fromMs, endMs });
    const [oldest] = this.#tried.keys();
    if (this.#tried.size > WAITING_MAX && oldest !== undefined) this.#tried.delete(oldest);
  }
}

// Makes the rollups of a period of one variable from its points.

interface Month {
  readonly bucket: Bucket;
  readonly days: Day[];
  hasHuge: boolean;
}

/**
 * From the beginning of the month of `fromMs` to `endMs`, which begins a day. False, and nothing was stored: points of
 * the period changed meanwhile.
 */
export async function buildRollups(points: PointStore, { variable, zone, fromMs, endMs }: ReadSpan): Promise<boolean> {
  const writes = await points.rollups.begin(variable.id, endMs);
  if (writes === null) return false;
  const range: SampleRange = {
    fromMs: bucketOf(fromMs, "Month", zone).startMs,
    lastMs: endMs - 1,
    order: "ASC",
    view: { kind: "latest" },
  };
  const months = new Map<number, Month>();
  const ofMonths = new Buckets("Month", zone);
  const parts = { buckets: new Buckets("Day", zone), convert: null, isOfParts: true };
  for await (const collected of collectPeriods(pointsOnly(points, variable), range, parts))
    for (const { bucket, sums } of collected) {
      const ofMonth = ofMonths.at(sums.earliestMs);
      const month = months.get(ofMonth.endMs) ?? { bucket: ofMonth, days: [], hasHuge: false };
      months.set(ofMonth.endMs, month);
      const day = sums.sums();
      if (day === null) month.hasHuge = true;
      else month.days.push({ ...day, startMs: bucket.startMs ?? day.firstMs, endMs: bucket.endMs });
    }
  const rollups = [...months.values()]
    .filter(({ hasHuge }) => !hasHuge)
    .map(
      ({ bucket, days }): Rollup => ({
        fromMs: bucket.startMs ?? 0,
        endMs: Math.min(bucket.endMs, endMs),
        days: bytesOfDays(days),
      }),
    );
  return await points.rollups.save(variable.id, writes, { zone, rules: RULES }, rollups);
}
