/** Rows that hold a day, with a column an interval. */
import { RowError } from "headgate/mapper";
import { bindDate, createShift, type DateReader, epochMs } from "./dates.ts";
import { createDayPlanner, type DayPlan, intervalsOf } from "./days.ts";
import { type DaySettings, durationMs, type Layout } from "./settings.ts";
import { bindActions, type Tags } from "./statuses.ts";
import { bindTemplate, type Cells, cellText, type Scope } from "./template.ts";
import { bindQuantity, type Counts, type Tools } from "./values.ts";
import { eachCell, joined, matchingColumns, valueSettings } from "./wide.ts";

type PlanDay = ReturnType<typeof createDayPlanner>;

export interface TakeDay {
  (cells: Cells, tags: Tags | undefined): void;
  /** Cells by which the row may differ from one of an ordinary day. Throws a `RowError` for a day that is refused. */
  readonly extra: (cells: Cells) => number;
}

/** A column of the day, and the column with the status of its value. */
export interface DayColumn {
  readonly at: number;
  readonly flag?: number | undefined;
  /** The interval of the day that it holds, from 0. */
  readonly nth: number;
}

/** The columns of the day in rows of so many cells, in the order of their intervals. */
export type DayColumns = (cells: number) => readonly DayColumn[];

export function bindDay(
  tools: Tools,
  layout: Layout,
  scope: Scope,
  counts: Counts,
  columnsOf: DayColumns = dayColumns(layout.day as DaySettings, scope),
): TakeDay {
  const day = layout.day as DaySettings;
  // The day is read as a calendar date, which no zone shifts.
  const days = { timeZone: "UTC", dst: "reject", shift: undefined, midnight: "startOfDay" } as const;
  const date = bindDate(tools.time, { date: layout.date, ...days }, scope);
  const zoneOf = bindTemplate(layout.timeZone ?? "UTC", scope);
  const planOf = plannerByZone(tools, layout, day);
  const quantity = bindQuantity(tools, layout, valueSettings(layout, {}), layout.target ?? {}, scope);
  const shift = createShift(tools.time, layout.shift);
  const act = day.flags === undefined ? undefined : bindActions(day.flags);

  const read = (cells: Cells) => {
    const text = dayText(date, cells);
    const columns = columnsOf(cells.length);
    const filled = (columns.findLast(({ at }) => !isEmpty(cells[at]))?.nth ?? -1) + 1;
    const target = quantity.target(cells);
    const zone = tools.time.zone(zoneOf.read(cells), target);
    const plan = planned(() => planOf(zone)(text, (columns.at(-1)?.nth ?? -1) + 1, filled), date.column);
    return { text, columns, target, zone, plan };
  };
  const extra = (cells: Cells) => {
    const { plan, columns } = read(cells);
    return plan.extra * (columns[0]?.flag === undefined ? 1 : 2);
  };
  const take = (cells: Cells, rowTags: Tags | undefined) => {
    if (quantity.isKnown?.(cells) === false) {
      counts.dropped += 1;
      return;
    }
    const { text, columns, target, zone, plan } = read(cells);
    // Checked first, since a surplus value makes the interval of all others uncertain.
    columns.forEach(({ at, nth }) => {
      if (!Number.isNaN(plan.starts[nth] ?? Number.NaN) || isEmpty(cells[at])) return;
      const value = quantity.value(cells, at);
      if (value !== undefined && (value !== 0 || day.skippedHour !== "zero"))
        throw noInterval(text, scope.columns.name(at), zone);
    });
    const unit = quantity.unit?.(cells);
    const version = quantity.version?.(cells);
    const tags = joined(rowTags, quantity.tags?.(cells));
    eachCell(tools, cells, columns, ({ at, flag, nth }) => {
      const name = scope.columns.name(at);
      const start = plan.starts[nth] ?? Number.NaN;
      if (Number.isNaN(start)) return;
      const value = quantity.value(cells, at);
      if (value === undefined) {
        counts.missing += 1;
        return;
      }
      if (plan.unclear.has(nth)) throw unclear(text, name, zone);
      const flagName = flag === undefined ? "" : scope.columns.name(flag);
      const status = flag === undefined ? undefined : act?.(cellText(cells[flag], flagName), flagName);
      if (status === "drop") counts.dropped += 1;
      else
        tools.emit({
          target,
          date: shift(new Date(start), zone),
          value,
          unit,
          version,
          tags: joined(tags, status),
        });
    });
  };
  return Object.assign(take, { extra });
}

/** The local date of a row as `yyyy-MM-dd`. */
function dayText(date: DateReader, cells: Cells): string {
  const text = new Date(epochMs(date.read(cells, ""))).toISOString();
  if (text.endsWith("T00:00:00.000Z")) return text.slice(0, 10);
  throw new RowError("the day of the row has a time of day", { column: date.column, text });
}

function plannerByZone({ time }: Tools, layout: Layout, day: DaySettings): (zone: string) => PlanDay {
  const planners = new Map<string, PlanDay>();
  const { changeDays, interval, partialDays } = day;
  const dst = layout.dst === "byOrder" ? "reject" : layout.dst;
  return (zone) => {
    const planner =
      planners.get(zone) ??
      createDayPlanner(time, { zone, changeDays, dst, partialDays, intervalMs: durationMs(interval) });
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

/** The day's columns; in a file without a header, up to the end of each row. Throws a `FileError`. */
export function dayColumns(day: DaySettings, scope: Scope): DayColumns {
  const hasFlags = day.flags !== undefined;
  if (day.match !== undefined) {
    const found = matchingColumns(day.match, scope).map(({ at }) => (hasFlags ? { at, flag: at + 1 } : { at }));
    const places = inDay(day, found, scope);
    return () => places;
  }
  const last = day.to === undefined ? undefined : scope.columns.find(day.to);
  return columnsFrom(day, { first: scope.columns.find(day.from ?? 1), last, hasFlags }, scope);
}

interface Range {
  readonly first: number;
  readonly last: number | undefined;
  /** Whether each column is followed by its status. */
  readonly hasFlags: boolean;
}

/** Columns from the first to the last, or to the end of the header or the row. Throws a `FileError`. */
export function columnsFrom(day: DaySettings, { first, last, hasFlags }: Range, scope: Scope): DayColumns {
  const end = last === undefined ? scope.columns.width : last + 1;
  const step = hasFlags ? 2 : 1;
  const range = (to: number) =>
    Array.from({ length: Math.max(0, Math.ceil((to - first) / step)) }, (_, nth) => {
      const at = first + nth * step;
      return hasFlags ? { at, nth, flag: at + 1 } : { at, nth };
    });
  if (end !== undefined) {
    const places = inDay(day, range(end), scope);
    return () => places;
  }
  let places: readonly DayColumn[] = [];
  let width = -1;
  return (cells) => {
    if (width !== cells) {
      places = range(cells);
      width = cells;
    }
    return places;
  };
}

/** The columns with the intervals that their names say. Throws a `FileError` where some are missing. */
export function inDay(
  { interval, changeDays, partialDays, firstLabel }: DaySettings,
  columns: readonly Omit<DayColumn, "nth">[],
  scope: Scope,
): readonly DayColumn[] {
  const header = new Map(scope.columns.entries().map(({ at, name }) => [at, name]));
  const names = columns.map(({ at }) => header.get(at) ?? "");
  const intervals = intervalsOf(names, { intervalMs: durationMs(interval), changeDays, partialDays, firstLabel });
  return columns
    .map((column, at) => ({ ...column, nth: intervals[at] ?? at }))
    .sort((one, other) => one.nth - other.nth);
}

function isEmpty(cell: Cells[number] | undefined): boolean {
  return cell === undefined || cell === null || (typeof cell === "string" && cell.trim() === "");
}

function noInterval(day: string, column: string, zone: string): RowError {
  return new RowError(`${columnWords(column)} has a value, but the day ${day} has no such interval in ${zone}`, {
    column,
    hint: "Is the zone that of the file, and `changeDays` how the file writes the days on which the clock changes?",
  });
}

function columnWords(column: string): string {
  return /^column \d/.test(column) ? column : `the column ${column}`;
}

function unclear(day: string, column: string, zone: string): RowError {
  return new RowError(`the interval ${column} of ${day} occurs twice in ${zone}, and only one of the two is there`, {
    column,
    hint: "Set `dst` to the pass that the file has: `earlier` or `later`.",
  });
}
