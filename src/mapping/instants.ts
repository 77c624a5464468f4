/** The instants that the time tools return. */
import { LocalDate, localDateOf, localInstant } from "./local-date.ts";
import { pendingDateOf, pendingInstant } from "./pending-instant.ts";

/** A prime number, so that dates at regular distances spread over all slots. */
const KEPT = 16_381;
const SECOND_MS = 1000;

/**
 * A cache of instants. They are immutable, and the series of a file share their dates: creating one costs more than the
 * rest of reading it. Each instant has a slot, by its seconds, until another instant needs the slot.
 */
const kept = new Array<Temporal.Instant | undefined>(KEPT).fill(undefined);
const keptMs = new Float64Array(KEPT).fill(Number.NaN);

export class Instants {
  /** Whether some instants may still be unknown. */
  hasPending = false;
  /** Whether some are in the zones of their sources. */
  hasLocal = false;
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

  /** The result of `change` for the instant, also when the instant is still unknown. */
  moved(instant: Temporal.Instant, change: (ms: number) => number): Temporal.Instant {
    const local = this.hasLocal ? localDateOf(instant) : undefined;
    if (local !== undefined) return this.local(new LocalDate((zone) => this.moved(local.in(zone), change)));
    const pending = this.hasPending ? pendingDateOf(instant) : undefined;
    if (pending !== undefined) return pendingInstant(pending.derive(change));
    return this.at(change(this.msOf(instant) ?? instant.epochMilliseconds));
  }

  /** An instant in the zone of the source of its reading. */
  local(date: LocalDate): Temporal.Instant {
    this.hasLocal = true;
    return localInstant(date);
  }

  /** Milliseconds of the last returned instant, without a call; undefined for any other. */
  msOf(instant: unknown): number | undefined {
    return instant !== undefined && instant === this.#latest ? this.#latestMs : undefined;
  }
}
