/** The plan by which plain rows of a layout are read from the bytes of the file, where its settings allow one. */
import type { RowPlan } from "headgate/mapper";
import { isWritten, zoneName } from "./dates.ts";
import { type ValueColumn, valueColumns } from "./rows.ts";
import { formatsOf, type Layout, type StatusSettings } from "./settings.ts";
import { targetFields } from "./targets.ts";
import { bindTemplate, type Scope } from "./template.ts";
import type { Counts } from "./values.ts";

/** `width`: cells of a row without a header. Null where date or value are more than the text of one cell. */
export function rowPlan(layout: Layout, scope: Scope, counts: Counts, width: number): RowPlan | null {
  if (layout.day !== undefined) return null;
  const columns = valueColumns(layout, scope);
  const date = dateOf(layout, scope);
  const [first] = columns;
  if (date === undefined || first === undefined || !columns.every(({ settings }) => isAsWritten(settings))) return null;
  const missing = missingTexts(first);
  if (columns.some((column) => missingTexts(column).join("\n") !== missing.join("\n"))) return null;
  const by = [...columns.flatMap(usesOf), ...statusColumns(layout.status, scope)];
  return {
    width: scope.columns.width ?? width,
    date,
    values: columns.map(({ at }) => at),
    decimal: layout.decimal,
    by: [...new Set(by)],
    missing: {
      texts: missing,
      count: (cells) => {
        counts.missing += cells;
      },
    },
  };
}

function dateOf({ date, timeZone, dst, shift }: Layout, scope: Scope): RowPlan["date"] | undefined {
  const [format, ...others] = formatsOf(date);
  const [column, ...more] = date.columns ?? [date.column];
  if (format === undefined || others.length > 0 || !isWritten(format) || shift !== undefined) return undefined;
  if (column === undefined || more.length > 0 || date.pattern !== undefined) return undefined;
  const zone = timeZone === undefined ? undefined : bindTemplate(timeZone, scope).constant;
  return { column: scope.columns.find(column), format, zone: zoneName(zone), byOrder: dst === "byOrder" };
}

/** Whether the value is the number of the cell. */
function isAsWritten({ convertTo, scale }: ValueColumn["settings"]): boolean {
  return convertTo === undefined && scale === undefined;
}

function missingTexts({ settings }: ValueColumn): readonly string[] {
  return (settings.missing ?? []).map((text) => text.trim());
}

/** Columns on which target, unit, version, tags and status of a value depend. */
function usesOf({ settings, target, inner }: ValueColumn): readonly number[] {
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
