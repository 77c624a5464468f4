/** The rows that a mapper or a reader refused: the first ones in full, all of them counted. */
import type { Place, RejectedRow } from "../model.ts";
import type { RowPlace, Where } from "./mapper.ts";
import { placeOf, type RowTracker } from "./place.ts";
import { isRowError, type RowError } from "./row-error.ts";

/** Refused rows that are kept in full. */
export const REJECTED_ROWS_MAX = 100;
const TEXT_CHARACTERS_MAX = 120;

export interface RowFault {
  readonly message: string;
  readonly column?: string | undefined;
  readonly text?: string | undefined;
  readonly hint?: string | undefined;
}

export class Rejections {
  readonly rows: RejectedRow[] = [];
  count = 0;

  add(place: Place, fault: RowFault): void {
    this.count += 1;
    if (this.rows.length >= REJECTED_ROWS_MAX) return;
    this.rows.push({
      code: "HG-MAP-005",
      message: fault.message,
      hint: fault.hint,
      place: {
        ...place,
        column: fault.column ?? place.column,
        text: shorten(fault.text ?? place.text),
      },
    });
  }
}

export function shorten(text: string | undefined): string | undefined {
  return text !== undefined && text.length > TEXT_CHARACTERS_MAX
    ? `${text.slice(0, TEXT_CHARACTERS_MAX)}…`
    : text;
}

/** The place that a mapper names: a row of a reader, or a place in words; without either, the row that the loop is at. */
export function placeAt(where: Where | undefined, tracker: RowTracker): Place {
  if (typeof where === "object" && where !== null) {
    const stamped: RowPlace | undefined = placeOf(where);
    if (stamped !== undefined) return stamped;
    const { row, sheet, column, text } = where as Partial<Record<keyof Place, unknown>>;
    if (typeof row === "number")
      return {
        row,
        sheet: typeof sheet === "string" ? sheet : undefined,
        column: typeof column === "string" ? column : undefined,
        text: typeof text === "string" ? text : undefined,
      };
  }
  return tracker.row === 0 ? {} : { row: tracker.row, sheet: tracker.sheet };
}

/** What a `RowError` says, with the column found by its text when the mapper did not name it. */
export function rowFault(thrown: RowError, row: object | undefined): RowFault {
  const { message, text, hint } = thrown;
  return {
    message,
    text,
    hint,
    column: thrown.column ?? (row === undefined ? undefined : columnOf(row, text)),
  };
}

export { isRowError };

/** The only column of the row that holds this text. */
function columnOf(row: object, text: string | undefined): string | undefined {
  if (text === undefined) return undefined;
  const holding = Object.entries(row).filter(([, cell]) => cell === text || wallText(cell) === text);
  const [only] = holding;
  if (only === undefined || holding.length > 1) return undefined;
  return Array.isArray(row) ? `column ${Number(only[0]) + 1}` : only[0];
}

function wallText(cell: unknown): unknown {
  return typeof cell === "object" && cell !== null && "local" in cell ? cell.local : undefined;
}
