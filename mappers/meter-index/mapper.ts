/** Meter indexes, one a row, as people read them off meters and metering companies export them. */
import { type CellValue, defineMapper, FileError, type MapperFile, RowError, type Target } from "headgate/mapper";
import { DateKinds, isArchive, textOf } from "../_formats/cells.ts";
import { inColumn } from "../_formats/columns.ts";
import { type Tags, tagKeeper } from "../_formats/tags.ts";
import { type ColumnName, type Columns, findColumns } from "./columns.ts";
import { dateOf } from "./dates.ts";
import { Growth } from "./growth.ts";
import { type Settings, settings } from "./settings.ts";
import { targetReader } from "./targets.ts";

const DELIMITERS = [";", "\t", "|", ","];
/** Words of the column `event`, without marks between them. */
const EVENTS: Readonly<Record<string, string>> = {
  meterchange: "meter-change",
  changemeter: "meter-change",
  meterreset: "reset",
  resetmeter: "reset",
  reset: "reset",
  rollover: "reset",
};

export default defineMapper({
  name: "meter-index",
  summary: "Meter indexes (readings that only grow), one a row, as CSV or workbook",
  version: "1.0.0",
  sourceZone: true,
  conflicts: "refuse",
  settings,

  async map({ file, settings, emit, eachRow, finding, number, time }) {
    const growth = new Growth();
    const keep = tagKeeper();
    const kinds = new DateKinds();
    let columns: Columns | undefined;
    let targetOf: ((cells: readonly CellValue[]) => Target) | undefined;

    function textIn(cells: readonly CellValue[], column: ColumnName): string {
      return columns?.has(column) === true ? textOf(columns.cell(cells, column), columns.name(column)).trim() : "";
    }

    function indexOf(cells: readonly CellValue[], column: string): number {
      const cell = columns?.cell(cells, "index") ?? "";
      if (typeof cell === "object" || typeof cell === "boolean")
        throw new RowError(`${column} is ${typeof cell === "object" ? "a date" : cell}, not a number`, { column });
      const marks = { decimal: settings.decimal };
      const value = typeof cell === "number" ? cell : inColumn(column, cell, (text) => number(text, marks));
      if (value < 0) throw new RowError(`the index ${value} is below zero`, { column, text: String(value) });
      return value;
    }

    function eventOf(cells: readonly CellValue[], column: string): string {
      const text = textIn(cells, "event");
      const event = text === "" ? "" : EVENTS[text.toLowerCase().replace(/[\s_-]+/g, "")];
      if (event !== undefined) return event;
      const hint = "Known are meter-change and reset.";
      throw new RowError(`the event "${text}" is not known`, { column, text, hint });
    }

    function tagsOf(cells: readonly CellValue[], event: string): Tags | undefined {
      const [quality, comment] = [textIn(cells, "quality").toLowerCase(), textIn(cells, "comment")];
      return keep(JSON.stringify([quality, event, comment]), () => ({
        ...(quality === "" ? {} : { quality }),
        ...(event === "" ? {} : { event }),
        ...(comment === "" ? {} : { comment }),
      }));
    }

    function takeRow(cells: readonly CellValue[]): void {
      // Spreadsheets save empty rows as delimiters alone.
      if (cells.every((cell) => cell === null || cell === "")) return;
      if (columns === undefined || targetOf === undefined) {
        columns = findColumns(cells, settings.columns, settings.mappingConfig);
        targetOf = targetReader(columns, settings.mappingConfig);
        return;
      }
      requireWidth(cells, columns.width, isSheet);
      const target = targetOf(cells);
      const date = dateOf(cells, columns, settings, time, target);
      kinds.noteCell(columns.cell(cells, "date"));
      const column = columns.name("index");
      const value = indexOf(cells, column);
      const event = eventOf(cells, columns.name("event"));
      if (settings.falls === "refuse")
        inColumn(column, String(value), () => growth.take(target, date.epochMilliseconds, value, event !== ""));
      emit({ target, date, value, unit: textIn(cells, "unit") || undefined, tags: tagsOf(cells, event), at: cells });
    }

    const isSheet = await isArchive(file);
    if (isSheet) await eachRow(file.xlsx({ sheet: settings.sheet }), takeRow);
    else {
      const { encoding, lineEnd } = settings;
      await eachRow(file.csv({ delimiter: await delimiterOf(file, settings), encoding, lineEnd }), takeRow);
    }
    if (columns !== undefined) kinds.check(columns.name("date"), settings.mixedDates, finding);
    else
      throw new FileError("the file is empty: it has no header", {
        hint: "The first row names the columns: a meter, mapping_config or register, date, index.",
      });
  },
});

/** The delimiter that is most frequent in the header, since names of columns hold none. */
async function delimiterOf(file: MapperFile, { delimiter, encoding }: Settings): Promise<string> {
  if (delimiter !== undefined) return delimiter;
  for await (const lines of file.lines({ encoding }))
    for (const { text } of lines)
      if (text.trim() !== "") {
        const count = (one: string) => text.split(one).length;
        return DELIMITERS.reduce((best, one) => (count(one) > count(best) ? one : best));
      }
  return ",";
}

/** A short row of a text file was cut off; sheets end each row at its last filled cell. */
function requireWidth(cells: readonly CellValue[], width: number, isSheet: boolean): void {
  const extra = cells.slice(width).some((cell) => cell !== "" && cell !== null);
  if (!extra && (isSheet || cells.length >= width)) return;
  throw new RowError(`the row has ${cells.length} cells where the header has ${width}`, {
    hint: extra ? "A cell that holds the delimiter has to be quoted." : "Cells are missing: was the file cut off here?",
  });
}
