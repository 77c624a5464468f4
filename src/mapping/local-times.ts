/**
 * Local times in the zones of the sources. For `byOrder` also rows without a reading count, so they get the zone of the
 * next row of their series that has one.
 */

import type { Instants } from "./instants.ts";
import { LocalDate } from "./local-date.ts";
import type { DstPolicy } from "./mapper.ts";
import { isRowError } from "./readers/row-error.ts";
import type { SourceZones } from "./source-zones.ts";

/** Limit on the rows of a series that wait for a reading; the earliest no longer count then. */
const WAITING_MAX = 10_000;

interface Series {
  waiting: LocalDate[];
  /** Of the last reading. */
  zone: string | undefined;
}

export class LocalTimes {
  readonly #instants: Instants;
  readonly #sources: SourceZones;
  readonly #series = new Map<string, Series>();

  constructor(instants: Instants, sources: SourceZones) {
    this.#instants = instants;
    this.#sources = sources;
  }

  /** `read` returns the instant in a zone. Throws when the zones of the sources are not known. */
  at(policy: DstPolicy, read: (zone: string) => Temporal.Instant): Temporal.Instant {
    this.#sources.require();
    if (typeof policy === "string" && policy !== "byOrder") return this.#instants.local(new LocalDate(read));
    const key = typeof policy === "object" ? policy.byOrder : "";
    const date = new LocalDate((zone) => {
      this.#reached(key, date, zone);
      return read(zone);
    });
    this.#add(key, date);
    return this.#instants.local(date);
  }

  #add(key: string, date: LocalDate): void {
    const series = this.#series.get(key) ?? { waiting: [], zone: undefined };
    this.#series.set(key, series);
    series.waiting.push(date);
    if (series.waiting.length > 2 * WAITING_MAX) series.waiting.splice(0, WAITING_MAX);
  }

  /** Called when the zone of a row is known, before its own time counts. */
  #reached(key: string, date: LocalDate, zone: string): void {
    const series = this.#series.get(key);
    const place = series?.waiting.indexOf(date) ?? -1;
    if (series === undefined || place === -1) return;
    series.zone = zone;
    count(series.waiting.splice(0, place + 1).slice(0, -1), zone);
  }

  /** Called after the last row. */
  finish(): void {
    for (const { waiting, zone } of this.#series.values()) if (zone !== undefined) count(waiting.splice(0), zone);
  }
}

function count(dates: readonly LocalDate[], zone: string): void {
  for (const date of dates)
    try {
      date.in(zone);
    } catch (thrown) {
      // The row has no reading that could be refused.
      if (!isRowError(thrown)) throw thrown;
    }
}
