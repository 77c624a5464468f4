/** Workbooks (XLSX), described by settings alone. */
import { type CellValue, defineMapper, FileError, type MapContext, z } from "headgate/mapper";
import { headedColumns, nearest, numberedColumns } from "../_declarative/columns.ts";
import { checkNamed, fileFacts, LaterLines, namedShape, noteCounts, preambleFacts } from "../_declarative/facts.ts";
import { type FilteredTable, filterShape, lineOf, rowFilter } from "../_declarative/row-filter.ts";
import { bindRows, checkedWidth, columnCount, rowTest, type TakeRow, widthShape } from "../_declarative/rows.ts";
import { checkLayout, layoutShape } from "../_declarative/settings.ts";
import { pattern } from "../_declarative/settings-text.ts";
import { openTable, type Table } from "../_declarative/tables.ts";
import type { Scope } from "../_declarative/template.ts";
import type { Counts } from "../_declarative/values.ts";
import { DateKinds, mixedDates } from "../_formats/cells.ts";

const settings = z
  .strictObject({
    sheet: z
      .union([z.string().min(1), z.int().min(1)])
      .default(1)
      .describe("Name or number of the sheet."),
    sheets: pattern
      .optional()
      .describe(
        "Regular expression on the names of sheets, instead of `sheet`: every sheet that fits is " +
          "read, `.*` for all. `{sheet}` in templates is the name.",
      ),
    headerRow: z
      .int()
      .min(1)
      .default(1)
      .describe("Row of the header, as the spreadsheet program numbers it; without a header, of the data."),
    headerAt: z
      .string()
      .min(1)
      .optional()
      .describe("Text that a cell of the header's row begins with, by which it is found, instead of headerRow."),
    headerRows: z
      .int()
      .min(0)
      .max(20)
      .default(1)
      .describe(
        "Rows of names. Of several, a column's name is its names joined by a blank, and any one of " +
          "them finds it where it is the only one; 0 when there is no header: columns then go by " +
          "number.",
      ),
    fillHeader: z
      .boolean()
      .default(true)
      .describe(
        "Whether an empty cell in the upper of several rows of names takes the name at its left, as " +
          "merged cells mean it.",
      ),
    preamble: z
      .array(pattern)
      .optional()
      .describe(
        "Regular expressions that have to be found in rows before the header, their cells joined by " +
          "`;`; their named groups may be used in templates.",
      ),
    ...filterShape,
    columnCount,
    ...widthShape,
    mixedDates,
    ...layoutShape,
    ...namedShape,
  })
  .superRefine((value, check) => {
    checkLayout(value, check);
    if (value.headerAt !== undefined && value.headerRows === 0)
      check.addIssue({
        code: "custom",
        path: ["headerRows"],
        message: "headerAt finds a header: it has rows",
      });
    if (value.columnCount !== undefined && value.headerRows > 0)
      check.addIssue({
        code: "custom",
        path: ["columnCount"],
        message: "the header says how many columns there are",
      });
  });

type Settings = z.output<typeof settings>;
type Context = MapContext<Settings>;

/** Number of rows that are searched for the header. */
const HEAD_ROWS_MAX = 1000;
const DELIMITER = ";";

export default defineMapper({
  name: "workbook",
  summary: "Workbooks (XLSX), by settings alone: long, a column a quantity, or a row a day",
  version: "1.0.0",
  sourceZone: true,
  conflicts: "refuse",
  settings,

  async map(context) {
    const table = await openTable(context.lookup, context.settings.lookup);
    const counts = { missing: 0, dropped: 0 };
    for (const sheet of await wantedSheets(context)) await readSheet(context, sheet, table, counts);
    noteCounts(context, counts);
  },
});

async function wantedSheets({ file, settings }: Context): Promise<readonly string[]> {
  const names = await file.sheets();
  const shown = `Its sheets are: ${names.map((name) => JSON.stringify(name)).join(", ")}.`;
  if (settings.sheets !== undefined) {
    const expression = new RegExp(settings.sheets, "u");
    const found = names.filter((name) => expression.test(name));
    if (found.length === 0)
      throw new FileError(`no sheet of the workbook fits the pattern ${settings.sheets}`, { hint: shown });
    return found;
  }
  const { sheet } = settings;
  const found = typeof sheet === "number" ? names[sheet - 1] : names.find((name) => name === sheet);
  if (found !== undefined) return [found];
  const near = typeof sheet === "string" ? nearest(sheet, names) : undefined;
  throw new FileError(`the workbook has no sheet ${JSON.stringify(sheet)}`, {
    hint: near === undefined ? shown : `Is ${JSON.stringify(near)} meant? ${shown}`,
  });
}

async function readSheet(context: Context, sheet: string, table: Table | undefined, counts: Counts): Promise<void> {
  const { file, settings } = context;
  const { headerAt, headerRow, headerRows } = settings;
  const before = await rowsBefore(context, sheet);
  const facts = new Map([
    ["sheet", sheet],
    ...fileFacts(file.name, settings.fileName),
    ...preambleFacts(before, settings.preamble),
  ]);
  const dates = new DateKinds();
  const header: string[][] = [];
  let take: TakeRow | undefined;
  let scope: Scope | undefined;
  let known: FilteredTable | undefined;
  const begin = () => {
    const columns =
      headerRows === 0 ? numberedColumns(settings.columnCount) : headedColumns(filled(header, settings.fillHeader));
    scope = { columns, facts, table, dates };
    // Sheets end each row at its last filled cell.
    const ragged = { mayBeShort: true, mayBeLong: settings.extraCells === "ignore" };
    return checkedWidth(bindRows(context, settings, scope, counts), scope, ragged);
  };
  const isLeftOut = rowFilter(context, settings, DELIMITER);
  const tableOf = (of: Scope) => {
    known ??= {
      later: new LaterLines(settings, { header: headerRows === 0 ? [] : header, before, facts }),
      holdsData: rowTest(context, settings, of),
    };
    return known;
  };
  let isChecked = false;
  let found = headerAt === undefined;
  const rows = file.xlsx(headerAt === undefined ? { sheet, headerRow } : { sheet });
  await context.eachRow(rows, (cells) => {
    found ||= isHeader(cells, headerAt);
    if (!found) return;
    if (header.length < headerRows) {
      header.push(cells.map(nameOf));
      if (header.length === headerRows) take = begin();
      return;
    }
    take ??= begin();
    const leftOut = isLeftOut?.(cells, () => tableOf(scope as Scope));
    if (leftOut === "ended") return;
    if (leftOut === "skipped") {
      take.follow?.(cells);
      return;
    }
    if (scope !== undefined && !isChecked) checkNamed(context.unit, settings, scope, { before, row: cells });
    isChecked = true;
    take(cells);
  });
  const column = String(settings.date.column ?? settings.date.columns?.join(" and ") ?? "date");
  dates.check(column, settings.mixedDates, context.finding, { sheet });
  if (header.length < headerRows)
    throw new FileError(
      found
        ? `the sheet ${JSON.stringify(sheet)} ` +
            `${header.length === 0 ? "is empty: it has no header" : "ends inside its header"}`
        : `no row of the sheet ${JSON.stringify(sheet)} has a cell that begins with ${JSON.stringify(headerAt)}`,
      { sheet },
    );
}

/** Rows before the header as lines, when the settings use them. */
async function rowsBefore({ file, settings }: Context, sheet: string): Promise<string[]> {
  const before: string[] = [];
  if (settings.preamble === undefined && settings.headerAt === undefined && settings.headerRow === 1) return before;
  for await (const rows of file.xlsx({ sheet })) {
    for (const cells of rows) {
      const isEnd =
        settings.headerAt === undefined ? before.length >= settings.headerRow - 1 : isHeader(cells, settings.headerAt);
      if (isEnd || before.length >= HEAD_ROWS_MAX) return before;
      before.push(lineOf(cells, DELIMITER));
    }
  }
  return before;
}

function isHeader(cells: readonly CellValue[], headerAt: string | undefined): boolean {
  return headerAt !== undefined && cells.some((cell) => nameOf(cell).startsWith(headerAt));
}

function nameOf(cell: CellValue): string {
  return typeof cell === "object" ? (cell?.local ?? "") : String(cell).trim();
}

/** Names that span several columns, repeated in each of them. */
function filled(header: readonly (readonly string[])[], fill: boolean): readonly (readonly string[])[] {
  const width = Math.max(0, ...header.map((names) => names.length));
  return header.map((names, row) => {
    if (!fill || row === header.length - 1) return names;
    let latest = "";
    return Array.from({ length: width }, (_, at) => {
      if ((names[at] ?? "") !== "") latest = names[at] ?? "";
      return latest;
    });
  });
}
