/**
 * Records: lines of comma-separated fields, in which text fields may be quoted although the specification needs no
 * quotes.
 */
import { type Line, RowError } from "headgate/mapper";
import type { Identifiers } from "../_formats/target.ts";

export interface Record {
  /** RecordIndicator: 100 to 900. */
  readonly kind: string;
  readonly row: number;
  /** Fields, with the RecordIndicator as the first. */
  readonly fields: readonly string[];
  /** The value for `at` of a reading. */
  readonly line: Line;
}

export function fieldsOf(line: Line): Record {
  const fields = line.text.includes('"') ? quotedFields(line.text) : line.text.split(",");
  return { kind: (fields[0] ?? "").trim(), row: line.row, fields, line };
}

/** Commas between quotes belong to the field. Throws a `RowError` for a quote that stays open. */
function quotedFields(text: string): string[] {
  const fields: string[] = [];
  let open: string[] = [];
  let quotes = 0;
  for (const part of text.split(",")) {
    open.push(part);
    quotes += part.split('"').length - 1;
    if (quotes % 2 === 1) continue;
    const whole = open.join(",").trim();
    fields.push(/^".*"$/.test(whole) ? whole.slice(1, -1).replaceAll('""', '"') : whole);
    open = [];
    quotes = 0;
  }
  if (open.length > 0) throw new RowError("a quote in the record is not closed", { text: open.join(",") });
  return fields;
}

/** A field by its name in the specification. */
export function field({ fields }: Record, at: number): string {
  return (fields[at] ?? "").trim();
}

/** QualityMethod: a flag and, unless the data are actual or absent, a method of two digits. */
export interface Quality {
  readonly flag: string;
  readonly method: string;
}

const QUALITY = /^([ASEFNV])(\d\d)?$/i;

/** Throws a `RowError` for a text that is not a quality; `allowed` are the flags that the record may have. */
export function qualityOf(record: Record, at: number, column: string, allowed: string): Quality {
  const text = field(record, at);
  const match = QUALITY.exec(text);
  const flag = match?.[1]?.toUpperCase() ?? "";
  if (match === null || !allowed.includes(flag))
    throw new RowError(text === "" ? `${column} is empty` : `${column} "${text}" is not known`, {
      column,
      text,
      hint: `It takes one of the flags ${[...allowed].join(", ")}, with a method of two digits after E, F and S.`,
    });
  return { flag, method: match[2] ?? "" };
}

const UNITS = [..."MWh kWh Wh MVArh kVArh VArh MVAr kVAr VAr MW kW W MVAh kVAh VAh MVA kVA VA kV V kA A pf".split(" ")];
const UNIT_BY_NAME = new Map(UNITS.map((unit) => [unit.toLowerCase(), unit]));

/** UOM in the spelling of the specification, whatever the case in the file. Throws a `RowError`. */
export function unitOf(record: Record, at: number): string {
  const text = field(record, at);
  const unit = UNIT_BY_NAME.get(text.toLowerCase());
  if (unit !== undefined) return unit;
  throw new RowError(text === "" ? "UOM is empty" : `the unit "${text}" is not known`, {
    column: "UOM",
    text,
    hint: `The specification has ${UNITS.join(", ")}.`,
  });
}

/** Parts of targets: fields 2 to 7 of 200 and 250 records. Throws a `RowError` for an invalid NMI. */
export function identifiersOf(record: Record): Identifiers {
  const nmi = field(record, 1);
  if (!/^[A-Z0-9]{10,11}$/i.test(nmi))
    throw new RowError(nmi === "" ? "NMI is empty" : `"${nmi}" is no NMI: it has 10 letters and digits`, {
      column: "NMI",
      text: nmi,
    });
  return {
    nmi,
    configuration: field(record, 2),
    register: field(record, 3),
    suffix: field(record, 4),
    stream: field(record, 5),
    meter: field(record, 6),
  };
}
