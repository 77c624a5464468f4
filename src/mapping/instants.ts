/** The instants that the time tools hand out. */

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

  /** Milliseconds of the instant that was handed out last, which spares asking it; otherwise undefined. */
  msOf(instant: unknown): number | undefined {
    return instant !== undefined && instant === this.#latest ? this.#latestMs : undefined;
  }
}
