/** All checks of a variable: a row of /dataQuality. */
import type { MissingInterval, QualityRow } from "#wire/index.ts";
import type { SeriesStore, Span } from "../store/quality/series.ts";
import type { Samples } from "../store/store.ts";
import { ZoneWriter } from "../time.ts";
import { CUMULATIVE, type FlatLineRule, FlatLines, Listed, negativesOf, Placement } from "./checks.ts";
import type { Grid } from "./grid.ts";
import { type Ask, share } from "./job.ts";
import { type Begun, begin, cutWords, factsOf, gridFor, intervalOf, stepWords } from "./losses.ts";
import { HISTORY_POINTS, type Outlier, outliersOf } from "./outliers.ts";
import { MissingRuns } from "./runs.ts";
import { scored } from "./score.ts";

export interface QualitySettings {
  readonly maxDetails: number;
  readonly maxScore: number | null;
  readonly flatLine: FlatLineRule;
  readonly outlierDeviations: number;
}

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
