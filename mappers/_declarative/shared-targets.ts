/** Columns of one row that name the same target: one value would replace the other, so both are refused. */
import { FileError, type Reading, RowError, type Target } from "headgate/mapper";
import type { Field } from "./targets.ts";
import type { Cells, Scope, Template } from "./template.ts";
import type { Tools } from "./values.ts";
import { eachCell } from "./wide.ts";

/** A column of values, with the parts of its target and version. */
export interface TargetColumn {
  readonly at: number;
  readonly fields: readonly Field[];
  readonly version: Template | undefined;
}

/**
 * Whether a row may map two of the columns to one target, so that rows have to be compared. Throws a `FileError` for
 * columns that have the same target in every row.
 */
export function mayShareTargets(columns: readonly TargetColumn[], { columns: names }: Scope): boolean {
  const bySource = new Map<string, TargetColumn>();
  const constants = new Set<string>();
  const shapes = new Set<string>();
  for (const column of columns) {
    const version = column.version?.source ?? "";
    const source = JSON.stringify([column.fields.map(({ name, template }) => [name, template.source]), version]);
    const other = bySource.get(source);
    if (other !== undefined) throw sharedAlways(other.at, column.at, names);
    bySource.set(source, column);
    const parts = column.fields.map(({ name, template }) => [name, template.constant ?? null]);
    constants.add(JSON.stringify([parts, column.version === undefined ? "" : (column.version.constant ?? null)]));
    shapes.add(
      JSON.stringify([...parts.map(([name, text]) => [name, text === null]), column.version?.constant === undefined]),
    );
  }
  // Columns of one shape differ in every row when their constant parts differ.
  return constants.size < columns.length || shapes.size > 1;
}

function sharedAlways(one: number, other: number, names: Scope["columns"]): FileError {
  return new FileError(`${columnWords(one, other, names)} become the same target`, {
    column: `${names.name(one)} and ${names.name(other)}`,
    hint:
      "One value would replace the other. Distinguish them in `target`, for example by `{column}`, the " +
      "name of the value's column; columns of equal names by an entry of `values` each, with the number " +
      "as `column`. Leave out those that are not wanted.",
  });
}

function columnWords(one: number, other: number, names: Scope["columns"]): string {
  const [first, second] = [names.name(one), names.name(other)];
  return first === second
    ? `the columns ${one + 1} and ${other + 1}, both named "${first}",`
    : `the columns "${first}" and "${second}"`;
}

export interface ColumnReading {
  readonly at: number;
  readonly reading: Reading;
}

/** Emits the readings of one row, and refuses those whose target and version another column of the row also has. */
export function createRowEmitter(tools: Tools, { columns: names }: Scope) {
  const keys = new WeakMap<Target, string>();
  const keyOf = ({ target, version = "" }: Reading): string => {
    const key = keys.get(target) ?? JSON.stringify(Object.entries(target).sort());
    keys.set(target, key);
    return `${key} ${version}`;
  };
  return (cells: Cells, readings: readonly ColumnReading[]): void => {
    const byTarget = Map.groupBy(readings, ({ reading }) => keyOf(reading));
    eachCell(tools, cells, [...byTarget.values()], ([first, second]) => {
      if (first === undefined) return;
      if (second === undefined) tools.emit(first.reading);
      else
        throw new RowError(`${columnWords(first.at, second.at, names)} become the same target in this row`, {
          column: `${names.name(first.at)} and ${names.name(second.at)}`,
          hint: "One value would replace the other. Distinguish them in the setting `target`.",
        });
    });
  };
}
