/**
 * Wall time to instants in one zone: the periods of constant offset are looked up once and cached, so that a row costs
 * only arithmetic.
 */

import { ianaZone } from "#wire/zones.ts";
import { FileError } from "./readers/row-error.ts";

/** A period with one offset from UTC, in milliseconds; `from` is inclusive, `to` exclusive. */
interface Stretch {
  readonly from: number;
  readonly to: number;
  readonly offset: number;
}

/** Offsets change by less than this, so wall times further from a change than this are unambiguous. */
const MARGIN_MS = 26 * 3_600_000;

/**
 * How often a wall time occurs: `once` at one instant, `twice` or `never` around a change of offset. `label` of the
 * time at which a repeated hour ends: the instant of the change, which files call so that name ends by their starts.
 */
export type Occurrence =
  | { readonly kind: "once"; readonly at: number; readonly label: number | undefined }
  | { readonly kind: "twice"; readonly first: number; readonly second: number }
  /** The instants by the offset after the change and before it; `change` is the instant of the change. */
  | { readonly kind: "never"; readonly earlier: number; readonly later: number; readonly change: number };

/**
 * Names of zones, and fixed offsets such as `+10:00`. Temporal would also accept a whole date-time and use its zone.
 */
const ZONE = /^(?:[A-Za-z][\w+\-/]*|[+-]\d{2}(?::?\d{2})?)$/;

export class Zone {
  readonly name: string;
  readonly #stretches: Stretch[] = [];
  #latest: Stretch;

  constructor(name: string) {
    this.name = ianaZone(name) ?? name;
    try {
      if (!ZONE.test(this.name)) throw new RangeError("not the name of a zone");
      this.#latest = this.#find(0);
    } catch (cause) {
      throw new FileError(`unknown time zone "${name}"`, {
        hint:
          "Use an IANA name such as Europe/Brussels, a Windows name such as Romance Standard Time, UTC, " +
          "or a fixed offset such as +10:00.",
        cause,
      });
    }
  }

  /**
   * The instant of a wall time that occurs once and is far from any change, or NaN: then call `occurrence`.
   * Milliseconds.
   */
  plain(wall: number): number {
    const { from, to, offset } = this.#latest;
    const at = wall - offset;
    return at >= from + MARGIN_MS && at < to - MARGIN_MS ? at : Number.NaN;
  }

  /** `wall` is the wall time as if it were UTC, in milliseconds. */
  occurrence(wall: number): Occurrence {
    const around = this.#around(wall);
    const hits = around
      .map((stretch) => ({ stretch, at: wall - stretch.offset }))
      .filter(({ stretch, at }) => at >= stretch.from && at < stretch.to);
    const [first, second] = hits;
    if (first !== undefined && second !== undefined) return { kind: "twice", first: first.at, second: second.at };
    if (first !== undefined) {
      this.#latest = first.stretch;
      const before = around[around.indexOf(first.stretch) - 1];
      const isEnd = before !== undefined && before.offset > first.stretch.offset && wall - before.offset === before.to;
      return { kind: "once", at: first.at, label: isEnd ? before.to : undefined };
    }
    const after = around.findIndex((stretch) => wall - stretch.offset < stretch.from);
    const before = around[after - 1] ?? around[0];
    const next = around[after] ?? before;
    return {
      kind: "never",
      earlier: wall - (next?.offset ?? 0),
      later: wall - (before?.offset ?? 0),
      change: next?.from ?? Number.NaN,
    };
  }

  /** First instant of the day that begins at this wall time. Milliseconds. */
  startOfDay(midnight: number): number {
    const plain = this.plain(midnight);
    if (!Number.isNaN(plain)) return plain;
    const occurrence = this.occurrence(midnight);
    if (occurrence.kind === "once") return occurrence.at;
    return occurrence.kind === "twice" ? occurrence.first : occurrence.change;
  }

  /** The periods that may hold the wall time, in order of time. */
  #around(wall: number): Stretch[] {
    const found: Stretch[] = [];
    for (let at = wall - MARGIN_MS; at <= wall + MARGIN_MS; ) {
      const stretch = this.#stretches.find(({ from, to }) => at >= from && at < to) ?? this.#find(at);
      found.push(stretch);
      at = stretch.to;
    }
    return found;
  }

  #find(at: number): Stretch {
    // Changes happen at whole seconds, so a millisecond later finds a change at exactly `at` as the previous one.
    const there = Temporal.Instant.fromEpochMilliseconds(at + 1).toZonedDateTimeISO(this.name);
    const stretch = {
      from: there.getTimeZoneTransition("previous")?.epochMilliseconds ?? Number.NEGATIVE_INFINITY,
      to: there.getTimeZoneTransition("next")?.epochMilliseconds ?? Number.POSITIVE_INFINITY,
      offset: Math.round(there.offsetNanoseconds / 1e6),
    };
    this.#stretches.push(stretch);
    return stretch;
  }
}
