/** Rows that hold a day, with a column an interval. */
import { RowError } from "headgate/mapper";
import { bindDate, createShift, epochMs } from "./dates.ts";
import { createDayPlanner, type DayPlan } from "./days.ts";
import { type DaySettings, durationMs, type Layout } from "./settings.ts";
import type { Tags } from "./statuses.ts";
import { bindTemplate, type Cells, type Scope } from "./template.ts";
import { bindQuantity, type Counts, type Tools } from "./values.ts";
import { eachCell, joined, matchingColumns, valueSettings } from "./wide.ts";

type PlanDay = ReturnType<typeof createDayPlanner>;

export function bindDay(
  tools: Tools,
  layout: Layout,
  scope: Scope,
  counts: Counts,
): (cells: Cells, tags: Tags | undefined) => void {
  const day = layout.day as DaySettings;
  // The day is read as a date of the calendar, which no zone shifts.
  const date = bindDate(
    tools.time,
    { date: layout.date, timeZone: "UTC", dst: "reject", shift: undefined },
    scope,
  );
  const zoneOf = bindTemplate(layout.timeZone ?? "UTC", scope);
  const planOf = plannerByZone(tools, layout, day);
  const columnsOf = dayColumns(day, scope);
  const quantity = bindQuantity(tools, layout, valueSettings(layout, {}), layout.target ?? {}, scope);
  const shift = createShift(layout.shift);

  return (cells, rowTags) => {
    const midnight = epochMs(date.read(cells, ""));
    const text = new Date(midnight).toISOString();
    if (!text.endsWith("T00:00:00.000Z"))
      throw new RowError("the day of the row has a time of day", { column: date.column, text });
    const columns = columnsOf(cells);
    const filled = columns.findLastIndex((at) => !isEmpty(cells[at])) + 1;
    const zone = zoneOf.read(cells);
    const plan = planned(() => planOf(zone)(text.slice(0, 10), columns.length, filled), date.column);
    const target = quantity.target(cells);
    const unit = quantity.unit?.(cells);
    const version = quantity.version?.(cells);
    const tags = joined(rowTags, quantity.tags?.(cells));
    eachCell(tools, cells, columns, (at, index) => {
      const start = plan.starts[index] ?? Number.NaN;
      if (Number.isNaN(start)) {
        if (isEmpty(cells[at]) || quantity.value(cells, at) === undefined) return;
        throw noInterval(text.slice(0, 10), scope.columns.name(at), zone);
      }
      const value = quantity.value(cells, at);
      if (value === undefined) {
        counts.missing += 1;
        return;
      }
      if (plan.unclear.has(index)) throw unclear(text.slice(0, 10), scope.columns.name(at), zone);
      tools.emit({ target, date: shift(new Date(start), zone), value, unit, version, tags });
    });
  };
}

function plannerByZone({ time }: Tools, layout: Layout, day: DaySettings): (zone: string) => PlanDay {
  const planners = new Map<string, PlanDay>();
  const { changeDays, interval } = day;
  const dst = layout.dst === "byOrder" ? "reject" : layout.dst;
  return (zone) => {
    const planner =
      planners.get(zone) ??
      createDayPlanner(time, { zone, changeDays, dst, intervalMs: durationMs(interval) });
    planners.set(zone, planner);
    return planner;
  };
}

function planned(plan: () => DayPlan, column: string): DayPlan {
  try {
    return plan();
  } catch (thrown) {
    if (!(thrown instanceof RowError)) throw thrown;
    const { text, hint } = thrown;
    throw new RowError(thrown.message, {
      column,
      ...(text === undefined ? {} : { text }),
      ...(hint === undefined ? {} : { hint }),
    });
  }
}

/** Positions of the day's columns; in a file without a header, up to the end of each row. */
function dayColumns(day: DaySettings, scope: Scope): (cells: Cells) => readonly number[] {
  if (day.match !== undefined) {
    const places = matchingColumns(day.match, scope).map(({ at }) => at);
    return () => places;
  }
  const first = scope.columns.find(day.from ?? 1);
  const last = day.to === undefined ? undefined : scope.columns.find(day.to);
  const end = last === undefined ? scope.columns.width : last + 1;
  let places = range(first, end ?? 0);
  return (cells) => {
    if (end === undefined && places.length !== cells.length - first) places = range(first, cells.length);
    return places;
  };
}

function range(from: number, end: number): number[] {
  return Array.from({ length: Math.max(0, end - from) }, (_, at) => from + at);
}

function isEmpty(cell: Cells[number] | undefined): boolean {
  return cell === undefined || cell === null || (typeof cell === "string" && cell.trim() === "");
}

function noInterval(day: string, column: string, zone: string): RowError {
  return new RowError(
    `the column ${column} has a value, but the day ${day} has no such interval in ${zone}`,
    {
      column,
      hint: "Is the zone that of the file, and `changeDays` how the file writes the days on which the clock changes?",
    },
  );
}

function unclear(day: string, column: string, zone: string): RowError {
  return new RowError(
    `the interval ${column} of ${day} occurs twice in ${zone}, and only one of the two is there`,
    {
      column,
      hint: "Say by `dst` which of the two the file means: `earlier` or `later`.",
    },
  );
}
