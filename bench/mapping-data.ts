/** Files for the bench of mapping, with the same content each time. */
import { closeSync, openSync, writeFileSync, writeSync } from "node:fs";
import exceljs from "exceljs";

/** So that the clocks go back within the first hundred days. */
const START_MS = Date.UTC(2025, 8, 1);
export const ZONE = "Europe/Brussels";
const QUARTER_MS = 900_000;
const SERIES = 100;
const BLOCK = 10_000;

export interface DataShape {
  readonly rows: number;
  /** `repeats`: every tenth row comes again at the end of the file, with another value. */
  readonly repeats?: boolean;
  /** `utc` with designator, `local` as a wall clock shows it. */
  readonly dates?: "utc" | "local";
}

/** A standard data file: quarter hours of 100 series, all series at each date, about 39 bytes a row. */
export function writeStandardCsv(path: string, { rows, repeats = false, dates = "utc" }: DataShape): void {
  const file = openSync(path, "w");
  try {
    writeSync(file, "date,source_serial_number,mapping_config,value\n");
    const first = repeats ? Math.ceil(rows / 1.1) : rows;
    for (let from = 0; from < rows; from += BLOCK) {
      const lines: string[] = [];
      for (let at = from; at < Math.min(rows, from + BLOCK); at += 1)
        lines.push(at < first ? line(at, 0, dates) : line((at - first) * 10, 1, dates));
      writeSync(file, lines.join(""));
    }
  } finally {
    closeSync(file);
  }
}

/** A standard data file as a meter sends it: the quarter hours of one day. */
export function writeMeterDay(path: string, meter: number): void {
  const lines = Array.from({ length: 96 }, (_, at) => {
    const value = (((meter * 96 + at) * 7919) % 900_000) / 1000 + 100;
    return `${dateText(START_MS + at * QUARTER_MS, "utc")},M-${String(meter).padStart(5, "0")},kWh,${value.toFixed(3)}\n`;
  });
  writeFileSync(path, `date,source_serial_number,mapping_config,value\n${lines.join("")}`);
}

function line(reading: number, correction: number, dates: "utc" | "local"): string {
  const series = reading % SERIES;
  const value = ((reading * 7919) % 900_000) / 1000 + 100 + correction;
  return `${dateText(START_MS + Math.floor(reading / SERIES) * QUARTER_MS, dates)},M-${String(series).padStart(3, "0")},kWh,${value.toFixed(3)}\n`;
}

let latestMs = Number.NaN;
let latestText = "";
function dateText(epochMs: number, dates: "utc" | "local"): string {
  if (epochMs === latestMs) return latestText;
  latestMs = epochMs;
  latestText =
    dates === "utc"
      ? `${new Date(epochMs).toISOString().slice(0, 19)}Z`
      : Temporal.Instant.fromEpochMilliseconds(epochMs)
          .toZonedDateTimeISO(ZONE)
          .toPlainDateTime()
          .toString({ smallestUnit: "second" });
  return latestText;
}

/** The same readings as a sheet, dates as cells with a date format, in the manner of spreadsheet programs. */
export async function writeStandardWorkbook(path: string, rows: number): Promise<void> {
  const book = new exceljs.stream.xlsx.WorkbookWriter({ filename: path, useStyles: true });
  const sheet = book.addWorksheet("Readings");
  sheet.addRow(["date", "source_serial_number", "mapping_config", "value"]).commit();
  for (let at = 0; at < rows; at += 1) {
    const cells = line(at, 0, "utc").trim().split(",");
    const [date = "", serial, config, value] = cells;
    const written = sheet.addRow([new Date(date), serial, config, Number(value)]);
    written.getCell(1).numFmt = "yyyy-mm-dd hh:mm:ss";
    written.commit();
  }
  await book.commit();
}
