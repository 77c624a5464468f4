/** A place in a file, in words. */
import { TEXTS } from "./texts.ts";

export interface Spot {
  readonly sheet?: string | null | undefined;
  readonly row?: number | null | undefined;
  readonly column?: string | null | undefined;
  readonly text?: string | null | undefined;
}

/** `Sheet1, row 12, column Value: “abc”`; "" for none. */
export function placeWords(place: Spot | null | undefined): string {
  if (place === null || place === undefined) return "";
  const { sheet, row, column, text } = place;
  const parts = [
    ...(sheet === undefined || sheet === null ? [] : [TEXTS.place.sheet(sheet)]),
    ...(row === undefined || row === null ? [] : [TEXTS.place.row(row)]),
    ...(column === undefined || column === null ? [] : [TEXTS.place.column(column)]),
  ];
  const where = parts.join(", ");
  if (text === undefined || text === null || text === "") return where;
  return `${where}${where === "" ? "" : ": "}“${text}”`;
}
