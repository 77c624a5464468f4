/** Compares the payload of a replay with the readings that were sent before, and with those of later runs. */

import { type PayloadReading, type ReadingSet, readingOf, targetOf } from "#mapping/segment/payloads.ts";
import type { MapperIdentity, MappingFinding, PushElement, Run } from "../model.ts";
import type { ReplayOverrides } from "../runs/replay-mapper.ts";

export interface ReplayWish extends ReplayOverrides {
  readonly rejectedOnly: boolean;
  readonly overwrite: boolean;
}

export interface ReplayPlan {
  readonly run: string;
  readonly drop: string;
  readonly file: string;
  readonly trigger: string;
  readonly mapper: MapperIdentity;
  readonly readings: {
    readonly mapped: number;
    readonly sent: number;
    /** Of the sent readings: not accepted before, accepted with another value, and with the same one. */
    readonly added: number;
    readonly changed: number;
    readonly unchanged: number;
    /** Left out, since they were accepted before. */
    readonly acceptedBefore: number;
    /** Accepted before, and not in the new payload; they stay at the service. */
    readonly dropped: number;
  };
  /** Rows that the mapper refuses now. */
  readonly refusedRows: number;
  /** Findings of the mapping now. */
  readonly findings: readonly MappingFinding[];
  /** The first readings that are sent with another value, are new, or are no longer sent. */
  readonly differences: readonly Difference[];
  /** Later runs that have delivered dates of it. */
  readonly later: readonly LaterDates[];
  /** Whether those dates are sent all the same. */
  readonly overwrites: boolean;
  /** Readings that the plans before send with another value, and their files; later sent, these replace them. */
  readonly replaces: { readonly readings: number; readonly files: readonly string[] };
  /** Earlier or later runs whose payload is no longer kept, so that they are missing here. */
  readonly notKept: readonly string[];
}

export interface Difference {
  readonly target: string;
  readonly date: string;
  readonly version: string | null;
  /** Null when it was not accepted before. */
  readonly before: number | null;
  /** Null when it is not in the new payload. */
  readonly after: number | null;
}

interface LaterDates {
  readonly run: string;
  readonly file: string;
  readonly readings: number;
  readonly from: string;
  readonly to: string;
  /** The first dates. */
  readonly dates: readonly string[];
}

const DIFFERENCES_MAX = 1_000;
const DATES_MAX = 1_000;
const FILES_MAX = 5;

interface Sets {
  readonly before: ReadingSet;
  readonly later: ReadingSet;
  /** Sent by the plans before, with their files; null for a single plan. */
  readonly planned: ReadingSet | null;
}

export class Comparison {
  readonly #sets: Sets;
  readonly #wish: ReplayWish;
  readonly #runs: readonly Run[];
  readonly #counts = { sent: 0, added: 0, changed: 0, unchanged: 0, acceptedBefore: 0 };
  readonly #differences: Difference[] = [];
  readonly #replaced = { readings: 0, files: new Set<string>() };
  readonly #later = new Map<string, { readings: number; fromMs: number; toMs: number; dates: Set<string> }>();

  constructor(sets: Sets, wish: ReplayWish, later: readonly Run[]) {
    this.#sets = sets;
    this.#wish = wish;
    this.#runs = later;
  }

  /** Returns the readings that are sent. */
  take(element: PushElement): readonly PayloadReading[] {
    const target = targetOf(element);
    return element.data.map((one) => readingOf(element, target, one)).filter((reading) => this.#isSent(reading));
  }

  #isSent(reading: PayloadReading): boolean {
    const { before, later } = this.#sets;
    const earlier = before.valueOf(reading);
    before.remove(reading);
    const run = later.runOf(reading);
    if (run !== undefined) {
      this.#noteLater(run, reading);
      if (!this.#wish.overwrite) return false;
    }
    if (earlier !== undefined && this.#wish.rejectedOnly) {
      this.#counts.acceptedBefore += 1;
      return false;
    }
    this.#counts.sent += 1;
    this.#noteReplaced(reading);
    if (earlier === reading.value) {
      this.#counts.unchanged += 1;
      return true;
    }
    this.#counts[earlier === undefined ? "added" : "changed"] += 1;
    this.#differ(reading, earlier ?? null, reading.value);
    return true;
  }

  #noteReplaced(reading: PayloadReading): void {
    const { planned } = this.#sets;
    const value = planned?.valueOf(reading);
    if (value === undefined || value === reading.value) return;
    this.#replaced.readings += 1;
    const file = planned?.runOf(reading);
    if (file !== undefined && this.#replaced.files.size < FILES_MAX) this.#replaced.files.add(file);
  }

  #noteLater(run: string, { atMs }: PayloadReading): void {
    const noted = this.#later.get(run) ?? { readings: 0, fromMs: atMs, toMs: atMs, dates: new Set() };
    noted.readings += 1;
    noted.fromMs = Math.min(noted.fromMs, atMs);
    noted.toMs = Math.max(noted.toMs, atMs);
    if (noted.dates.size < DATES_MAX) noted.dates.add(isoOf(atMs));
    this.#later.set(run, noted);
  }

  #differ(reading: PayloadReading, before: number | null, after: number | null): void {
    if (this.#differences.length >= DIFFERENCES_MAX) return;
    const { atMs, version } = reading;
    const date = isoOf(atMs);
    this.#differences.push({ target: wordsOfTarget(reading), date, version: version || null, before, after });
  }

  result(mapped: number): Pick<ReplayPlan, "readings" | "differences" | "later" | "replaces"> {
    for (const reading of this.#sets.before.first(DIFFERENCES_MAX)) this.#differ(reading, reading.value, null);
    return {
      readings: { mapped, ...this.#counts, dropped: this.#sets.before.size },
      differences: this.#differences,
      replaces: { readings: this.#replaced.readings, files: [...this.#replaced.files] },
      later: [...this.#later].map(([run, { readings, fromMs, toMs, dates }]) => ({
        run,
        file: this.#runs.find(({ id }) => id === run)?.path ?? "",
        readings,
        from: isoOf(fromMs),
        to: isoOf(toMs),
        dates: [...dates].sort(),
      })),
    };
  }
}

function isoOf(ms: number): string {
  return Temporal.Instant.fromEpochMilliseconds(ms).toString();
}

function wordsOfTarget({ target }: PayloadReading): string {
  return Object.entries(JSON.parse(target) as Record<string, unknown>)
    .map(([name, value]) => `${name}=${String(value)}`)
    .join(" ");
}
