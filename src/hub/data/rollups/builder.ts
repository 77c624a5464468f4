/**
 * Makes rollups of what queries have read, in the background: a piece after the other, and a rest after each. Accounts
 * take turns.
 */
import type { Clock } from "#core/clock.ts";
import type { Logger } from "#core/log.ts";
import type { ReadSpan } from "../../store/rollups/rollups.ts";
import type { PointStore } from "../../store/store.ts";
import { bucketOf } from "../buckets.ts";
import { buildRollups } from "./build.ts";

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
