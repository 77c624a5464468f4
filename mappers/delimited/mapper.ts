/** CSV and similar formats, described by settings alone. */
import { defineMapper, FileError, type Line, type MapContext, type RowPlan, type TextRow, z } from "headgate/mapper";
import { headedColumns, numberedColumns } from "../_declarative/columns.ts";
import { checkNamed, fileFacts, LaterLines, namedShape, noteCounts } from "../_declarative/facts.ts";
import { readHead } from "../_declarative/head.ts";
import { rowPlan } from "../_declarative/plan.ts";
import { commentLines, type FilteredTable, filterShape, rowFilter } from "../_declarative/row-filter.ts";
import {
  bindRows,
  checkedWidth,
  columnCount,
  type Raggedness,
  rowTest,
  type TakeRow,
  widthShape,
} from "../_declarative/rows.ts";
import { checkLayout, layoutShape } from "../_declarative/settings.ts";
import { pattern } from "../_declarative/settings-text.ts";
import { openTable } from "../_declarative/tables.ts";
import type { Scope } from "../_declarative/template.ts";
import { lineEnd } from "../_formats/cells.ts";

/** Value of `delimiter` for columns that are separated by any number of blanks. */
const BLANKS = "blanks";
const BLANKS_HINT =
  "Where a value is missing, blanks alone do not show which: name the columns by their places, as `fixed`. Lines " +
  "after the data are left out by `endAt` (from there to the end) or `skipRows`.";

const settings = z
  .strictObject({
    delimiter: z
      .string()
      .min(1)
      .default(",")
      .describe(
        "Delimiter of cells, one character or several; `blanks` for any number of blanks and tabs, without quoting.",
      ),
    quote: z
      .string()
      .length(1)
      .nullable()
      .default('"')
      .describe("Quote of cells that hold delimiters; `null` for files without quoting."),
    encoding: z.string().min(1).default("utf-8").describe("Encoding of files without a byte order mark."),
    comment: z.string().min(1).optional().describe("Lines that begin with this are left out."),
    skipLines: z.int().min(0).default(0).describe("Lines before the header."),
    headerAt: z
      .string()
      .min(1)
      .optional()
      .describe("Text by which the line of the header is found, instead of skipLines."),
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
    preamble: z
      .array(pattern)
      .optional()
      .describe(
        "Regular expressions that have to be found in lines before the header; their named groups may " +
          "be used in templates.",
      ),
    fixed: z
      .array(
        z.strictObject({
          name: z.string().min(1).describe("Name of the column."),
          start: z.int().min(1).describe("Place of its first character, from 1."),
          width: z.int().min(1).describe("Characters."),
        }),
      )
      .min(1)
      .optional()
      .describe("Columns at fixed places of a line, instead of a delimiter and a header."),
    ...filterShape,
    lineEnd,
    columnCount,
    ragged: z
      .enum(["reject", "allow"])
      .default("reject")
      .describe("Rows with fewer cells than the header, or than the first row where there is no header."),
    ...widthShape,
    ...layoutShape,
    ...namedShape,
  })
  .superRefine((value, check) => {
    checkLayout(value, check);
    if (value.headerAt !== undefined && value.skipLines > 0)
      check.addIssue({ code: "custom", path: ["headerAt"], message: "give either headerAt or skipLines" });
    if (value.headerAt !== undefined && value.headerRows === 0)
      check.addIssue({
        code: "custom",
        path: ["headerRows"],
        message: "headerAt finds a header: it has rows",
      });
    if (value.columnCount !== undefined && (value.headerRows > 0 || value.fixed !== undefined))
      check.addIssue({
        code: "custom",
        path: ["columnCount"],
        message: `${value.fixed === undefined ? "the header" : "fixed"} says how many columns there are`,
      });
  });

type Settings = z.output<typeof settings>;

export default defineMapper({
  name: "delimited",
  summary: "CSV and other delimited text, by settings alone: long, a column a quantity, or a row a day",
  version: "1.0.0",
  sourceZone: true,
  conflicts: "refuse",
  settings,

  async map(context) {
    const { file, settings } = context;
    const head = await readHead(file, settings);
    const facts = new Map([...fileFacts(file.name, settings.fileName), ...head.facts]);
    const ragged = raggednessOf(settings);
    const table = await openTable(context.lookup, settings.lookup);
    const counts = { missing: 0, dropped: 0 };
    const headerRows = settings.fixed === undefined ? settings.headerRows : 0;
    const header: string[][] = settings.fixed === undefined ? [] : [settings.fixed.map(({ name }) => name)];
    let take: TakeRow | undefined;
    let scope: Scope | undefined;
    let width = 0;
    const begin = () => {
      const columns = header.length === 0 ? numberedColumns(settings.columnCount) : headedColumns(header);
      scope = { columns, facts, table };
      return checkedWidth(bindRows(context, settings, scope, counts), scope, ragged);
    };
    const known = { header: headerRows === 0 ? [] : header, before: [...head.before], facts };
    const { isLeftOut, comments, tableOf } = lineFilters(context, known, () => scope);
    const takeCells = (cells: readonly string[]) => {
      if (header.length < headerRows) {
        header.push([...cells]);
        // A missing column is reported even when no row follows.
        if (header.length === headerRows) take = begin();
        return;
      }
      if (!leaveOut(cells, cells)) takeRow(cells);
    };
    const takeRow = (cells: readonly string[]) => {
      take ??= begin();
      if (scope !== undefined && width === 0)
        checkNamed(context.unit, settings, scope, { before: head.before, row: cells });
      width = cells.length;
      take(cells);
    };
    /** Whether no row is read from these cells; `line` is what the filters test. */
    const leaveOut = (line: readonly string[], cells: readonly string[], row?: number): boolean => {
      if (isLeftOut === undefined) return false;
      take ??= begin();
      const leftOut = isLeftOut(line, tableOf, { cells, row });
      if (leftOut === "skipped") take.follow?.(cells);
      return leftOut !== undefined;
    };
    // A filter tests whole lines. The plan follows the first row, which shows faults of the settings.
    const planOf = () => {
      if (isLeftOut !== undefined) return null;
      const isBound = take?.extra !== undefined || scope?.columns.width !== undefined;
      return scope === undefined || width === 0 || !isBound ? undefined : rowPlan(settings, scope, counts, width);
    };
    const reading = { skipLines: head.lines, onComment: comments.take };
    if (settings.fixed === undefined) await eachCells(context, reading, takeCells, planOf);
    else await eachFixed(context, settings.fixed, reading, { takeRow, leaveOut });
    if (header.length < headerRows)
      throw new FileError(
        header.length === 0 ? "the file is empty: it has no header" : "the file ends inside its header",
      );
    comments.flush();
    if (headerRows === 0) noteHead(context, head.before, tableOf());
    noteCounts(context, counts);
  },
});

/** Comments and rows that are left out: noted, and compared with what came before them. */
function lineFilters(
  context: MapContext<Settings>,
  known: ConstructorParameters<typeof LaterLines>[1] & { readonly before: string[] },
  scopeOf: () => Scope | undefined,
) {
  const { settings } = context;
  const { comment, delimiter } = settings;
  let table: FilteredTable | undefined;
  const tableOf = () => {
    const scope = scopeOf();
    if (scope !== undefined)
      table ??= { later: new LaterLines(settings, known), holdsData: rowTest(context, settings, scope) };
    return table;
  };
  return {
    tableOf,
    isLeftOut: rowFilter(context, settings, delimiter === BLANKS ? " " : delimiter),
    comments: commentLines(context, {
      ...{ comment, before: known.before, tableOf },
      cellsOf: (text) => cellsOf(text, settings),
    }),
  };
}

function raggednessOf({ ragged, extraCells, delimiter, fixed }: Settings): Raggedness {
  return {
    mayBeShort: ragged === "allow",
    mayBeLong: extraCells === "ignore",
    shortHint: delimiter === BLANKS && fixed === undefined ? BLANKS_HINT : undefined,
  };
}

interface Reading {
  readonly skipLines: number;
  readonly onComment: (line: Line, isBehindRow: boolean) => void;
}

/** The rows of the file as cells, from the given line on. */
async function eachCells(
  { file, settings, eachRow }: MapContext<Settings>,
  { skipLines, onComment }: Reading,
  take: (cells: readonly string[]) => void,
  plan: () => RowPlan | null | undefined,
): Promise<void> {
  const { delimiter, quote, encoding, comment, lineEnd } = settings;
  let hasRows = false;
  if (delimiter === BLANKS)
    await eachRow(file.lines({ encoding, lineEnd }), ({ row, text }) => {
      if (row <= skipLines || text.trim() === "") return;
      if (comment !== undefined && text.startsWith(comment)) {
        onComment({ row, text }, hasRows);
        return;
      }
      hasRows = true;
      take(cellsOf(text, settings));
    });
  else
    await eachRow(
      file.csv({
        delimiter,
        quote,
        encoding,
        skipLines,
        lineEnd,
        ...(comment === undefined ? {} : { comment, onComment }),
      }),
      take,
      plan,
    );
}

/** The same for columns at fixed places, whose lines are tested as they are written. */
async function eachFixed(
  { file, settings, eachRow }: MapContext<Settings>,
  columns: NonNullable<Settings["fixed"]>,
  { skipLines, onComment }: Reading,
  {
    takeRow,
    leaveOut,
  }: {
    readonly takeRow: (cells: readonly string[]) => void;
    readonly leaveOut: (line: readonly string[], cells: readonly string[], row: number) => boolean;
  },
): Promise<void> {
  const { encoding, comment, lineEnd } = settings;
  const cellsIn = (row: TextRow) => columns.map(({ name }) => row[name] ?? "");
  const rows = file.fixedWidth({
    ...{ columns, encoding, comment, onComment, skipLines, lineEnd },
    leaveOut: (line, row, at) => leaveOut([line], cellsIn(row), at),
  });
  await eachRow(rows, (row) => takeRow(cellsIn(row)));
}

/** Cells of a line without quoted delimiters. */
function cellsOf(text: string, { delimiter, fixed }: Settings): readonly string[] {
  if (fixed !== undefined) return fixed.map(({ start, width }) => text.slice(start - 1, start - 1 + width).trim());
  return delimiter === BLANKS ? text.trim().split(/[ \t]+/) : text.split(delimiter);
}

/** Without a header, too many lines may be skipped. */
function noteHead({ finding, settings }: MapContext<Settings>, lines: readonly string[], table?: FilteredTable): void {
  for (const [at, text] of lines.entries())
    if (table?.holdsData(cellsOf(text, settings)))
      finding({
        ...{ kind: "skipLines", message: "lines that `skipLines` leaves out look like data", attention: true },
        ...{ where: { row: at + 1 }, text },
      });
}
