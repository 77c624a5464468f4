/**
 * Lookup tables in templates: `{tags.variable}` is the column `variable` of the row that the table `tags` has for this
 * row's key.
 */
import { FileError, type Lookup, type MapContext, z } from "headgate/mapper";
import { nearest } from "./columns.ts";
import { templateText } from "./settings-text.ts";
import type { Template } from "./template.ts";

export const lookupSettings = z
  .strictObject({
    table: z
      .string()
      .min(1)
      .describe("Name of a table of the gateway's `lookups`. `{table.column}` in templates is its column."),
    key: templateText.describe("Template of the key, such as `{Tag}`."),
    unknown: z
      .enum(["reject", "drop"])
      .default("reject")
      .describe("Action for readings whose key is not in the table."),
  })
  .describe("Table from which templates take facts that the file lacks, such as targets, units and factors.");

export type LookupSettings = z.output<typeof lookupSettings>;

/** The table that templates of a file may name. */
export interface Table {
  readonly settings: LookupSettings;
  readonly rows: Lookup;
}

export async function openTable(
  lookup: MapContext<unknown>["lookup"],
  settings: LookupSettings | undefined,
): Promise<Table | undefined> {
  return settings === undefined ? undefined : { settings, rows: await lookup(settings.table) };
}

/**
 * The cell of the table for `name`; undefined for a name of another kind. Reading throws a `RowError` for an unknown
 * key.
 */
export function bindTableCell(
  name: string,
  table: Table | undefined,
  bind: (template: string) => Template,
): Template | undefined {
  if (table === undefined || !name.startsWith(`${table.settings.table}.`)) return undefined;
  const column = name.slice(table.settings.table.length + 1);
  const key = bind(table.settings.key);
  return {
    uses: key.uses,
    source: `${JSON.stringify(name)} of ${key.source}`,
    read(cells) {
      const row = table.rows.require(key.read(cells));
      if (column in row) return (row[column] ?? "").trim();
      const near = nearest(column, Object.keys(row));
      throw new FileError(`the table ${table.settings.table} has no column ${JSON.stringify(column)}`, {
        column,
        hint:
          near === undefined ? `Its columns are: ${Object.keys(row).join(", ")}.` : `Is ${JSON.stringify(near)} meant?`,
      });
    },
  };
}
