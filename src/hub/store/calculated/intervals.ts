/** The stretches of time in which points lie, for marks of what they make due. Both ends are included. */
import { INTERVALS_MAX, NEAR_MS } from "./marks.ts";

export interface DateInterval {
  readonly fromMs: number;
  readonly toMs: number;
}

/** Of dates in any order. */
export function intervalsOf(dates: readonly number[]): readonly DateInterval[] {
  return joined(Array.from(Float64Array.from(dates).sort(), (atMs) => ({ fromMs: atMs, toMs: atMs })));
}

/** Intervals near to each other become one; then the nearest ones do, until `INTERVALS_MAX` or fewer are left. */
export function joined(intervals: readonly DateInterval[]): readonly DateInterval[] {
  const all = joinedWithin(intervals, NEAR_MS);
  if (all.length <= INTERVALS_MAX) return all;
  const gaps = all.slice(1).map(({ fromMs }, at) => fromMs - (all[at]?.toMs ?? fromMs));
  const widest = gaps.toSorted((one, other) => other - one);
  return joinedWithin(all, widest[INTERVALS_MAX - 1] ?? NEAR_MS);
}

function joinedWithin(intervals: readonly DateInterval[], gapMs: number): readonly DateInterval[] {
  const all: DateInterval[] = [];
  for (const { fromMs, toMs } of intervals.toSorted((one, other) => one.fromMs - other.fromMs)) {
    const last = all.at(-1);
    if (last !== undefined && fromMs - last.toMs <= gapMs)
      all[all.length - 1] = { fromMs: last.fromMs, toMs: Math.max(last.toMs, toMs) };
    else all.push({ fromMs, toMs });
  }
  return all;
}
