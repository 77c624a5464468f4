/** Expected and missing points of a variable, by period: rows of /dataLossDetection. */
import type { LossPeriod, LossRow, MissingInterval, StepFacts } from "#wire/index.ts";
import { bucketOf } from "../data/buckets.ts";
import type { SeriesStore } from "../store/quality/series.ts";
import type { MeasuredVariable } from "../store/quality/variables.ts";
import { ZoneWriter } from "../time.ts";
import { type Grid, gridOf } from "./grid.ts";
import { declaredStep, type KnownStep, learnedStep, UNKNOWN_STEP } from "./step.ts";

export interface LossSettings {
  readonly period: LossPeriod;
  readonly onlyLosses: boolean;
  readonly maxDetails: number;
}

const DECIMALS = 1e6;

/** The newest points from which step and phase are learned. */
const LEARNED_FROM = 1_000;
/** Limit on the rows of one variable. */
const PERIODS_MAX = 4_000;
/** Intervals that the rows of one variable list. */
const INTERVALS_MAX = 10_000;
/** Slots that one statement counts. A stretch that is whole needs no more. */
const TALLY_SLOTS = 3_000;

/** A variable whose period is known. */
export interface Begun extends VariableAsk {
  /** Null: it has no points, and the period no beginning. */
  readonly begunMs: number | null;
  readonly dates: readonly number[];
  readonly known: KnownStep | string;
}

export async function begin(series: SeriesStore, ask: VariableAsk): Promise<Begun> {
  const { variable, fromMs, untilMs } = ask;
  const dates = await series.newest(variable.id, untilMs, LEARNED_FROM);
  const begunMs = fromMs ?? (dates.length === 0 ? null : await series.firstMs(variable.id));
  const known = declaredStep(variable.granularity, variable.granularityTimeBase) ?? learnedStep(dates);
  return { ...ask, begunMs, dates, known };
}

/** Why the number of expected points is not known; null where it is. */
function unknownWords({ known, begunMs }: Begun): string | null {
  if (typeof known === "string") return `expected points are not known: ${known}`;
  return begunMs === null ? "expected points are not known: no point yet, and no From" : null;
}

/** A learned step is longer than the true one where the same share of all points is lost. */
export function stepWords(begun: Begun): readonly string[] {
  const unknown = unknownWords(begun);
  if (unknown !== null) return [unknown];
  if (factsOf(begun).origin !== "learned") return [];
  return ["the step is learned from the points that are there, so that losses may be hidden; declare its granularity"];
}

export function gridFor({ known, begunMs, dates, zones, untilMs, nowMs }: Begun): Grid | null {
  if (typeof known === "string" || begunMs === null) return null;
  return gridOf(known.step, dates, zones.source, { fromMs: begunMs, untilMs, nowMs });
}

export function factsOf({ known }: Begun): StepFacts {
  return typeof known === "string" ? UNKNOWN_STEP : known.facts;
}

export async function lossRows(series: SeriesStore, ask: Ask<LossSettings>): Promise<readonly LossRow[]> {
  const begun = await begin(series, ask);
  const grid = gridFor(begun);
  const periods = new Periods(begun, grid, ask.settings);
  if (grid === null) await periods.countAll(series);
  else await findMissing(series, begun.variable.id, grid, (from, end) => periods.missing(from, end));
  return periods.rows();
}

/** Stretches in which each slot has exactly its point are only counted, and empty ones are passed over at once. */
async function findMissing(series: SeriesStore, id: number, grid: Grid, onRun: OnRun): Promise<void> {
  const runs = new MissingRuns(grid, onRun);
  const size = grid.even === null ? Math.max(1, grid.end - grid.first) : TALLY_SLOTS;
  for (let low = grid.first, high = low; low < grid.end; low = high) {
    high = Math.min(grid.end, low + size);
    const span = { fromMs: grid.lowMs(low), untilMs: grid.lowMs(high) };
    if (grid.even !== null) {
      const { points, even } = await series.tally(id, span, grid.even);
      if (points === 0) {
        const nextMs = await series.nextMs(id, { fromMs: span.untilMs, untilMs: grid.lowMs(grid.end) });
        high = nextMs === null ? grid.end : Math.max(high, grid.slotOf(nextMs));
        continue;
      }
      if (points === high - low && even === points) {
        runs.present(low, high);
        continue;
      }
    }
    for await (const { atMs } of series.read(id, span)) for (const ms of atMs) runs.present(grid.slotOf(ms));
  }
  runs.finish();
}

interface PeriodPart {
  readonly fromMs: number | null;
  readonly untilMs: number;
  readonly firstSlot: number;
  readonly endSlot: number;
  missing: number;
  intervalsTotal: number;
  readonly intervals: MissingInterval[];
  /** Points, where no step is known. */
  points: number;
}

class Periods {
  readonly #begun: Begun;
  readonly #grid: Grid | null;
  readonly #settings: LossSettings;
  readonly #dates: ZoneWriter;
  readonly #parts: readonly PeriodPart[];
  #isCut = false;
  #at = 0;
  #listed = 0;

  constructor(begun: Begun, grid: Grid | null, settings: LossSettings) {
    this.#begun = begun;
    this.#grid = grid;
    this.#settings = settings;
    this.#dates = new ZoneWriter(begun.zones.dates);
    this.#parts = this.#cut();
  }

  #cut(): PeriodPart[] {
    const { begunMs, untilMs, zones } = this.#begun;
    const { period } = this.#settings;
    const parts: PeriodPart[] = [];
    for (let fromMs = begunMs; ; ) {
      const end = period === "All" || fromMs === null ? untilMs : bucketOf(fromMs, period, zones.period).endMs;
      const partEndMs = Math.min(end, untilMs);
      const firstSlot = fromMs === null ? 0 : (this.#grid?.slotFrom(fromMs) ?? 0);
      const endSlot = this.#grid?.slotFrom(partEndMs) ?? 0;
      const empty = { missing: 0, intervalsTotal: 0, intervals: [], points: 0 };
      parts.push({ fromMs, untilMs: partEndMs, firstSlot, endSlot, ...empty });
      if (fromMs === null || partEndMs >= untilMs) return parts;
      if (parts.length >= PERIODS_MAX) {
        this.#isCut = true;
        return parts;
      }
      fromMs = partEndMs;
    }
  }

  missing(from: number, end: number): void {
    for (let low = from; low < end; ) {
      let part = this.#parts[this.#at];
      while (part !== undefined && low >= part.endSlot) {
        this.#at += 1;
        part = this.#parts[this.#at];
      }
      if (part === undefined) return;
      const high = Math.min(end, part.endSlot);
      part.missing += high - low;
      part.intervalsTotal += 1;
      if (part.intervals.length < this.#settings.maxDetails && this.#listed < INTERVALS_MAX) {
        part.intervals.push(this.#interval(low, high));
        this.#listed += 1;
      }
      low = high;
    }
  }

  #interval(from: number, end: number): MissingInterval {
    return intervalOf(this.#grid, this.#dates, from, end, this.#begun.untilMs);
  }

  /** Without a step only what is there is known. */
  async countAll(series: SeriesStore): Promise<void> {
    for (const part of this.#parts)
      if (part.fromMs !== null)
        part.points = await series.count(this.#begun.variable.id, { fromMs: part.fromMs, untilMs: part.untilMs });
  }

  rows(): readonly LossRow[] {
    const rows = this.#parts.map((part) => this.#row(part));
    const last = rows.at(-1);
    if (this.#isCut && last !== undefined)
      last.warnings.push(`only the first ${PERIODS_MAX} periods are listed; a coarser Granularity has fewer`);
    return this.#settings.onlyLosses ? rows.filter(({ missing }) => missing !== 0) : rows;
  }

  #row({ fromMs, untilMs, firstSlot, endSlot, ...part }: PeriodPart): LossRow {
    const { variable, begunMs } = this.#begun;
    const unknown = unknownWords(this.#begun);
    const expected = unknown === null && begunMs !== null ? endSlot - firstSlot : null;
    const { missing, intervals, intervalsTotal } = part;
    const warnings = [...stepWords(this.#begun), ...cutWords("intervals", intervals, intervalsTotal)];
    return {
      variableId: variable.id,
      variableName: variable.name,
      sourceId: variable.sourceId,
      siteId: variable.siteId,
      from: fromMs === null ? null : this.#dates.write(fromMs),
      to: this.#dates.write(untilMs),
      step: factsOf(this.#begun),
      expected,
      present: expected === null ? part.points : expected - missing,
      missing: expected === null ? null : missing,
      missingShare: expected === null ? null : share(missing, expected),
      intervals,
      intervalsTotal,
      warnings,
    };
  }
}

/** To the date of the next slot, or the end of the period where that is earlier. */
export function intervalOf(
  grid: Grid | null,
  dates: ZoneWriter,
  from: number,
  end: number,
  untilMs: number,
): MissingInterval {
  const toMs = Math.min(grid?.startMs(end) ?? untilMs, untilMs);
  return { from: dates.write(grid?.startMs(from) ?? untilMs), to: dates.write(toMs), missing: end - from };
}

export function cutWords(name: string, list: readonly unknown[], total: number): readonly string[] {
  if (list.length >= total) return [];
  const more = "MaxDetails (at most 10000) or a shorter period lists more";
  return [`${name}: only the first ${list.length} of ${total} are listed; ${more}`];
}

// Finds runs of slots without a point.

/** From a slot to another, excluded. */
type OnRun = (from: number, end: number) => void;

export class MissingRuns {
  readonly #grid: Grid;
  readonly #onRun: OnRun;
  /** The first slot of which nothing is known yet. */
  #next: number;

  constructor(grid: Grid, onRun: OnRun) {
    this.#grid = grid;
    this.#onRun = onRun;
    this.#next = grid.first;
  }

  /** In order; every slot from `from` to `end` (excluded) has a point. */
  present(from: number, end = from + 1): void {
    const reached = Math.min(from, this.#grid.end);
    if (reached > this.#next) this.#onRun(this.#next, reached);
    this.#next = Math.max(this.#next, Math.min(end, this.#grid.end));
  }

  finish(): void {
    this.present(this.#grid.end, this.#grid.end);
  }
}

// Tasks of the threads that judge series, and their results.

export interface VariableAsk {
  readonly variable: MeasuredVariable;
  /** `source` and `period` by IANA name; `dates` Windows or IANA. */
  readonly zones: { readonly source: string; readonly period: string; readonly dates: string };
  /** Null: from the first point of the variable. */
  readonly fromMs: number | null;
  /** Not later than now. */
  readonly untilMs: number;
  readonly nowMs: number;
}

export type Ask<Settings> = VariableAsk & { readonly settings: Settings };

export type SeriesJob =
  | { readonly report: "losses"; readonly settings: LossSettings; readonly variables: readonly VariableAsk[] }
  | { readonly report: "quality"; readonly settings: QualitySettings; readonly variables: readonly VariableAsk[] };

export type SeriesAnswer =
  /** Rows as JSON, with commas between them, of the first variables: `judged` of them, at least one. */
  | { readonly kind: "rows"; readonly texts: readonly string[]; readonly judged: number }
  /** The database is at fault, and the same may succeed later. */
  | { readonly kind: "trouble"; readonly words: string };

/** Null where nothing is expected. */
export function share(part: number, whole: number): number | null {
  return whole === 0 ? null : Math.round((part / whole) * DECIMALS) / DECIMALS;
}

export interface QualitySettings {
  readonly maxDetails: number;
  readonly maxScore: number | null;
  readonly flatLine: FlatLineRule;
  readonly outlierDeviations: number;
}

export interface FlatLineRule {
  readonly points: number;
  readonly lengthMs: number;
  readonly zeros: boolean;
}
