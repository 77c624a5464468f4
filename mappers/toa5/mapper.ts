/** TOA5: table data of Campbell Scientific loggers as text. */
import { defineMapper, FileError, type MapperFile, RowError, type Target, type TextCells } from "headgate/mapper";
import { inColumn } from "../_formats/columns.ts";
import { targetMaker } from "../_formats/target.ts";
import { unitConverter } from "../_formats/units.ts";
import { type Field, HEADER_LINES, type Header, readHeader } from "./header.ts";
import { RecordNumbers } from "./records.ts";
import { type Settings, settings } from "./settings.ts";

interface Column extends Field {
  readonly target: Target;
}

export default defineMapper({
  name: "toa5",
  summary: "Campbell Scientific logger tables (TOA5): units and names from the header, NAN left out",
  version: "1.0.0",
  sourceZone: true,
  conflicts: "refuse",
  settings,

  async map({ file, settings, emit, reject, eachRow, number, time, unit, finding }) {
    await refuseBinary(file);
    const targetOf = targetMaker(settings.target, settings.rename);
    const { convert, unitOf } = unitConverter(settings.units, unit);
    const missing = new Set(settings.missing.map((text) => text.toLowerCase()));
    const records = new RecordNumbers(settings.gaps);
    const left = new Set<string>();
    let lines: TextCells[] = [];
    let header: Header | undefined;
    let columns: readonly Column[] = [];
    let missingValues = 0;

    function takeHeaderLine(cells: TextCells): void {
      lines.push(cells);
      if (lines.length < HEADER_LINES) return;
      header = readHeader(lines, 1, settings.spellings);
      columns = chosen(header, settings).map((field) => ({ ...field, target: targetOf(field.identifiers) }));
      refuseShared(columns);
      for (const name of header.times) left.add(name);
      lines = [];
    }

    function takeRow(cells: TextCells, { width, timestamp, record }: Header): void {
      const extra = cells.slice(width).some((cell) => cell !== "");
      if (cells.length < width || extra)
        throw new RowError(`the record has ${cells.length} cells where the header has ${width}`, {
          hint: extra ? "A cell too many: was the table changed?" : "Cells are missing: was the file cut off here?",
        });
      if (record !== undefined) records.take((cells[record] ?? "").trim());
      const date = inColumn("TIMESTAMP", cells[timestamp] ?? "", (text) =>
        time.iso(text, settings.timeZone, settings.dst),
      );
      for (const column of columns) takeValue(cells, column, date);
    }

    /** A fault of one value does not affect the others of its record. */
    function takeValue(cells: TextCells, { at, name, unit, target }: Column, date: Temporal.Instant): void {
      const text = cells[at] ?? "";
      if (missing.has(text.trim().toLowerCase())) {
        missingValues += 1;
        return;
      }
      try {
        const value = convert(number(text), unit);
        emit({ target, date, value, unit: settings.declareUnits && unit !== "" ? unitOf(unit) : undefined });
      } catch (thrown) {
        if (!(thrown instanceof RowError)) throw thrown;
        const hint = "If the field holds texts, name it in `except`; if this text stands for no value, in `missing`.";
        reject(cells, { column: name, message: thrown.message, hint: thrown.hint ?? hint });
      }
    }

    await eachRow(file.csv({ encoding: settings.encoding, lineEnd: settings.lineEnd }), (cells) => {
      // A table that was changed on the logger is appended with header lines of its own.
      if (cells[0] === "TOA5" || lines.length > 0) takeHeaderLine(cells);
      else if (header !== undefined) takeRow(cells, header);
      else throw noHeader(cells);
    });
    if (header === undefined)
      throw new FileError("the file ends before its four header lines are complete", {
        hint: "TOA5 begins with the lines of the environment, the names, the units and the processing.",
      });
    if (missingValues > 0)
      finding({
        kind: "missing",
        message: "values without a number (such as NAN) were left out",
        count: missingValues,
      });
    for (const name of left) finding({ kind: "times", message: `the field "${name}" holds times and was left out` });
    records.note(finding);
  },
});

/** Throws a `FileError` for a field that the settings name and the file lacks. */
function chosen({ fields }: Header, { only, except }: Settings): readonly Field[] {
  const unknown = only?.find((name) => !fields.some((field) => field.name === name));
  if (unknown !== undefined)
    throw new FileError(`the file has no field "${unknown}", which the setting \`only\` names`, {
      hint: `It has ${fields.map(({ name }) => name).join(", ")}.`,
    });
  return fields.filter(({ name }) => (only?.includes(name) ?? true) && !except.includes(name));
}

/** Two fields of one target would overwrite each other in every record. */
function refuseShared(columns: readonly Column[]): void {
  const taken = new Map<string, string>();
  for (const { name, target } of columns) {
    const key = JSON.stringify(target);
    const other = taken.get(key);
    if (other !== undefined)
      throw new FileError(`the fields "${other}" and "${name}" become the same target`, {
        column: `${other} and ${name}`,
        hint: "Distinguish them in the settings `target` (by {field}) and `rename`, or leave one out by `except`.",
      });
    taken.set(key, name);
  }
}

async function refuseBinary(file: MapperFile): Promise<void> {
  for await (const bytes of file.bytes()) {
    const kind = /^"?(TOB\d|TOACI1)"/.exec(new TextDecoder("latin1").decode(bytes.subarray(0, 16)))?.[1];
    if (kind === undefined) return;
    throw new FileError(`the file is ${kind}, another format of Campbell Scientific`, {
      row: 1,
      text: kind,
      hint: "Have it written as TOA5, in LoggerNet's settings or by CardConvert.",
    });
  }
}

function noHeader(cells: TextCells): FileError {
  return new FileError("the file does not begin with a TOA5 header", {
    text: cells.join(",").slice(0, 80),
    row: 1,
    hint: 'TOA5 files begin with the line "TOA5","station","model",…',
  });
}
