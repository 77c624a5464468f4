/** The plan by which plain rows of a layout are read from the bytes of the file, where its settings allow one. */
import type { RowPlan } from "headgate/mapper";
import { isWritten, zoneName } from "./dates.ts";
import { type DayColumns, dayColumns } from "./day-rows.ts";
import { type ValueColumn, valueColumns } from "./rows.ts";
import { durationMs, formatsOf, type Layout, type StatusSettings, type ValueSettings } from "./settings.ts";
import { targetFields } from "./targets.ts";
import { bindTemplate, type Scope } from "./template.ts";
import type { Counts } from "./values.ts";
import { valueSettings } from "./wide.ts";

const DAY_MS = 86_400_000;

/** `width`: cells of a row without a header. Null where date or value are more than the text of one cell. */
export function rowPlan(layout: Layout, scope: Scope, counts: Counts, width: number): RowPlan | null | undefined {
  if (layout.day !== undefined)
    return dayPlan(layout, scope, counts, { width, columnsOf: dayColumns(layout.day, scope) });
  const columns = valueColumns(layout, scope);
  const date = dateOf(layout, scope);
  const [first] = columns;
  if (date === undefined || first === undefined || !columns.every(({ settings }) => isAsWritten(settings))) return null;
  const missing = missingTexts(first.settings);
  if (columns.some(({ settings }) => missingTexts(settings).join("\n") !== missing.join("\n"))) return null;
  const by = [...columns.flatMap(usesOf), ...statusColumns(layout.status, scope)];
  return {
    width: scope.columns.width ?? width,
    date,
    values: columns.map(({ at }) => at),
    decimal: layout.decimal,
    by: [...new Set(by)],
    missing: counted(missing, counts),
  };
}

/** The plan of a layout with a row a day; undefined where a later row may have all columns of a day. */
export function dayPlan(
  layout: Layout,
  scope: Scope,
  counts: Counts,
  { width, columnsOf }: { readonly width: number; readonly columnsOf: DayColumns },
): RowPlan | null | undefined {
  const { day, shift = "0m", target = {}, timeZone = "UTC", status } = layout;
  const settings = valueSettings(layout, {});
  const date = columnOf(layout, scope);
  const formats = formatsOf(layout.date);
  // A day of the calendar may move by hours that it does not have everywhere.
  if (day === undefined || date === undefined || shift.endsWith("d")) return null;
  if (!formats.every(isWritten) || !isAsWritten(settings)) return null;
  const step = durationMs(day.interval);
  const cells = scope.columns.width ?? width;
  const columns = columnsOf(cells);
  const perDay = DAY_MS / step;
  const usual = columns.filter(({ nth }) => nth < perDay);
  // Whether a row of fewer columns is that of a short day depends on its date.
  if (usual.length < perDay && day.partialDays === "reject")
    return scope.columns.width === undefined ? undefined : null;
  const flags = usual.flatMap(({ flag }) => (flag === undefined ? [] : [flag]));
  const by = [...usesOf({ settings, target, inner: scope }), ...statusColumns(status, scope)];
  return {
    width: cells,
    date: {
      column: date,
      format: formats.length === 1 && formats[0] === "iso" ? "yyyy-MM-dd" : formats,
      zone: bindTemplate(timeZone, scope).constant,
    },
    values: usual.map(({ at }) => at),
    day: {
      minutes: usual.map(({ nth }) => (nth * step + durationMs(shift)) / 60_000),
      ...(day.flags === undefined || flags.length === 0 ? {} : { status: flags }),
    },
    decimal: layout.decimal,
    // Columns beyond a usual day are empty, which the first row with the same cells shows.
    by: [...new Set([...by, ...columns.filter(({ nth }) => nth >= perDay).map(({ at }) => at)])],
    missing: counted(missingTexts(settings), counts),
  };
}

function counted(texts: readonly string[], counts: Counts): NonNullable<RowPlan["missing"]> {
  return {
    texts,
    count: (cells) => {
      counts.missing += cells;
    },
  };
}

function dateOf(layout: Layout, scope: Scope): RowPlan["date"] | undefined {
  const { date, timeZone, dst, shift, midnight } = layout;
  const formats = formatsOf(date);
  const column = columnOf(layout, scope);
  // Dates that are moved are not those of their cells.
  const isMoved = shift !== undefined || midnight === "endOfDay";
  if (column === undefined || isMoved || !formats.every(isWritten)) return undefined;
  const zone = timeZone === undefined ? undefined : bindTemplate(timeZone, scope).constant;
  return { column, format: formats, zone: zoneName(zone), byOrder: dst === "byOrder" };
}

/** The one column of the date; undefined where the date is more or less than the text of its cell. */
function columnOf({ date }: Layout, { columns }: Scope): number | undefined {
  const [column, ...more] = date.columns ?? [date.column];
  return column === undefined || more.length > 0 || date.pattern !== undefined ? undefined : columns.find(column);
}

/** Whether the value is the number of the cell. */
function isAsWritten({ convertTo, scale }: ValueColumn["settings"]): boolean {
  return convertTo === undefined && scale === undefined;
}

function missingTexts(settings: ValueSettings): readonly string[] {
  return (settings.missing ?? []).map((text) => text.trim());
}

/** Columns on which target, unit, version, tags and status of a value depend. */
function usesOf({ settings, target, inner }: Omit<ValueColumn, "at">): readonly number[] {
  const { unit, version, tags, status } = settings;
  const { table } = inner;
  const key = table?.settings.unknown === "drop" ? table.settings.key : undefined;
  const templates = [unit, version, ...Object.values(tags ?? {}), key];
  return [
    ...targetFields(target, inner).flatMap(({ template }) => template.uses),
    ...templates.flatMap((template) => (template === undefined ? [] : bindTemplate(template, inner).uses)),
    ...statusColumns(status, inner),
  ];
}

function statusColumns(settings: StatusSettings | undefined, { columns }: Scope): readonly number[] {
  return (settings ?? []).map(({ column }) => columns.find(column));
}
