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

/** A standard data file with the same readings, one series after the other, dates without designator in UTC. */
export function writeSeriesCsv(path: string, rows: number): void {
  const file = openSync(path, "w");
  try {
    writeSync(file, "source_serial_number,mapping_config,date,value\n");
    const steps = Math.floor(rows / SERIES);
    for (let series = 0; series < SERIES; series += 1) {
      const start = `M-${String(series).padStart(3, "0")},kWh,`;
      const lines = Array.from(
        { length: steps },
        (_, step) => `${start}${secondText(START_MS + step * QUARTER_MS)},${valueText(step * SERIES + series)}\n`,
      );
      writeSync(file, lines.join(""));
    }
  } finally {
    closeSync(file);
  }
}

/** A column for each series and a row for each quarter of an hour; dates without designator in UTC. */
export function writeWideCsv(path: string, rows: number, series: number): void {
  const file = openSync(path, "w");
  try {
    const names = Array.from({ length: series }, (_, at) => `M-${String(at).padStart(4, "0")}`);
    writeSync(file, `date,${names.join(",")}\n`);
    for (let step = 0; step < rows; step += 1) {
      const values = names.map((_, at) => valueText(step * series + at));
      writeSync(file, `${secondText(START_MS + step * QUARTER_MS)},${values.join(",")}\n`);
    }
  } finally {
    closeSync(file);
  }
}

/** A row a day of each meter, with a half hour a column and its status, as British exports have them; days of UTC. */
export function writeHalfHours(path: string, readings: number): void {
  const names = Array.from({ length: 48 }, (_, at) => `HH${at + 1},HH${at + 1} Flag`);
  const rows = Math.ceil(readings / 48);
  const lines = Array.from({ length: rows }, (_, row) => {
    const day = secondText(START_MS + (row % 365) * 86_400_000).slice(0, 10);
    const values = names.map((_, at) => `${valueText(row * 48 + at)},${(row + at) % 97 === 0 ? "E" : "A"}`);
    return `M-${String(Math.floor(row / 365)).padStart(3, "0")},${day},${values.join(",")}\n`;
  });
  writeFileSync(path, `MPAN,Date,${names.join(",")}\n${lines.join("")}`);
}

/** A standard data file with one reading a day of each series. */
export function writeDailyCsv(path: string, rows: number): void {
  const days = Math.ceil(rows / 1000);
  const lines = Array.from({ length: rows }, (_, at) => {
    const date = secondText(START_MS + (at % days) * 86_400_000);
    return `${date}Z,M-${String(Math.floor(at / days)).padStart(3, "0")},kWh,${valueText(at)}\n`;
  });
  writeFileSync(path, `date,source_serial_number,mapping_config,value\n${lines.join("")}`);
}

function secondText(epochMs: number): string {
  return new Date(epochMs).toISOString().slice(0, 19);
}

function valueText(reading: number, more = 0): string {
  return (((reading * 7919) % 900_000) / 1000 + 100 + more).toFixed(3);
}

/** A standard data file as a meter sends it: the quarter hours of one day. */
export function writeMeterDay(path: string, meter: number): void {
  const name = `M-${String(meter).padStart(5, "0")}`;
  const lines = Array.from(
    { length: 96 },
    (_, at) => `${dateText(START_MS + at * QUARTER_MS, "utc")},${name},kWh,${valueText(meter * 96 + at)}\n`,
  );
  writeFileSync(path, `date,source_serial_number,mapping_config,value\n${lines.join("")}`);
}

function line(reading: number, correction: number, dates: "utc" | "local"): string {
  const series = reading % SERIES;
  const date = dateText(START_MS + Math.floor(reading / SERIES) * QUARTER_MS, dates);
  return `${date},M-${String(series).padStart(3, "0")},kWh,${valueText(reading, correction)}\n`;
}

let latestMs = Number.NaN;
let latestText = "";
function dateText(epochMs: number, dates: "utc" | "local"): string {
  if (epochMs === latestMs) return latestText;
  latestMs = epochMs;
  latestText =
    dates === "utc"
      ? `${secondText(epochMs)}Z`
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
