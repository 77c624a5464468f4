/** The standard data file, CSV or workbook (specification, *Data versioning*, rule 7). */
import {
  type CellValue,
  defineMapper,
  FileError,
  type MapperFile,
  type Reading,
  RowError,
  type RowPlan,
  z,
} from "headgate/mapper";
import { isArchive, lineEnd, textOf } from "../_formats/cells.ts";
import { joined } from "../_formats/patterns.ts";
import { type Columns, columnsBeside, findColumns, parseTags, targetReader } from "./columns.ts";

const settings = z.strictObject({
  timeZone: z
    .string()
    .min(1)
    .optional()
    .describe("Zone of dates that have no designator, such as Europe/Brussels. No default."),
  dst: z
    .enum(["reject", "earlier", "later", "byOrder"])
    .default("reject")
    .describe("What a date without designator means that occurs twice or not at all because of daylight saving."),
  delimiter: z.string().min(1).default(",").describe("Delimiter of a CSV file."),
  decimal: z.enum([".", ","]).default(".").describe("Decimal mark of values."),
  encoding: z.string().min(1).default("utf-8").describe("Encoding of a CSV file without a byte order mark."),
  lineEnd,
  sheet: z
    .union([z.string(), z.int().min(1)])
    .default(1)
    .describe("Name or number of the sheet of a workbook."),
});

/**
 * Passed on unchanged: `emit` reads it faster. A text that may be invalid is parsed here, so that its fault is reported
 * with its column.
 */
const INSTANT = joined(
  /^\d{4}-(?:(?:0[1-9]|1[0-2])-(?:0[1-9]|1\d|2[0-8])|(?:0[13-9]|1[0-2])-(?:29|30)|(?:0[13578]|1[02])-31)/,
  /[T ](?:[01]\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:\.\d{1,3})?)?/,
  /(?:Z|[+-](?:0\d|1[0-7]):[0-5]\d)$/,
);
const DESIGNATOR = /(?:[Zz]|[+-]\d\d(?::?\d\d)?)\s*$/;
const DST_HINT =
  "Set `dst` in the trigger's metadata: `byOrder` where the rows follow each other in time. By `later` and `earlier` " +
  "both rows of a repeated time get the same hour, and one replaces the other. A logger that never changes its clock " +
  "needs a `timeZone` without daylight saving instead.";
const TIME_OF_DAY = /[Tt ]\d\d:\d\d/;

export default defineMapper({
  name: "standard",
  summary: "The standard data file: date, value and identifier columns, as CSV or workbook",
  version: "1.0.0",
  sourceZone: true,
  settings,

  async map({ file, settings, emit, eachRow, time, number }) {
    const { timeZone, decimal, dst } = settings;
    const isSheet = /\.xls[xm]$/i.test(file.name) || (await isArchive(file));
    const marks = { decimal };
    let columns: Columns | undefined;
    let targetOf: ReturnType<typeof targetReader> | undefined;

    function dateOf(cell: CellValue | undefined, column: string, series: string): Reading["date"] {
      if (cell === null || cell === undefined || cell === "") throw new RowError("the date is empty", { column });
      const text = typeof cell === "object" ? cell.local : String(cell);
      if (typeof cell === "number")
        throw new RowError(`the date is the number ${text}, not a date`, {
          column,
          text,
          hint: "Give the cells of the column a date format in the spreadsheet program.",
        });
      if (INSTANT.test(text)) return text;
      if (timeZone === undefined && TIME_OF_DAY.test(text) && !DESIGNATOR.test(text))
        throw new FileError(`the date "${text}" has no designator, and no time zone is set`, {
          column,
          text,
          hint:
            "Add to the trigger's metadata the zone in which the file was written, for example: " +
            "`timeZone: Europe/Brussels`",
        });
      try {
        return time.iso(text, timeZone, dst === "byOrder" ? { byOrder: series } : dst);
      } catch (thrown) {
        if (!(thrown instanceof RowError) || !isDate(text)) throw thrown;
        throw new RowError(thrown.message, { column, text, hint: DST_HINT });
      }
    }

    /** Whether the text is a date, and daylight saving its only fault. */
    function isDate(text: string): boolean {
      try {
        time.iso(text, timeZone, "later");
        return true;
      } catch (thrown) {
        if (thrown instanceof RowError) return false;
        throw thrown;
      }
    }

    function takeRow(cells: readonly CellValue[]): void {
      if (columns === undefined) {
        columns = findColumns(cells.map((cell) => String(cell ?? "")));
        targetOf = targetReader(columns);
        return;
      }
      // A short row of a text file was cut off; sheets end each row at its last filled cell.
      const extra =
        cells.length > columns.width && cells.slice(columns.width).some((cell) => cell !== "" && cell !== null);
      if (extra || (!isSheet && cells.length < columns.width))
        throw new RowError(`the row has ${cells.length} cells where the header has ${columns.width}`, {
          hint: extra
            ? "A cell that holds the delimiter has to be quoted."
            : "Cells are missing: was the file cut off here, or written only in part?",
        });
      if (targetOf === undefined) return;
      const { target, series } = targetOf(cells);
      const value = cells[columns.value] ?? "";
      const version = columns.version === undefined ? undefined : cells[columns.version];
      const tags = columns.tags === undefined ? undefined : cells[columns.tags];
      let column = columns.names[columns.date] ?? "date";
      try {
        const date = dateOf(cells[columns.date], column, series);
        column = columns.names[columns.value] ?? "value";
        emit({
          target,
          date,
          value: typeof value === "number" ? value : number(String(value), marks),
          version: version === undefined ? undefined : textOf(version, "version") || undefined,
          tags: tags === undefined || tags === null || tags === "" ? undefined : parseTags(String(tags)),
        });
      } catch (thrown) {
        throw thrown instanceof RowError && thrown.column === undefined ? named(thrown, column) : thrown;
      }
    }

    function planOf(): RowPlan | undefined {
      if (columns === undefined) return undefined;
      return {
        width: columns.width,
        date: { column: columns.date, zone: timeZone, byOrder: dst === "byOrder" },
        values: [columns.value],
        decimal,
        independent: true,
        by: columnsBeside(columns),
      };
    }

    if (isSheet)
      try {
        await eachRow(file.xlsx({ sheet: settings.sheet }), takeRow);
      } catch (thrown) {
        if (columns !== undefined || !(thrown instanceof FileError) || thrown.text === undefined) throw thrown;
        throw await otherSheets(thrown, file, settings.sheet);
      }
    else {
      const { delimiter, encoding, lineEnd } = settings;
      await eachRow(file.csv({ delimiter, encoding, lineEnd }), takeRow, planOf);
    }
    if (columns === undefined && isSheet)
      throw await otherSheets(new FileError("the sheet is empty: it has no header"), file, settings.sheet);
    if (columns === undefined)
      throw new FileError("the file is empty: it has no header", {
        hint: "A standard data file begins with a header that names at least date, value and an identifier.",
      });
  },
});

/** A fault of the header of a sheet, with the names of other sheets. */
async function otherSheets(fault: FileError, file: MapperFile, sheet: string | number): Promise<FileError> {
  const names = (await file.sheets()).map((name) => JSON.stringify(name)).join(", ");
  return new FileError(fault.message, {
    hint:
      `The first filled row of sheet ${JSON.stringify(sheet)} is taken for the header. If another sheet ` +
      `is meant, name it in the trigger's metadata as \`sheet\`; there are ${names}.`,
    ...(fault.text === undefined ? {} : { text: fault.text }),
  });
}

/** The same fault, with its column. */
function named({ message, text, hint }: RowError, column: string): RowError {
  return new RowError(message, {
    column,
    ...(text === undefined ? {} : { text }),
    ...(hint === undefined ? {} : { hint }),
  });
}
