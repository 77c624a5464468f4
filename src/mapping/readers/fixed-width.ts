/** Reads lines whose columns are at fixed positions. */

import type { FixedColumn, FixedWidthOptions } from "./contract.ts";
import type { Input } from "./decode.ts";
import { rowClass } from "./header.ts";
import { lineChunks } from "./lines.ts";
import type { RefuseRow, RowFault } from "./refuse.ts";
import { stampPlace } from "./row-place.ts";

/** Characters of a line that a refusal shows. */
const TEXT_SHOWN = 60;

export async function* fixedWidthRows(
  input: Input,
  options: FixedWidthOptions,
  { refuse, onShort }: { readonly refuse: RefuseRow; readonly onShort: (row: number) => void },
): AsyncGenerator<Record<string, string>[]> {
  const { columns, comment, onComment, skipLines = 0, leaveOut } = options;
  const width = Math.max(...columns.map((column) => column.start - 1 + column.width));
  let hasRows = false;
  checkColumns(columns);
  const Row = rowClass<string>({ names: columns.map(({ name }) => name), owner: "the list of the mapper's columns" });
  for await (const lines of lineChunks(input, options)) {
    const rows: Record<string, string>[] = [];
    for (const { row, text, isOpen } of lines) {
      if (row <= skipLines || text.trim() === "") continue;
      if (comment !== undefined && text.startsWith(comment)) {
        onComment?.({ row, text }, hasRows);
        continue;
      }
      hasRows = true;
      const cells = cutLine(text, columns, new Row());
      stampPlace(cells, row);
      if (leaveOut?.(text, cells, row) === true) continue;
      if (text.length >= width) rows.push(cells);
      else if (isOpen === true) refuse(cells, cutFault(text, width));
      else {
        onShort(row);
        rows.push(cells);
      }
    }
    if (rows.length > 0) yield rows;
  }
}

function cutLine(text: string, columns: readonly FixedColumn[], cells: Record<string, string>): Record<string, string> {
  // Positions count characters; only a character beyond the basic plane is two units of a string.
  const characters = /[\ud800-\udfff]/.test(text) ? [...text] : undefined;
  for (const { name, start, width, trim } of columns) {
    const end = start - 1 + width;
    const cell = characters?.slice(start - 1, end).join("") ?? text.slice(start - 1, end);
    cells[name] = trim === false ? cell : cell.trim();
  }
  return cells;
}

function cutFault(text: string, width: number): RowFault {
  return {
    message: `the last line ends at character ${text.length}, before its columns do at ${width}, and has no line end`,
    text: text.slice(-TEXT_SHOWN),
    hint: "Was the file cut off here, or written in part? A line that is no row is named by `endAt` or `skipRows`.",
  };
}

/** Throws for wrong columns, which are a fault of the mapper, not of the file. */
function checkColumns(columns: readonly FixedColumn[]): void {
  const names = new Set<string>();
  for (const { name, start, width } of columns) {
    if (!(Number.isInteger(start) && start >= 1 && Number.isInteger(width) && width >= 1))
      throw new TypeError(
        `fixedWidth: the column ${name} needs a start and a width in characters from 1, not ${start} and ${width}`,
      );
    if (names.has(name)) throw new TypeError(`fixedWidth: two columns are named ${name}`);
    names.add(name);
  }
  if (columns.length === 0) throw new TypeError("fixedWidth: no columns are named");
}
