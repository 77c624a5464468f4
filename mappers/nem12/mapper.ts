/** Meter data files of the Australian electricity market: NEM12 (interval) and NEM13 (accumulation). */
import { defineMapper, FileError, type Line } from "headgate/mapper";
import { targetMaker } from "../_formats/target.ts";
import { unitConverter } from "../_formats/units.ts";
import { AccumulationReader } from "./accumulation.ts";
import { IntervalReader } from "./intervals.ts";
import { fieldsOf, type Record } from "./record.ts";
import { settings } from "./settings.ts";

const HEADER = "100";
const END = "900";
/** First records of a file without its first line. */
const KINDS: ReadonlySet<string> = new Set(["200", "300", "400", "500", "250", "550", END]);

export default defineMapper({
  name: "nem12",
  summary: "NEM12 and NEM13 meter data files of the Australian market: intervals, registers, quality flags",
  version: "1.0.0",
  conflicts: "refuse",
  settings,

  async map({ file, settings, emit, reject, eachRow, number, time, unit, finding }) {
    const tools = {
      settings,
      emit,
      reject,
      number,
      time,
      targetOf: targetMaker(settings.target, settings.rename),
      converter: unitConverter(settings.units, unit),
    };
    const intervals = new IntervalReader(tools);
    const accumulation = new AccumulationReader(tools);
    let version: string | undefined;
    let ended = 0;
    let lastRow = 0;

    function begin({ row, fields }: Record): void {
      if (version !== undefined && ended === 0)
        throw new FileError(`line ${row}: a second 100 record, before the 900 record that ends the first`, {
          row,
          hint: "Two files were put one after the other, and the first of them is cut off: ask for it again.",
        });
      version = (fields[1] ?? "").trim().toUpperCase();
      if (version !== "NEM12" && version !== "NEM13")
        throw new FileError(`line ${row}: the header names the format "${version}", not NEM12 or NEM13`, {
          row,
          column: "VersionHeader",
          text: fields[1] ?? "",
        });
      ended = 0;
      intervals.begin();
      accumulation.begin();
    }

    function takeRecord(record: Record): void {
      const { kind, row } = record;
      lastRow = row;
      if (kind === HEADER) {
        begin(record);
        return;
      }
      if (ended > 0) throw afterEnd(record, ended);
      if (version === undefined && settings.frame === "required") throw noHeader(record);
      if (kind === END) {
        intervals.finish();
        ended = row;
        return;
      }
      const isInterval = ["200", "300", "400", "500"].includes(kind);
      if (!isInterval && kind !== "250" && kind !== "550") throw unknownKind(record);
      version ??= isInterval ? "NEM12" : "NEM13";
      if (isInterval !== (version === "NEM12"))
        throw new FileError(`line ${row}: a ${kind} record in a ${version} file`, {
          row,
          column: "RecordIndicator",
          text: kind,
          hint: "NEM12 holds the records 200 to 500, NEM13 250 and 550; a file holds one of both.",
        });
      if (isInterval) intervals.take(record);
      else accumulation.take(record);
    }

    await eachRow<Line>(file.lines({ encoding: settings.encoding }), (line) => {
      if (line.text.trim() !== "") takeRecord(fieldsOf(line));
    });
    if (lastRow === 0) throw new FileError("the file is empty: it has not even a 100 record");
    if (ended === 0 && settings.frame === "required")
      throw new FileError(`the file ends at line ${lastRow} without a 900 record`, {
        row: lastRow,
        hint: "Was the file cut off? If the sender never writes 100 and 900 records, set `frame: optional`.",
      });
    intervals.finish();
    const { nullIntervals } = intervals;
    if (nullIntervals > 0)
      finding({
        kind: "missing",
        message: "intervals without data (quality N) were left out",
        count: nullIntervals,
      });
  },
});

function noHeader({ row, kind }: Record): FileError {
  return new FileError(`line ${row}: the file begins with "${kind}", not with a 100 record`, {
    row,
    column: "RecordIndicator",
    text: kind,
    hint: KINDS.has(kind)
      ? "Is the start of the file missing? If the sender never writes 100 and 900 records, set `frame: optional`."
      : "This is no NEM12 or NEM13 file: these begin with the line 100,NEM12,…",
  });
}

function afterEnd({ row, kind }: Record, ended: number): FileError {
  return new FileError(`line ${row}: a "${kind}" record after the 900 record of line ${ended}`, {
    row,
    column: "RecordIndicator",
    text: kind,
  });
}

function unknownKind({ row, kind }: Record): FileError {
  return new FileError(`line ${row}: there is no record "${kind}"`, {
    row,
    column: "RecordIndicator",
    text: kind,
    hint: "NEM12 has the records 100, 200, 300, 400, 500 and 900; NEM13 has 100, 250, 550 and 900.",
  });
}
