/** Columns of the export by their names in Dutch, English and French, with or without brackets. */
import { FileError, type TextCells } from "headgate/mapper";

export const COLUMN_NAMES = [
  "fromDate",
  "fromTime",
  "untilDate",
  "untilTime",
  "ean",
  "meter",
  "register",
  "volume",
  "unit",
  "status",
  "calorific",
] as const;

export type ColumnName = (typeof COLUMN_NAMES)[number];

const NAMES: Readonly<Record<ColumnName, readonly string[]>> = {
  fromDate: ["van datum", "from date", "de date", "du date", "date de debut"],
  fromTime: ["van tijdstip", "from time", "de heure", "du heure", "heure de debut"],
  untilDate: ["tot datum", "until date", "to date", "a date", "au date", "date de fin"],
  untilTime: ["tot tijdstip", "until time", "to time", "a heure", "au heure", "heure de fin"],
  ean: ["ean-code", "ean", "ean code", "code ean", "code-ean"],
  meter: ["meter", "compteur"],
  register: ["register", "registre"],
  volume: ["volume"],
  unit: ["eenheid", "unit", "unite"],
  status: ["validatiestatus", "validation status", "statut de validation"],
  calorific: ["calorische bovenwaarde", "caloric upper value", "pouvoir calorifique superieur"],
};

const REQUIRED: readonly ColumnName[] = ["fromDate", "ean", "register", "volume", "unit"];

export interface Columns {
  readonly width: number;
  /** The name in the file, for errors. */
  name(column: ColumnName): string;
  has(column: ColumnName): boolean;
  /** Trimmed; empty where there is no such column. */
  text(cells: TextCells, column: ColumnName): string;
}

/** Without accents, brackets and case. */
export function plain(text: string): string {
  return text
    .normalize("NFD")
    .replace(/[\p{Mn}()"]/gu, "")
    .replace(/\s+/g, " ")
    .trim()
    .toLowerCase();
}

/** Throws a `FileError` that names the missing columns. */
export function findColumns(header: TextCells, own: Readonly<Partial<Record<ColumnName, string>>>): Columns {
  const names = header.map(plain);
  const places = new Map<ColumnName, number>();
  for (const column of COLUMN_NAMES) {
    const wanted = own[column] === undefined ? NAMES[column] : [plain(own[column])];
    const at = names.findIndex((name) => wanted.includes(name));
    if (at !== -1) places.set(column, at);
  }
  const missing = REQUIRED.filter((column) => !places.has(column)).map((column) => own[column] ?? NAMES[column][0]);
  if (missing.length > 0)
    throw new FileError(`the header lacks the columns ${missing.join(", ")}, so it is no known export of Fluvius`, {
      row: 1,
      text: header.join(";"),
      hint: "Known are Dutch, English and French names, with semicolons between them; `columns` names others.",
    });
  return {
    width: header.length,
    name: (column) => header[places.get(column) ?? -1]?.trim() ?? NAMES[column][0] ?? column,
    has: (column) => places.has(column),
    text: (cells, column) => (cells[places.get(column) ?? -1] ?? "").trim(),
  };
}
