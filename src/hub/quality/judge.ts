/** All checks of a variable: a row of /dataQuality. */
import type { MissingInterval, QualityRow } from "#wire/index.ts";
import type { Samples } from "../store/blocks/pieces.ts";
import type { SeriesStore, Span } from "../store/quality/series.ts";
import { offsetMsAt, ZoneWriter } from "../time.ts";
import type { Grid } from "./grid.ts";
import {
  type Ask,
  type Begun,
  begin,
  cutWords,
  type FlatLineRule,
  factsOf,
  gridFor,
  intervalOf,
  MissingRuns,
  type QualitySettings,
  share,
  stepWords,
} from "./losses.ts";

/** Points of which one judgement is made; memory holds that many. */
const HISTORY_POINTS = 400_000;
/** Fewer values are no history. */
const HISTORY_MIN = 24;
/** Hours of the week are judged apart from so much history on, and where an hour has so many values. */
const WEEKS_MIN = 4;
const HOUR_VALUES_MIN = 8;
/**
 * Share of the deviation of the whole history that one of an hour of the week never falls below: in hours that are
 * always alike the smallest difference would be an outlier.
 */
const DEVIATION_SHARE = 0.25;

const HOUR_MS = 3_600_000;
const WEEK_HOURS = 168;
const MAD_TO_DEVIATION = 1.4826;
const MEAN_TO_DEVIATION = 1.2533;

/** Ids of the quantity types. */
const INTEGRATED = 2;
const CUMULATIVE = 3;

/** Clocks of devices are a little off; a tenth of a short step is more than that. */
const OFF_MS = 1_000;
const OFF_SHARE = 0.1;
const percent = (share: number) => `${Math.round(share * 10_000) / 100} %`;
const ofPoints = (count: number, { points }: Judged) => (points === 0 ? 0 : count / points);

const WEIGHTS: readonly Weight[] = [
  {
    check: "gaps",
    share: ({ gaps }) => gaps.missingShare ?? 0,
    each: 1,
    most: 60,
    least: 0,
    words: ({ gaps }) => `${gaps.missing} of ${gaps.expected} points are missing (${percent(gaps.missingShare ?? 0)})`,
  },
  {
    check: "freshness",
    // Ten steps late are as bad as it gets; three may still be on their way.
    share: ({ freshness: { stepsLate } }) => (stepsLate === null || stepsLate <= 3 ? 0 : Math.min(10, stepsLate) / 10),
    each: 0.2,
    most: 20,
    least: 0,
    words: ({ freshness }) => `the newest point (${freshness.newest}) is ${freshness.stepsLate} steps old`,
  },
  {
    check: "negative",
    share: (row) => ofPoints(row.negative?.count ?? 0, row),
    each: 5,
    most: 20,
    least: 5,
    words: ({ negative }) => `${negative?.count} negative values or steps back of the counter`,
  },
  {
    check: "flatLines",
    share: (row) => ofPoints(row.flatLines.points, row),
    each: 0.5,
    most: 20,
    least: 2,
    words: ({ flatLines }) => `${flatLines.count} flat lines of ${flatLines.points} points`,
  },
  {
    check: "outliers",
    share: (row) => ofPoints(row.outliers.count, row),
    each: 10,
    most: 20,
    least: 1,
    words: ({ outliers }) => `${outliers.count} values are far from the usual ones`,
  },
  {
    check: "offGrid",
    share: (row) => ofPoints(row.offGrid?.count ?? 0, row),
    each: 0.1,
    most: 10,
    least: 0,
    words: ({ offGrid }) => `${offGrid?.count} points are beside the expected dates`,
  },
  {
    check: "duplicates",
    share: (row) => ofPoints(row.duplicates.crowded, row),
    each: 0.5,
    most: 10,
    least: 0,
    words: ({ duplicates }) => `${duplicates.crowded} points beyond the first of a step`,
  },
];

/** Null: the score is above the wanted ones. */
export async function judge(series: SeriesStore, ask: Ask<QualitySettings>): Promise<QualityRow | null> {
  const begun = await begin(series, ask);
  const grid = gridFor(begun);
  const dates = new ZoneWriter(ask.zones.dates);
  const pass = new Pass(begun, grid, ask.settings, dates);
  const { variable, untilMs } = ask;
  const span = begun.begunMs === null ? null : { fromMs: begun.begunMs, untilMs };
  if (span !== null) {
    // Points that are near an expected date of the period may lie outside of it.
    const lowMs = grid === null ? span.fromMs : Math.min(span.fromMs, grid.lowMs(grid.first));
    const highMs = grid === null ? untilMs : Math.max(untilMs, grid.lowMs(grid.end));
    for await (const samples of series.read(variable.id, { fromMs: lowMs, untilMs: highMs })) pass.take(samples, span);
  }
  pass.finish();
  const revisions = span !== null && variable.isVersioned ? await series.revisions(variable.id, span) : null;
  const found = { ...pass.columns(), freshness: freshnessOf(begun, grid, dates) };
  const row = {
    ...identity(begun, dates),
    ...found,
    duplicates: {
      crowded: pass.crowded,
      replaced: revisions?.replaced ?? null,
      repeated: revisions?.repeated ?? null,
    },
    warnings: warningsOf(begun, found),
  };
  const judged = { ...row, ...scored(row) };
  const { maxScore } = ask.settings;
  return maxScore !== null && judged.score !== null && judged.score > maxScore ? null : judged;
}

function identity(begun: Begun, dates: ZoneWriter) {
  const { variable, begunMs, untilMs } = begun;
  return {
    variableId: variable.id,
    variableName: variable.name,
    sourceId: variable.sourceId,
    siteId: variable.siteId,
    unitId: variable.unitId,
    from: begunMs === null ? null : dates.write(begunMs),
    to: dates.write(untilMs),
    step: factsOf(begun),
  };
}

function warningsOf(begun: Begun, found: ReturnType<Pass["columns"]>): string[] {
  const words = [...stepWords(begun)];
  for (const name of ["gaps", "flatLines", "outliers", "negative", "offGrid"] as const) {
    const one = found[name];
    if (one !== null) words.push(...cutWords(name, one.list, one.count));
  }
  return words;
}

function freshnessOf({ dates: instants, untilMs }: Begun, grid: Grid | null, dates: ZoneWriter) {
  const newestMs = instants.at(-1);
  if (newestMs === undefined) return { newest: null, ageSeconds: null, stepsLate: null };
  const late = grid === null ? null : Math.max(0, grid.end - 1 - grid.slotOf(newestMs));
  return { newest: dates.write(newestMs), ageSeconds: (untilMs - newestMs) / 1_000, stepsLate: late };
}

/** Collects the findings of one pass over the points. */
class Pass {
  readonly #begun: Begun;
  readonly #grid: Grid | null;
  readonly #settings: QualitySettings;
  readonly #dates: ZoneWriter;
  readonly #gaps: Listed<MissingInterval>;
  readonly #runs: MissingRuns | null;
  readonly #placement: Placement | null;
  readonly #flat: FlatLines;
  readonly #negatives: ReturnType<typeof negativesOf>;
  readonly #outliers: Listed<Outlier>;
  /** Of the outliers. */
  #history: { atMs: number[]; values: number[] } = { atMs: [], values: [] };
  #before: { readonly slot: number; readonly value: number } | null = null;
  #points = 0;
  #missing = 0;

  constructor(begun: Begun, grid: Grid | null, settings: QualitySettings, dates: ZoneWriter) {
    this.#begun = begun;
    this.#grid = grid;
    this.#settings = settings;
    this.#dates = dates;
    const { maxDetails } = settings;
    this.#gaps = new Listed(maxDetails);
    this.#runs = grid === null ? null : new MissingRuns(grid, (from, end) => this.#gap(from, end));
    this.#placement = grid === null ? null : new Placement(grid, maxDetails);
    this.#flat = new FlatLines(settings.flatLine, maxDetails);
    this.#negatives = negativesOf(begun.variable.quantityType, maxDetails);
    this.#outliers = new Listed(maxDetails);
  }

  get crowded(): number {
    return this.#placement?.crowded ?? 0;
  }

  /** Points outside of the period count for gaps alone. */
  take({ atMs, values }: Samples, { fromMs, untilMs }: Span): void {
    for (let index = 0; index < atMs.length; index += 1) {
      const ms = atMs[index] ?? 0;
      const value = values[index] ?? 0;
      if (ms < fromMs || ms >= untilMs) {
        if (this.#grid !== null) this.#runs?.present(this.#grid.slotOf(ms));
        continue;
      }
      this.#points += 1;
      const slot = this.#placement?.add(ms) ?? 0;
      this.#runs?.present(slot);
      this.#flat.add(ms, value);
      this.#negatives?.add(ms, value);
      this.#remember(ms, value, slot);
    }
  }

  /** Of a counter the differences between neighbours: its values only grow. */
  #remember(ms: number, value: number, slot: number): void {
    const before = this.#before;
    this.#before = { slot, value };
    let judged = value;
    if (this.#begun.variable.quantityType === CUMULATIVE) {
      if (before === null || (this.#grid !== null && slot - before.slot > 1)) return;
      judged = value - before.value;
    }
    this.#history.atMs.push(ms);
    this.#history.values.push(judged);
    if (this.#history.atMs.length >= HISTORY_POINTS) this.#judgeHistory();
  }

  #judgeHistory(): void {
    const { atMs, values } = this.#history;
    this.#history = { atMs: [], values: [] };
    const { zones } = this.#begun;
    const found = outliersOf(Float64Array.from(atMs), Float64Array.from(values), {
      stepMs: this.#grid?.stepMs ?? null,
      zone: zones.source,
      deviations: this.#settings.outlierDeviations,
    });
    for (const one of found) this.#outliers.add(() => one);
  }

  #gap(from: number, end: number): void {
    this.#missing += end - from;
    this.#gaps.add(() => intervalOf(this.#grid, this.#dates, from, end, this.#begun.untilMs));
  }

  finish(): void {
    this.#runs?.finish();
    this.#flat.finish();
    this.#judgeHistory();
  }

  columns() {
    const date = (ms: number) => this.#dates.write(ms);
    const expected = this.#grid === null ? null : this.#grid.end - this.#grid.first;
    const missing = this.#grid === null ? null : this.#missing;
    const { found: flat } = this.#flat;
    const negatives = this.#negatives?.found ?? null;
    const off = this.#grid?.stepMs == null ? null : (this.#placement?.off ?? null);
    return {
      points: this.#points,
      gaps: {
        count: this.#gaps.count,
        expected,
        missing,
        missingShare: expected === null || missing === null ? null : share(missing, expected),
        list: this.#gaps.list,
      },
      flatLines: {
        count: flat.count,
        points: this.#flat.points,
        list: flat.list.map(({ fromMs, lastMs, ...one }) => ({ from: date(fromMs), to: date(lastMs), ...one })),
      },
      outliers: {
        count: this.#outliers.count,
        list: this.#outliers.list.map(({ atMs, deviations, ...one }) => ({
          date: date(atMs),
          ...one,
          deviations: Math.round(deviations * 10) / 10,
        })),
      },
      negative: negatives && {
        count: negatives.count,
        list: negatives.list.map(({ atMs, ...one }) => ({ date: date(atMs), ...one })),
      },
      offGrid: off && {
        count: off.count,
        list: off.list.map(({ atMs, deviationMs }) => ({ date: date(atMs), seconds: deviationMs / 1_000 })),
      },
    };
  }
}

type Reason = QualityRow["reasons"][number];
type Judged = Omit<QualityRow, "score" | "reasons">;

interface Weight {
  readonly check: string;
  /** Share of the points, or of the steps, that the check found. */
  readonly share: (row: Judged) => number;
  /** Penalty for each percent, and the largest. */
  readonly each: number;
  readonly most: number;
  /** For the first finding. */
  readonly least: number;
  readonly words: (row: Judged) => string;
}

/** One number for the quality of a variable, with the reasons (docs/data-quality.md has the table). */
function scored(row: Judged): Pick<QualityRow, "score" | "reasons"> {
  if (row.points === 0 && row.gaps.expected !== 0)
    return { score: 0, reasons: [{ check: "gaps", penalty: 100, words: "there is no point in the period" }] };
  // Nothing was expected yet, and nothing came: nothing is known.
  if (row.points === 0) return { score: null, reasons: [] };
  const reasons: Reason[] = [];
  for (const { check, share, each, most, least, words } of WEIGHTS) {
    const found = share(row);
    if (found <= 0) continue;
    const penalty = Math.round(Math.min(most, Math.max(least, found * 100 * each)) * 100) / 100;
    reasons.push({ check, penalty, words: words(row) });
  }
  reasons.sort((one, other) => other.penalty - one.penalty);
  const total = reasons.reduce((sum, { penalty }) => sum + penalty, 0);
  // A single finding never looks like none.
  const score = reasons.length === 0 ? 100 : Math.min(99, Math.max(0, Math.round(100 - total)));
  return { score: row.gaps.expected === null ? null : score, reasons };
}

// Checks of a series that need one pass over its points, in order of date.

/** The first entries of a list, and how many there are. */
class Listed<Entry> {
  readonly list: Entry[] = [];
  readonly #max: number;
  count = 0;

  constructor(max: number) {
    this.#max = max;
  }

  add(entry: () => Entry): void {
    this.count += 1;
    if (this.list.length < this.#max) this.list.push(entry());
  }
}

interface FlatLine {
  readonly fromMs: number;
  readonly lastMs: number;
  readonly points: number;
  readonly value: number;
}

/** Runs of equal values. */
class FlatLines {
  readonly found: Listed<FlatLine>;
  /** Points of all flat lines. */
  points = 0;
  readonly #rule: FlatLineRule;
  #value = Number.NaN;
  #fromMs = 0;
  #lastMs = 0;
  #count = 0;

  constructor(rule: FlatLineRule, maxDetails: number) {
    this.#rule = rule;
    this.found = new Listed(maxDetails);
  }

  add(atMs: number, value: number): void {
    if (value !== this.#value) {
      this.finish();
      this.#value = value;
      this.#fromMs = atMs;
      this.#count = 0;
    }
    this.#lastMs = atMs;
    this.#count += 1;
  }

  finish(): void {
    const { points, lengthMs, zeros } = this.#rule;
    const isFlat = this.#count >= points && this.#lastMs - this.#fromMs >= lengthMs && (zeros || this.#value !== 0);
    if (!isFlat) return;
    this.points += this.#count;
    this.found.add(() => ({
      fromMs: this.#fromMs,
      lastMs: this.#lastMs,
      points: this.#count,
      value: this.#value,
    }));
  }
}

interface Negative {
  readonly atMs: number;
  readonly value: number;
  /** Of a counter; else null. */
  readonly before: number | null;
}

/** Null: values of this quantity may be negative. */
function negativesOf(quantityType: number | null, maxDetails: number) {
  if (quantityType !== INTEGRATED && quantityType !== CUMULATIVE) return null;
  const found = new Listed<Negative>(maxDetails);
  let before: number | null = null;
  return {
    found,
    add(atMs: number, value: number): void {
      if (quantityType === INTEGRATED && value < 0) found.add(() => ({ atMs, value, before: null }));
      const earlier = before;
      if (quantityType === CUMULATIVE && earlier !== null && value < earlier)
        found.add(() => ({ atMs, value, before: earlier }));
      before = value;
    },
  };
}

interface OffGrid {
  readonly atMs: number;
  readonly deviationMs: number;
}

/** Points beside the expected dates, and beyond the first of a step. */
class Placement {
  readonly off: Listed<OffGrid>;
  crowded = 0;
  readonly #grid: Grid;
  readonly #toleranceMs: number;
  #slot = Number.NaN;

  constructor(grid: Grid, maxDetails: number) {
    this.#grid = grid;
    this.#toleranceMs = Math.min(OFF_MS, (grid.stepMs ?? 0) * OFF_SHARE);
    this.off = new Listed(maxDetails);
  }

  /** Returns the slot of the point. */
  add(atMs: number): number {
    const slot = this.#grid.slotOf(atMs);
    if (slot === this.#slot) this.crowded += 1;
    this.#slot = slot;
    const deviationMs = this.#grid.deviationMs(atMs);
    if (deviationMs !== null && Math.abs(deviationMs) > this.#toleranceMs) this.off.add(() => ({ atMs, deviationMs }));
    return slot;
  }
}

// Values far from what is usual for a variable: the median of its values, of the same hour of the week where there is
// enough history, and robust standard deviations from it (1.4826 × the median of the absolute deviations).

interface Outlier {
  readonly atMs: number;
  readonly value: number;
  readonly usual: number;
  readonly deviations: number;
}

interface Usual {
  readonly median: number;
  readonly deviation: number;
}

/** Columns in order of date. `stepMs`: null where points are a day or more apart, or the step is unknown. */
export function outliersOf(
  atMs: Float64Array,
  values: Float64Array,
  { stepMs, zone, deviations }: { readonly stepMs: number | null; readonly zone: string; readonly deviations: number },
): readonly Outlier[] {
  if (values.length < HISTORY_MIN) return [];
  const whole = usualOf(Float64Array.from(values));
  const spanMs = (atMs.at(-1) ?? 0) - (atMs[0] ?? 0);
  const isWeekly = stepMs !== null && stepMs <= HOUR_MS && spanMs >= WEEKS_MIN * WEEK_HOURS * HOUR_MS;
  const hours = isWeekly ? hoursOfWeek(atMs, zone) : null;
  const usual = hours === null ? [] : usualByHour(values, hours, whole);
  const found: Outlier[] = [];
  for (let index = 0; index < values.length; index += 1) {
    const value = values[index] ?? 0;
    const { median, deviation } = usual[hours?.[index] ?? 0] ?? whole;
    const distance = Math.abs(value - median);
    if (deviation > 0 && distance > deviations * deviation)
      found.push({ atMs: atMs[index] ?? 0, value, usual: median, deviations: distance / deviation });
  }
  return found;
}

function usualByHour(values: Float64Array, hours: Uint8Array, whole: Usual): readonly Usual[] {
  const ends = new Uint32Array(WEEK_HOURS);
  for (const hour of hours) ends[hour] = (ends[hour] ?? 0) + 1;
  for (let hour = 1; hour < WEEK_HOURS; hour += 1) ends[hour] = (ends[hour] ?? 0) + (ends[hour - 1] ?? 0);
  const sorted = new Float64Array(values.length);
  const free = Uint32Array.from(ends);
  for (let index = values.length - 1; index >= 0; index -= 1) {
    const hour = hours[index] ?? 0;
    const place = (free[hour] ?? 0) - 1;
    free[hour] = place;
    sorted[place] = values[index] ?? 0;
  }
  return Array.from(ends, (end, hour) => {
    const group = sorted.subarray(hour === 0 ? 0 : ends[hour - 1], end);
    if (group.length < HOUR_VALUES_MIN) return whole;
    const { median, deviation } = usualOf(group);
    return { median, deviation: Math.max(deviation, DEVIATION_SHARE * whole.deviation) };
  });
}

/** Changes the order of the values, and the values. Where most are equal, by the mean of the deviations. */
function usualOf(values: Float64Array): Usual {
  const median = medianOf(values);
  let sum = 0;
  for (let index = 0; index < values.length; index += 1) {
    const deviation = Math.abs((values[index] ?? 0) - median);
    values[index] = deviation;
    sum += deviation;
  }
  const mad = medianOf(values);
  return { median, deviation: mad > 0 ? MAD_TO_DEVIATION * mad : (MEAN_TO_DEVIATION * sum) / values.length };
}

function medianOf(values: Float64Array): number {
  const middle = values.length >> 1;
  select(values, middle);
  const high = values[middle] ?? 0;
  if (values.length % 2 === 1) return high;
  let low = Number.NEGATIVE_INFINITY;
  for (let index = 0; index < middle; index += 1) low = Math.max(low, values[index] ?? 0);
  return (low + high) / 2;
}

/** Moves the value of this rank to its place, smaller ones before it: quickselect, a third of the cost of a sort. */
function select(values: Float64Array, rank: number): void {
  for (let low = 0, high = values.length - 1; low < high; ) {
    const pivot = values[(low + high) >> 1] ?? 0;
    let left = low;
    let right = high;
    while (left <= right) {
      while ((values[left] ?? 0) < pivot) left += 1;
      while ((values[right] ?? 0) > pivot) right -= 1;
      if (left > right) break;
      const moved = values[left] ?? 0;
      values[left] = values[right] ?? 0;
      values[right] = moved;
      left += 1;
      right -= 1;
    }
    if (rank <= right) high = right;
    else if (rank >= left) low = left;
    else return;
  }
}

/** Hours of the local week, 0 to 167. */
function hoursOfWeek(atMs: Float64Array, zone: string): Uint8Array {
  let untilMs = Number.NEGATIVE_INFINITY;
  let offsetMs = 0;
  const hours = new Uint8Array(atMs.length);
  for (let index = 0; index < atMs.length; index += 1) {
    const ms = atMs[index] ?? 0;
    if (ms >= untilMs) {
      offsetMs = offsetMsAt(ms, zone);
      const next = Temporal.Instant.fromEpochMilliseconds(ms).toZonedDateTimeISO(zone).getTimeZoneTransition("next");
      untilMs = next?.epochMilliseconds ?? Number.POSITIVE_INFINITY;
    }
    const hour = Math.floor((ms + offsetMs) / HOUR_MS) % WEEK_HOURS;
    hours[index] = hour < 0 ? hour + WEEK_HOURS : hour;
  }
  return hours;
}
