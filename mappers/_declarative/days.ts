/** Rows of whole days: the instant of each column, also on days of 23 and 25 hours. */
import { RowError, type TimeTools } from "headgate/mapper";

const DAY_MS = 86_400_000;

export interface DayRules {
  readonly zone: string;
  readonly intervalMs: number;
  readonly changeDays: "reject" | "order" | "clock";
  /** Policy for a repeated hour that has only one set of columns. */
  readonly dst: "reject" | "earlier" | "later";
}

export interface DayPlan {
  /** Start of the interval of each column in epoch milliseconds; NaN for a column without an interval on that day. */
  readonly starts: readonly number[];
  /** Columns of repeated intervals whose pass is not known. */
  readonly unclear: ReadonlySet<number>;
}

/**
 * Instants of the columns of a day. `day` is the local date `yyyy-MM-dd`; `filled` is the number of filled columns,
 * which shows whether further columns hold a second pass. Throws a `RowError` for a day that the rules refuse.
 */
export function createDayPlanner(
  time: TimeTools,
  rules: DayRules,
): (day: string, columns: number, filled: number) => DayPlan {
  const { zone, intervalMs } = rules;
  const perDay = Math.round(DAY_MS / intervalMs);
  let latestKey = "";
  let latest: DayPlan | undefined;

  function plan(day: string, columns: number, hasExtra: boolean): DayPlan {
    const start = time.dayStart(day, "yyyy-MM-dd", zone).epochMilliseconds;
    const minutes = time.dayLength(day, "yyyy-MM-dd", zone);
    const count = (minutes * 60_000) / intervalMs;
    const inOrder = count === perDay || rules.changeDays === "order";
    if (!inOrder && rules.changeDays === "reject")
      throw new RowError(`the day ${day} has ${minutes / 60} hours in ${zone}`, {
        text: day,
        hint:
          "Set `changeDays` to the way in which the file writes such days: `order` when columns follow " +
          "each other without a gap, `clock` when they are times of the clock.",
      });
    if (inOrder && count > perDay && !hasExtra)
      throw new RowError(
        `the day ${day} has ${count} intervals in ${zone}, but only ${Math.min(columns, perDay)} columns hold values`,
        {
          text: day,
          hint:
            "Columns that follow each other without a gap fill further ones on such a day. If they are " +
            "times of the clock instead, set `changeDays: clock`; if the file never changes its clock, " +
            "set a `timeZone` that does not either.",
        },
      );
    if (inOrder) {
      const starts = Array.from({ length: columns }, (_, at) => (at < count ? start + at * intervalMs : Number.NaN));
      return { starts, unclear: new Set() };
    }
    return byClock(day, columns, count > perDay, hasExtra);
  }

  /** Columns of a day with a change of the clock, read as clock times. */
  function byClock(day: string, columns: number, isLong: boolean, hasExtra: boolean): DayPlan {
    const midnight = Date.parse(`${day}T00:00:00Z`);
    const starts: number[] = [];
    const again: number[] = [];
    const unclear = new Set<number>();
    for (let at = 0; at < Math.min(perDay, columns); at += 1) {
      const text = new Date(midnight + at * intervalMs).toISOString().slice(0, 19);
      const first = time.iso(text, zone, "earlier").epochMilliseconds;
      const second = time.iso(text, zone, "later").epochMilliseconds;
      if (first === second) starts.push(first);
      else if (!isLong) starts.push(Number.NaN);
      else {
        again.push(second);
        if (!hasExtra && rules.dst === "reject") unclear.add(at);
        starts.push(!hasExtra && rules.dst === "later" ? second : first);
      }
    }
    for (let at = perDay; at < columns; at += 1) starts.push(again[at - perDay] ?? Number.NaN);
    return { starts, unclear };
  }

  return (day, columns, filled) => {
    const hasExtra = filled > perDay;
    const key = `${day} ${columns} ${hasExtra}`;
    if (key !== latestKey || latest === undefined) {
      latest = plan(day, columns, hasExtra);
      latestKey = key;
    }
    return latest;
  };
}
