/**
 * Files, points, errors and delays over time, from the ledger. It is read hour by hour, since one query of a month
 * would occupy the event loop, and each hour is kept: the older it is, the more seldom its runs still change.
 */
import { setImmediate } from "node:timers/promises";
import { type Clock, isoInstant } from "#core/clock.ts";
import type { Ledger, RunTotals } from "../ledger/ledger.ts";
import type { History, Period } from "../operations/api/overview.ts";

const HOUR_MS = 3_600_000;
const PERIODS: Readonly<Record<Period, { readonly hours: number; readonly steps: number }>> = {
  day: { hours: 1, steps: 24 },
  month: { hours: 24, steps: 30 },
};
/** An hour is read again after a tenth of its age, but not more often than this. */
const FRESH_MS = 5_000;
const FRESH_SHARE = 0.1;

interface KeptHour {
  readonly totals: RunTotals;
  readonly readAtMs: number;
}

export class RunHistory {
  readonly #ledger: Pick<Ledger, "runTotals">;
  readonly #clock: Clock;
  /** By the begin of the hour. */
  readonly #hours = new Map<number, KeptHour>();
  /** Requests at the same time share the queries. */
  readonly #reading = new Map<Period, Promise<History>>();

  constructor(ledger: Pick<Ledger, "runTotals">, clock: Clock) {
    this.#ledger = ledger;
    this.#clock = clock;
  }

  async of(period: Period): Promise<History> {
    const reading = this.#reading.getOrInsertComputed(period, () =>
      this.#read(period).finally(() => this.#reading.delete(period)),
    );
    return await reading;
  }

  async #read(period: Period): Promise<History> {
    const { hours, steps } = PERIODS[period];
    const from = beginOf(period, this.#clock.now());
    this.#forget(from.epochMilliseconds - PERIODS.month.steps * PERIODS.month.hours * HOUR_MS);
    const all: RunTotals[] = [];
    for (let step = 0; step < steps; step += 1) {
      const beginMs = from.epochMilliseconds + step * hours * HOUR_MS;
      const parts: RunTotals[] = [];
      for (let hour = 0; hour < hours; hour += 1) parts.push(await this.#hour(beginMs + hour * HOUR_MS));
      all.push(sumOf(parts));
    }
    return {
      stepMs: hours * HOUR_MS,
      from: isoInstant(from),
      series: {
        files: all.map(({ files }) => files),
        points: all.map(({ points }) => points),
        errors: all.map(({ errors }) => errors),
        delayMs: all.map(({ delaySumMs, delayed }) => (delayed === 0 ? null : Math.round(delaySumMs / delayed))),
      },
    };
  }

  async #hour(beginMs: number): Promise<RunTotals> {
    const nowMs = this.#clock.now().epochMilliseconds;
    if (beginMs > nowMs) return NONE;
    const kept = this.#hours.get(beginMs);
    const ageMs = nowMs - (beginMs + HOUR_MS);
    if (kept !== undefined && nowMs - kept.readAtMs < Math.max(FRESH_MS, ageMs * FRESH_SHARE)) return kept.totals;
    await setImmediate();
    const totals = await this.#ledger.runTotals({ fromMs: beginMs, untilMs: beginMs + HOUR_MS });
    this.#hours.set(beginMs, { totals, readAtMs: nowMs });
    return totals;
  }

  #forget(beforeMs: number): void {
    for (const beginMs of this.#hours.keys()) if (beginMs < beforeMs) this.#hours.delete(beginMs);
  }
}

const NONE: RunTotals = { files: 0, points: 0, errors: 0, delaySumMs: 0, delayed: 0 };

function sumOf(parts: readonly RunTotals[]): RunTotals {
  return parts.reduce(
    (sum, part) => ({
      files: sum.files + part.files,
      points: sum.points + part.points,
      errors: sum.errors + part.errors,
      delaySumMs: sum.delaySumMs + part.delaySumMs,
      delayed: sum.delayed + part.delayed,
    }),
    NONE,
  );
}

/** The last step has begun and is not over: the present hour, or the present day in the zone of the gateway. */
function beginOf(period: Period, now: Temporal.Instant): Temporal.Instant {
  const { hours, steps } = PERIODS[period];
  const zoned = now.toZonedDateTimeISO(Temporal.Now.timeZoneId());
  const last = period === "day" ? zoned.round({ smallestUnit: "hour", roundingMode: "floor" }) : zoned.startOfDay();
  return last.toInstant().subtract({ hours: hours * (steps - 1) });
}
