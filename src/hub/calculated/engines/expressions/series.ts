/** Values by date, and several of them side by side. */

export interface Series {
  /** Ascending, each once. */
  readonly atMs: Float64Array;
  /** NaN: a point without a value. */
  readonly values: Float64Array;
  /** Index of the version tag of each point, 0: none; null: none has one. */
  readonly versions: Int32Array | null;
}

/** A series among others: with the points of its own dates, or with the last point until then. */
export interface Aligned {
  readonly series: Series;
  /** Null: of the date alone. Otherwise the last point, and for how long it holds. */
  readonly holdMs: ((point: number) => number) | null;
}

function areSame(one: Float64Array, other: Float64Array): boolean {
  return one === other || (one.length === other.length && one.every((ms, at) => ms === other[at]));
}

/** Dates of all of them, ascending, each once. */
export function datesOf(all: readonly Series[]): Float64Array {
  const [first, ...rest] = all;
  if (first === undefined) return new Float64Array();
  const others = rest.filter(({ atMs }) => !areSame(atMs, first.atMs));
  if (others.length === 0) return first.atMs;
  const lists = [first, ...others].map(({ atMs }) => atMs);
  const joined = new Float64Array(lists.reduce((sum, { length }) => sum + length, 0));
  let end = 0;
  for (const list of lists) {
    joined.set(list, end);
    end += list.length;
  }
  joined.sort();
  return distinct(joined);
}

/** Of ascending dates. */
function distinct(dates: Float64Array): Float64Array {
  let end = 0;
  for (const ms of dates) {
    if (end > 0 && dates[end - 1] === ms) continue;
    dates[end] = ms;
    end += 1;
  }
  return dates.subarray(0, end);
}

/** Of each date the index of its point; -1: none. Null: the points stand at these dates already. */
export function pointsAt(dates: Float64Array, { series, holdMs }: Aligned): Int32Array | null {
  const { atMs } = series;
  if (areSame(dates, atMs)) return null;
  const found = new Int32Array(dates.length).fill(-1);
  let point = -1;
  for (const [row, ms] of dates.entries()) {
    while (point + 1 < atMs.length && (atMs[point + 1] ?? 0) <= ms) point += 1;
    if (point < 0) continue;
    const sinceMs = ms - (atMs[point] ?? 0);
    if (sinceMs === 0 || (holdMs !== null && sinceMs <= holdMs(point))) found[row] = point;
  }
  return found;
}

/** Values at the points that `pointsAt` found. */
export function valuesAt(points: Int32Array | null, { values }: Series): Float64Array {
  if (points === null) return values;
  const found = new Float64Array(points.length);
  for (const [row, point] of points.entries()) found[row] = point < 0 ? Number.NaN : (values[point] ?? Number.NaN);
  return found;
}

/** Sorted, and of points of one date the last one. */
export function inSequence({ atMs, values, versions }: Series): Series {
  let isSequence = true;
  for (let at = 1; at < atMs.length && isSequence; at += 1) isSequence = (atMs[at - 1] ?? 0) < (atMs[at] ?? 0);
  if (isSequence) return { atMs, values, versions };
  const last = new Map(Array.from(atMs, (ms, at) => [ms, at]));
  const order = [...last].sort(([one], [other]) => one - other);
  return {
    atMs: Float64Array.from(order, ([ms]) => ms),
    values: Float64Array.from(order, ([, at]) => values[at] ?? Number.NaN),
    versions: versions === null ? null : Int32Array.from(order, ([, at]) => versions[at] ?? 0),
  };
}

/** For points of which several make one: their version, where those with a version agree. */
export function commonVersion(one: number, other: number): number {
  return one === 0 || one === other ? other : other === 0 ? one : MIXED;
}

/** Different versions: it stays so, whatever comes. Outside of this computation it is no version. */
export const MIXED = -1;
