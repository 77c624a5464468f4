/** The four header lines of TOA5: environment, names, units, processing. */
import { FileError, type TextCells } from "headgate/mapper";
import type { Identifiers } from "../_formats/target.ts";
import { symbolOf } from "./spellings.ts";

export const HEADER_LINES = 4;

export interface Field {
  readonly at: number;
  readonly name: string;
  /** Symbol, or the text in the file. */
  readonly unit: string;
  readonly identifiers: Identifiers;
}

export interface Header {
  readonly width: number;
  readonly timestamp: number;
  /** Undefined when the file was written without record numbers. */
  readonly record: number | undefined;
  readonly fields: readonly Field[];
  /** Fields that hold times of extremes, not numbers. */
  readonly times: readonly string[];
}

/** Processing whose results are timestamps: times of maxima and minima. */
const TIMES: ReadonlySet<string> = new Set(["tmx", "tmn"]);

/** Throws a `FileError`. `row` is the line of the environment. */
export function readHeader(
  lines: readonly TextCells[],
  row: number,
  spellings: Readonly<Record<string, string>>,
): Header {
  const [environment = [], names = [], units = [], processing = []] = lines;
  const [, station = "", model = "", serial = "", , program = "", , table = ""] = environment;
  const timestamp = names.indexOf("TIMESTAMP");
  if (timestamp === -1)
    throw new FileError("the file has no TIMESTAMP column, so its values have no dates", {
      row: row + 1,
      text: names.join(","),
      hint: "Have LoggerNet write the file with timestamps.",
    });
  const twice = names.find((name, at) => names.indexOf(name) !== at);
  if (twice !== undefined)
    throw new FileError(`the header names the field "${twice}" twice`, { row: row + 1, column: twice });
  if (units.length < names.length || processing.length < names.length)
    throw new FileError(
      `the header has ${names.length} names, ${units.length} units and ${processing.length} kinds of processing`,
      { row: row + 1, hint: "TOA5 has four header lines of equal length; is one of them missing?" },
    );
  const record = names.indexOf("RECORD");
  const fields: Field[] = [];
  const times: string[] = [];
  names.forEach((name, at) => {
    if (at === timestamp || at === record) return;
    const process = (processing[at] ?? "").trim();
    if (TIMES.has(process.toLowerCase())) {
      times.push(name);
      return;
    }
    const unit = symbolOf(units[at] ?? "", spellings);
    fields.push({
      at,
      name,
      unit,
      identifiers: { serial, station, model, program, table, field: name, processing: process, unit },
    });
  });
  return { width: names.length, timestamp, record: record === -1 ? undefined : record, fields, times };
}
