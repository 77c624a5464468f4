/**
 * Guesses the meaning of the columns of a sample. A person checks the guess; it is never used when real files are
 * mapped.
 */

import { findUnit } from "#wire/units.ts";
import { readIso } from "../../iso-text.ts";
import { readNumber } from "../../number.ts";
import { formatReader } from "../../time-format.ts";
import type { SampleTable } from "./sample.ts";

export interface ValueColumn {
  readonly name: string;
  readonly decimal: "." | ",";
  /** Symbol of a known unit in the name, such as `kWh` of `Energy [kWh]`. */
  readonly unit: string | undefined;
}

export interface SketchedColumns {
  /** Columns that together make the date, with their format; `iso` for ISO 8601. */
  readonly date: {
    readonly names: readonly string[];
    readonly format: string;
    readonly hasDesignator: boolean;
    /** Another format that fits as well, with other dates: the sample does not decide between them. */
    readonly other?: string;
  } | null;
  /** Columns of numbers that change from row to row. */
  readonly values: readonly ValueColumn[];
  /** The column that names the meter or logger. */
  readonly source: string | null;
  /** The column that names the register or quantity, in a long layout. */
  readonly quantity: string | null;
  /** Texts in value columns that are not numbers. */
  readonly missing: readonly string[];
}

const DAYS = [
  "yyyy-MM-dd",
  "dd/MM/yyyy",
  "dd.MM.yyyy",
  "dd-MM-yyyy",
  "MM/dd/yyyy",
  "MM-dd-yyyy",
  "yyyy/MM/dd",
  "d/M/yyyy",
  "d.M.yyyy",
  "M/d/yyyy",
  "dd.MM.yy",
  "dd/MM/yy",
  "MM/dd/yy",
  "yyyyMMdd",
];
const TIMES = ["HH:mm:ss", "HH:mm", "H:mm:ss", "H:mm", "HH:mm:ss.SSS", "h:mm:ss a", "h:mm a", "HHmm", "HHmmss"];
const STAMPS = DAYS.flatMap((day) =>
  [" ", "'T'", ", "].flatMap((joint) => TIMES.map((time) => `${day}${joint}${time}`)),
);
/** Share of a column's texts that have to fit; the rest may be rows at the end, or faults. */
const SHARE = 0.9;
const SOURCE_NAME = /serial|meter|ean\b|mpan|nmi|prm|pod|device|logger|site|source|station|z[äa]hler|compteur|punkt/i;
const QUANTITY_NAME = /register|quantity|channel|tag|type|obis|param|measure|grandeur|kanal|variable|mapping/i;
const VALUE_NAME = /value|reading|valeur|wert|waarde|valore|consumption|volume|energy/i;

export function sketchColumns(table: SampleTable): SketchedColumns {
  const columns = table.columns.map((name, at) => ({
    name,
    texts: table.rows.map((row) => (row[at] ?? "").trim()),
  }));
  const date = dateOf(columns);
  const others = columns.filter(
    ({ name, texts }) => !(date?.names.includes(name) ?? false) && texts.some((text) => text !== ""),
  );
  const numeric = others.filter((column) => decimalOf(column.texts) !== null);
  const labels = others.filter((column) => !numeric.includes(column));
  const named = (pattern: RegExp, among: typeof others) => among.find(({ name }) => pattern.test(name))?.name ?? null;
  const source = named(SOURCE_NAME, labels) ?? named(SOURCE_NAME, numeric.filter(isIdentifier)) ?? null;
  const measured = numeric.filter(({ name }) => name !== source);
  const quantity = named(
    QUANTITY_NAME,
    labels.filter(({ name }) => name !== source),
  );
  const chosen =
    quantity === null ? measured : measured.filter(({ name }, at) => VALUE_NAME.test(name) || at === 0).slice(0, 1);
  const values = chosen.map(({ name, texts }) => ({
    name,
    decimal: decimalOf(texts) ?? ".",
    unit: unitOf(name),
  }));
  const missing = chosen.flatMap(({ texts }) => texts.filter((text) => !isNumber(text, decimalOf(texts) ?? ".")));
  return { date, values, source, quantity, missing: [...new Set(missing)] };
}

type Column = { readonly name: string; readonly texts: readonly string[] };

function dateOf(columns: readonly Column[]): SketchedColumns["date"] {
  for (const { name, texts } of columns) {
    const filled = texts.filter((text) => text !== "");
    if (filled.length === 0) continue;
    if (mostly(filled, (text) => text.length >= 16 && readIso(text)))
      return {
        names: [name],
        format: "iso",
        hasDesignator: filled.every((text) => /(?:Z|[+-]\d{2}:?\d{2})$/.test(text)),
      };
    const found = formatOf(filled, STAMPS);
    if (found !== undefined) return { names: [name], ...found, hasDesignator: false };
  }
  for (const { name, texts } of columns) {
    const filled = texts.filter((text) => text !== "");
    const found = filled.length === 0 ? undefined : formatOf(filled, DAYS);
    if (found === undefined) continue;
    const { format: day, other: otherDay } = found;
    for (const other of columns) {
      // A time alone is not a date: a day in front completes it.
      const stamps = other.texts.filter((text) => text !== "").map((text) => `2024-01-01 ${text}`);
      const time =
        other.name === name || stamps.length === 0
          ? undefined
          : TIMES.find((candidate) => fits(stamps, `yyyy-MM-dd ${candidate}`));
      if (time !== undefined)
        return {
          ...{ names: [name, other.name], format: `${day} ${time}`, hasDesignator: false },
          ...(otherDay === undefined ? {} : { other: `${otherDay} ${time}` }),
        };
    }
    return { names: [name], ...found, hasDesignator: false };
  }
  return null;
}

/** The format that most of the texts fit, and another one that as many fit with other dates. */
function formatOf(
  texts: readonly string[],
  candidates: readonly string[],
): { readonly format: string; readonly other?: string } | undefined {
  const fitting = candidates
    .filter((candidate) => fits(texts, candidate))
    .map((format) => ({ format, walls: texts.map(formatReader(format)) }))
    .map((one) => ({ ...one, count: one.walls.filter((wall) => !Number.isNaN(wall)).length }));
  const most = Math.max(...fitting.map(({ count }) => count));
  const [best, ...others] = fitting.filter(({ count }) => count === most);
  if (best === undefined) return undefined;
  const other = others.find(({ walls }) => walls.some((wall, at) => wall !== best.walls[at] && !Number.isNaN(wall)));
  return { format: best.format, ...(other === undefined ? {} : { other: other.format }) };
}

function fits(texts: readonly string[], format: string): boolean {
  const read = formatReader(format);
  return mostly(texts, (text) => !Number.isNaN(read(text)));
}

function mostly(texts: readonly string[], test: (text: string) => boolean): boolean {
  return texts.filter(test).length >= texts.length * SHARE;
}

/** The mark by which most of the texts are numbers; null when they are not numbers. */
function decimalOf(texts: readonly string[]): "." | "," | null {
  const filled = texts.filter((text) => /\d/.test(text));
  if (filled.length === 0 || filled.length < texts.length * 0.2) return null;
  for (const decimal of [".", ","] as const) if (mostly(filled, (text) => isNumber(text, decimal))) return decimal;
  return null;
}

function isNumber(text: string, decimal: "." | ","): boolean {
  try {
    readNumber(text, { decimal });
    return true;
  } catch {
    // The text is not a number with these marks.
    return false;
  }
}

/** Long whole numbers that vary in few rows are not measurements. */
function isIdentifier({ texts }: Column): boolean {
  return texts.every((text) => /^\d{4,}$/.test(text)) && new Set(texts).size <= Math.max(1, texts.length / 3);
}

function unitOf(name: string): string | undefined {
  const inBrackets = /[[(]\s*([^\])]+?)\s*[\])]/.exec(name)?.[1];
  const last = name.split(/[\s_]+/).at(-1);
  return [inBrackets, last]
    .flatMap((text) => (text === undefined ? [] : [findUnit(text)?.symbol]))
    .find((symbol) => symbol !== undefined);
}
