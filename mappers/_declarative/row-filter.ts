/** Filters rows without data: legends, totals, and everything after the data. What is left out is noted. */
import { type Line, type MapContext, z } from "headgate/mapper";
import type { LaterLines } from "./facts.ts";
import { attempt } from "./faults.ts";
import { pattern } from "./settings-text.ts";
import type { Cells } from "./template.ts";
import type { Tools } from "./values.ts";

export const filterShape = {
  skipRows: z
    .array(pattern)
    .optional()
    .describe("Regular expressions; rows that fit one of them as a line are left out, and counted."),
  endAt: pattern
    .optional()
    .describe(
      "Regular expression; from the first row on that fits it as a line, nothing is read. The rows are counted.",
    ),
};

interface Filters {
  readonly skipRows?: readonly string[] | undefined;
  readonly endAt?: string | undefined;
}

/** Why a row is left out: it fits `skipRows`, or comes after the data. */
export type LeftOut = "skipped" | "ended" | undefined;

/** A table, as far as it is known when a line is left out. */
export interface FilteredTable {
  readonly later: LaterLines;
  readonly holdsData: (cells: Cells) => boolean;
}

/** Whether a row is left out; undefined when the settings filter no rows. Throws a `FileError` as `LaterLines` does. */
export type RowFilter = (line: Cells, tableOf: () => FilteredTable | undefined, row?: FilteredRow) => LeftOut;

/** The row itself, where the filters test a line as it is written. */
interface FilteredRow {
  readonly cells: Cells;
  readonly row?: number | undefined;
}

export function rowFilter(
  { finding }: Pick<MapContext<unknown>, "finding">,
  { skipRows, endAt }: Filters,
  delimiter: string,
): RowFilter | undefined {
  if (skipRows === undefined && endAt === undefined) return undefined;
  const skipped = (skipRows ?? []).map((one) => new RegExp(one, "u"));
  const end = endAt === undefined ? undefined : new RegExp(endAt, "u");
  let ended = false;
  const note = (kind: string, message: string, where: object, text: string, attention = false) =>
    finding({ kind, message, where, text, ...(attention ? { attention } : {}) });
  return (tested, tableOf, { cells, row } = { cells: tested }) => {
    const line = lineOf(tested, delimiter);
    const where = row === undefined ? cells : { row };
    if (ended && isBlank(cells)) return "ended";
    ended ||= end?.test(line) === true;
    if (ended) {
      note("endAt", "rows were left out from the first one on that fits `endAt`", where, line);
      if (tableOf()?.holdsData(cells) === true)
        note("endAt", "rows behind `endAt` look like data, and were left out", where, line, true);
      return "ended";
    }
    if (!skipped.some((one) => one.test(line))) return undefined;
    tableOf()?.later.check(line, cells.map(wordOf), "skipRows", row);
    note("skipRows", "rows were left out by `skipRows`", where, line);
    return "skipped";
  };
}

/** A test of rows: whether their date and a value can be read. `bind` binds the settings as for rows that count. */
export function dataTest<Given extends Tools>(
  tools: Given,
  bind: (tools: Given) => (cells: Cells) => void,
): (cells: Cells) => boolean {
  let found = 0;
  const emit = () => {
    found += 1;
  };
  const take = bind({ ...tools, emit, reject: () => undefined });
  return (cells) => {
    found = 0;
    void attempt(() => take(cells));
    return found > 0;
  };
}

interface Comments {
  readonly comment: string | undefined;
  /** Receives the comments before the first row. */
  readonly before: string[];
  /** Undefined until the header is known. */
  readonly tableOf: () => FilteredTable | undefined;
  readonly cellsOf: (text: string) => readonly string[];
}

/** Takes the comments of a file: those behind a row are counted, and checked as soon as the header is known. */
export function commentLines(
  { finding }: Pick<MapContext<unknown>, "finding">,
  { comment = "", before, tableOf, cellsOf }: Comments,
) {
  const waiting: Line[] = [];
  const flush = () => {
    const table = tableOf();
    if (table === undefined) return;
    for (const { row, text } of waiting) {
      table.later.check(text, cellsOf(text.slice(comment.length)), "comment", row);
      finding({ kind: "comment", message: `lines that begin with \`${comment}\` were left out`, where: { row }, text });
    }
    waiting.length = 0;
  };
  const take = (line: Line, isBehindRow: boolean) => {
    if (!isBehindRow) before.push(line.text);
    else if (waiting.push(line) > 0) flush();
  };
  return { take, flush };
}

/** A row as a line of text. */
export function lineOf(cells: Cells, delimiter: string): string {
  return cells.map(wordOf).join(delimiter);
}

function wordOf(cell: Cells[number]): string {
  return typeof cell === "object" ? (cell?.local ?? "") : String(cell);
}

function isBlank(cells: Cells): boolean {
  return cells.every((cell) => wordOf(cell).trim() === "");
}
