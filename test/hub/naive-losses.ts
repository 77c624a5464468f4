/** What is missing of a series, date by date: slow and plain, for comparison with the hub. */

export interface NaiveStep {
  readonly granularity: number;
  /** Id of the time periods. */
  readonly base: number;
}

const CLOCK_MS: Readonly<Record<number, number>> = { 1: 1_000, 2: 60_000, 3: 3_600_000 };

/** So many expected dates, each by the calendar of the zone. */
export function expectedDates({ granularity, base }: NaiveStep, zone: string, from: string, steps: number): number[] {
  const start = Temporal.PlainDateTime.from(from).toZonedDateTime(zone);
  return Array.from({ length: steps }, (_, turn) => {
    const count = turn * granularity;
    const clockMs = CLOCK_MS[base];
    if (clockMs !== undefined) return start.epochMilliseconds + count * clockMs;
    const length = base === 4 ? { days: count } : base === 5 ? { weeks: count } : { months: count };
    return start.add(length).epochMilliseconds;
  });
}

export interface NaiveRun {
  readonly from: number;
  readonly to: number;
  readonly missing: number;
}

/** Each expected date that has no point, in runs; a run ends with the next date that has one, or with the period. */
export function missingRuns(dates: readonly number[], present: ReadonlySet<number>, untilMs: number): NaiveRun[] {
  const runs: NaiveRun[] = [];
  for (const [index, date] of dates.entries()) {
    if (present.has(date)) continue;
    const to = dates[index + 1] ?? untilMs;
    const last = runs.at(-1);
    if (last !== undefined && last.to === date) runs[runs.length - 1] = { ...last, to, missing: last.missing + 1 };
    else runs.push({ from: date, to, missing: 1 });
  }
  return runs;
}
