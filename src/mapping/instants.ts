/** The instants that the time tools hand out. */
import { pendingDateOf, pendingInstant } from "./pending-instant.ts";

/** A prime number, so that dates at regular distances spread over all places. */
const KEPT = 16_381;
const SECOND_MS = 1000;

/**
 * Instants never change, and the series of a file share their dates: making one anew costs more than all the rest of reading it. So each has
 * a place, by its seconds, where it stays until another of the same place is asked for.
 */
const kept = new Array<Temporal.Instant | undefined>(KEPT).fill(undefined);
const keptMs = new Float64Array(KEPT).fill(Number.NaN);

export class Instants {
  /** Whether some of them may not be known yet. */
  hasPending = false;
  #latest: Temporal.Instant | undefined;
  #latestMs = Number.NaN;

  at(ms: number): Temporal.Instant {
    if (ms === this.#latestMs && this.#latest !== undefined) return this.#latest;
    const place = Math.abs(Math.floor(ms / SECOND_MS)) % KEPT;
    let instant = kept[place];
    if (instant === undefined || keptMs[place] !== ms) {
      instant = Temporal.Instant.fromEpochMilliseconds(ms);
      kept[place] = instant;
      keptMs[place] = ms;
    }
    this.#latest = instant;
    this.#latestMs = ms;
    return instant;
  }

  /** The one that `change` makes of it, also when it is not known yet. */
  moved(instant: Temporal.Instant, change: (ms: number) => number): Temporal.Instant {
    const pending = this.hasPending ? pendingDateOf(instant) : undefined;
    if (pending !== undefined) return pendingInstant(pending.derive(change));
    return this.at(change(this.msOf(instant) ?? instant.epochMilliseconds));
  }

  /** Milliseconds of the instant that was handed out last, which spares asking it; otherwise undefined. */
  msOf(instant: unknown): number | undefined {
    return instant !== undefined && instant === this.#latest ? this.#latestMs : undefined;
  }
}
