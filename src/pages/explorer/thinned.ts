/** The columns that a plot draws: at most four values for each column of pixels, the least and most among them. */
import { isGapAfter, type Series } from "./series.ts";

type Column = (number | null | undefined)[];

/** First, least and most in their order, last. */
const EACH = 4;
/** Seconds between the end of a value and the gap after it. */
const GAP_AFTER = 1;

export interface Span {
  readonly fromMs: number;
  readonly toMs: number;
  /** Columns of pixels. */
  readonly pixels: number;
}

/** Times in seconds, values, and most and least where the series has a band; null is a gap. */
export function columnsOf(series: Series, span: Span): Column[] {
  return series.times.length > EACH * span.pixels ? thinned(series, span) : exact(series);
}

/** A step holds for its length, and ends before a gap; the last one ends, too. */
function exact(series: Series): Column[] {
  const { times, isStep, length } = series;
  const given = givenOf(series);
  const columns: Column[] = [[], ...given.map((): Column => [])];
  const add = (time: number, held: (column: Float64Array) => number | null) => {
    columns[0]?.push(time);
    for (const [index, column] of given.entries()) columns[index + 1]?.push(held(column));
  };
  times.forEach((time, at) => {
    const held = (column: Float64Array) => orNull(column[at]);
    add(time, held);
    if (!isGapAfter(series, at)) return;
    if (isStep && length > 0) add(time + length, held);
    if (at < times.length - 1) add(time + length + GAP_AFTER, () => null);
  });
  return columns;
}

function givenOf({ values, band }: Series): readonly Float64Array[] {
  return band === null ? [values] : [values, band.most, band.least];
}

function orNull(value: number | undefined): number | null {
  return value === undefined || Number.isNaN(value) ? null : value;
}

/** On a grid that all such series of a plot share, so that they need not be joined. */
function thinned(series: Series, { fromMs, toMs, pixels }: Span): Column[] {
  const { times, values, band } = series;
  const [from, width] = [fromMs / 1_000, (toMs - fromMs) / 1_000 / pixels];
  const columns = [values, ...(band === null ? [] : [band.most, band.least])].map((): Column => {
    return new Array(EACH * pixels).fill(undefined);
  });
  let before = -1;
  for (let begin = 0; begin < times.length; ) {
    const pixel = Math.floor(((times[begin] ?? 0) - from) / width);
    let end = begin + 1;
    while (end < times.length && (times[end] ?? 0) < from + (pixel + 1) * width) end += 1;
    if (pixel >= 0 && pixel < pixels) {
      const gap = before >= 0 && pixel - before > 1 && isGapAfter(series, begin - 1);
      if (gap) for (const column of columns) column.fill(null, EACH * (before + 1), EACH * pixel);
      write(columns, EACH * pixel, shapeOf(values, begin, end));
      if (band !== null) {
        fill(columns[1], EACH * pixel, extreme(band.most, begin, end, Math.max));
        fill(columns[2], EACH * pixel, extreme(band.least, begin, end, Math.min));
      }
      before = pixel;
    }
    begin = end;
  }
  const grid = Array.from({ length: EACH * pixels }, (_, at) => from + (at / EACH) * width);
  return [grid, ...columns];
}

function write([column]: readonly Column[], at: number, shape: readonly (number | null)[]): void {
  for (const [index, value] of shape.entries()) if (column !== undefined) column[at + index] = value;
}

function fill(column: Column | undefined, at: number, value: number | null): void {
  column?.fill(value, at, at + EACH);
}

/** Without a number among them, one gap. */
function shapeOf(values: Float64Array, begin: number, end: number): readonly (number | null)[] {
  let [first, least, most, last] = [-1, -1, -1, -1];
  for (let at = begin; at < end; at += 1) {
    const value = values[at] ?? Number.NaN;
    if (Number.isNaN(value)) continue;
    if (first < 0) first = least = most = at;
    if (value < (values[least] ?? 0)) least = at;
    if (value > (values[most] ?? 0)) most = at;
    last = at;
  }
  if (first < 0) return [null];
  return [first, Math.min(least, most), Math.max(least, most), last].map((at) => values[at] ?? null);
}

function extreme(
  values: Float64Array,
  begin: number,
  end: number,
  of: (...values: readonly number[]) => number,
): number | null {
  let found = Number.NaN;
  for (let at = begin; at < end; at += 1) {
    const value = values[at] ?? Number.NaN;
    if (!Number.isNaN(value)) found = Number.isNaN(found) ? value : of(found, value);
  }
  return orNull(found);
}
