/**
 * Shared parts of wide layouts: columns by pattern, merged settings, and rows in which one bad cell does not hide
 * others.
 */
import { FileError, RowError } from "headgate/mapper";
import type { Layout, ValueSettings } from "./settings.ts";
import type { Tags } from "./statuses.ts";
import type { Scope } from "./template.ts";
import type { Tools } from "./values.ts";

/**
 * Takes every cell of a row, so that one bad cell does not hide others: all faults but the last are reported, and the
 * last is thrown.
 */
export function eachCell<Column>(
  tools: Tools,
  row: object,
  columns: readonly Column[],
  take: (column: Column, index: number) => void,
): void {
  let latest: RowError | undefined;
  for (let index = 0; index < columns.length; index += 1) {
    try {
      take(columns[index] as Column, index);
    } catch (thrown) {
      if (!(thrown instanceof RowError)) throw thrown;
      if (latest !== undefined) report(tools, row, latest);
      latest = thrown;
    }
  }
  if (latest !== undefined) throw latest;
}

function report(tools: Tools, row: object, { message, column, hint }: RowError): void {
  tools.reject(row, {
    message,
    ...(column === undefined ? {} : { column }),
    ...(hint === undefined ? {} : { hint }),
  });
}

export function joined(...all: readonly (Tags | undefined)[]): Tags | undefined {
  let tags: Tags | undefined;
  for (const one of all) {
    if (one !== undefined) tags = tags === undefined ? one : { ...tags, ...one };
  }
  return tags;
}

/** The settings for all values, overridden by those of one entry; the row's own status was checked before. */
export function valueSettings(layout: Layout, entry: ValueSettings): ValueSettings {
  const { unit, convertTo, scale, missing, tags, version } = layout;
  const given = Object.entries(entry).filter(([, setting]) => setting !== undefined);
  return {
    unit,
    convertTo,
    scale,
    missing,
    tags,
    version,
    ...Object.fromEntries(given),
    status: entry.status,
  };
}

/** Columns whose name fits; at least one. */
export function matchingColumns(
  pattern: string,
  { columns }: Scope,
): readonly { readonly at: number; readonly groups: Readonly<Record<string, string>> }[] {
  const expression = new RegExp(pattern, "u");
  const found = columns.entries().flatMap(({ name, at }) => {
    const match = expression.exec(name);
    return match === null ? [] : [{ at, groups: { ...match.groups } }];
  });
  if (found.length > 0) return found;
  throw new FileError(`no column of the header fits the pattern ${pattern}`, {
    text: columns
      .entries()
      .map(({ name }) => name)
      .join(", "),
    hint: "Patterns are regular expressions on the whole name of a column, with regard to case.",
  });
}
