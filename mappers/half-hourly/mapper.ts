/** Half-hourly exports of the United Kingdom: a row a day, a column a half hour. */
import { defineMapper, FileError, type MapContext, RowError, type RowPlan, z } from "headgate/mapper";
import { type Columns, headedColumns, numberedColumns } from "../_declarative/columns.ts";
import { bindDay, columnsFrom, type DayColumns, inDay } from "../_declarative/day-rows.ts";
import { checkNamed, fileFacts, LaterLines, namedShape, noteCounts } from "../_declarative/facts.ts";
import { readHead } from "../_declarative/head.ts";
import { dayPlan } from "../_declarative/plan.ts";
import { dataTest, type FilteredTable, filterShape, rowFilter } from "../_declarative/row-filter.ts";
import { checkedWidth, columnCount, type TakeRow, widthShape } from "../_declarative/rows.ts";
import {
  actionShape,
  checkLayout,
  type DaySettings,
  type Layout,
  layoutShape,
  partialShape,
  reference,
  targetSchema,
} from "../_declarative/settings.ts";
import { bindStatus } from "../_declarative/statuses.ts";
import type { Cells, Scope } from "../_declarative/template.ts";
import type { Counts } from "../_declarative/values.ts";
import { lineEnd } from "../_formats/cells.ts";
import { findPeriods } from "./periods.ts";

const { fileName, decimal, group, unit, convertTo, scale, missing, tags, version } = layoutShape;

const settings = z
  .strictObject({
    delimiter: z.string().min(1).default(",").describe("Delimiter of cells."),
    encoding: z.string().min(1).default("utf-8").describe("Encoding of files without a byte order mark."),
    skipLines: z.int().min(0).default(0).describe("Lines before the header."),
    headerAt: z
      .string()
      .min(1)
      .optional()
      .describe("Text by which the line of the header is found, instead of skipLines."),
    header: z
      .boolean()
      .default(true)
      .describe("Whether there is a header. Without one, `meter`, `day` and `first` are the numbers of columns."),
    meter: reference
      .optional()
      .describe("Column of the meter, `{meter}` in templates. By default the one named MPAN, Meter or the like."),
    day: reference
      .optional()
      .describe("Column of the day. By default the one named Date, Settlement Date or the like."),
    dayFormat: z
      .array(z.string().min(1))
      .min(1)
      .default(["dd/MM/yyyy", "yyyy-MM-dd", "dd-MM-yyyy", "yyyyMMdd", "dd/MM/yy"])
      .describe("Formats of the day, of which the first that fits counts."),
    first: reference
      .optional()
      .describe(
        "First column of the half hours; by default they are found by their names. All that follows " +
          "belongs to them, to the end of the row.",
      ),
    flagged: z
      .boolean()
      .default(false)
      .describe("With `first`: whether every half hour is followed by a column with its status."),
    flags: z
      .strictObject(actionShape)
      .default({ values: { A: "keep", E: "quality:estimated", "": "keep" }, otherwise: "reject" })
      .describe("What a status means: A is actual, E estimated."),
    dayFlag: reference.optional().describe("Column with one status for all the day."),
    timeZone: z
      .string()
      .min(1)
      .default("Europe/London")
      .describe("Zone of the days: the clock time of the United Kingdom, or UTC for exports that stay on GMT."),
    changeDays: z
      .enum(["order", "clock"])
      .optional()
      .describe(
        "Days of 46 and 50 half hours. `order`: settlement periods, which count on without a gap (by " +
          "default for numbered columns). `clock`: times of the clock, those of the skipped hour " +
          "without values, the second pass of the repeated hour in columns at the end (by default for " +
          "columns named by times).",
      ),
    dst: z
      .enum(["reject", "earlier", "later"])
      .default("reject")
      .describe("With `clock`: which pass of the repeated hour the columns hold when there are none for the other."),
    skippedHour: z
      .enum(["empty", "zero"])
      .default("empty")
      .describe("What columns hold that have no half hour on a short day: nothing, or zeros to be left out."),
    ...partialShape,
    stamp: z
      .enum(["start", "end"])
      .default("start")
      .describe("Whether a reading is dated by the start or the end of its half hour."),
    target: targetSchema.default({ meterNumber: "{meter}", mappingConfig: "kWh" }),
    ragged: z.enum(["reject", "allow"]).default("reject").describe("Rows with fewer cells than the header."),
    ...widthShape,
    columnCount,
    lineEnd,
    ...{ fileName, decimal, group, unit, convertTo, scale, missing, tags, version },
    ...filterShape,
    ...namedShape,
  })
  .superRefine((value, check) => {
    checkLayout(layoutOf(value, 1, "order"), check);
    const fault = (path: string, message: string) => check.addIssue({ code: "custom", path: [path], message });
    if (value.header && value.columnCount !== undefined)
      fault("columnCount", "the header says how many columns there are");
    if (!value.header && value.headerAt !== undefined) fault("headerAt", "there is no header to find");
    if (!value.header && [value.meter, value.day, value.first].includes(undefined))
      fault("header", "without a header the numbers of the columns are needed: meter, day and first");
    if (value.flagged && value.first === undefined) fault("flagged", "it needs the setting first");
  });

type Settings = z.output<typeof settings>;
type Context = MapContext<Settings>;

/** Half hours of the shortest day. */
const SHORT_DAY = 46;

const METER_NAMES = [
  "MPAN",
  "MPAN Core",
  "MPANCore",
  "Meter",
  "Meter ID",
  "Meter Point",
  "Meter Number",
  "Meter Serial Number",
  "MSN",
  "Site",
];
const DAY_NAMES = ["Date", "Settlement Date", "Reading Date", "Read Date", "Consumption Date", "Day"];

export default defineMapper({
  name: "half-hourly",
  summary: "Half-hourly exports of the United Kingdom: a row a day, 48 columns, 46 and 50 when the clock changes",
  version: "1.0.0",
  conflicts: "refuse",
  settings,

  async map(context) {
    const { file, settings } = context;
    const { delimiter, encoding } = settings;
    const head = await readHead(file, settings);
    const facts = new Map([...fileFacts(file.name, settings.fileName), ...head.facts]);
    const counts = { missing: 0, dropped: 0 };
    const isLeftOut = rowFilter(context, settings, delimiter);
    const header: string[][] = [];
    let known: FilteredTable | undefined;
    const tableOf = ({ holdsData }: Bound) => {
      known ??= { later: new LaterLines(settings, { header, before: head.before, facts }), holdsData: holdsData() };
      return known;
    };
    let bound: Bound | undefined = settings.header
      ? undefined
      : bind(context, { columns: numberedColumns(settings.columnCount), facts }, counts);
    let width = 0;
    const takeCells = (cells: Cells) => {
      if (bound === undefined) {
        header.push(cells.map(String));
        bound = bind(context, { columns: headedColumns(header), facts }, counts);
        return;
      }
      const table = bound;
      if (isLeftOut?.(cells, () => tableOf(table)) !== undefined) return;
      if (width === 0) table.check(head.before, cells);
      width = cells.length;
      table.take(cells);
    };
    // A filter tests whole lines. The plan follows the first row, which shows faults of the settings.
    const planOf = () => {
      if (isLeftOut !== undefined) return null;
      return bound === undefined || width === 0 ? undefined : bound.plan(width);
    };
    await context.eachRow(
      file.csv({ delimiter, encoding, skipLines: head.lines, lineEnd: settings.lineEnd }),
      takeCells,
      planOf,
    );
    if (bound === undefined) throw new FileError("the file is empty: it has no header");
    noteCounts(context, counts);
  },
});

interface Bound {
  readonly take: TakeRow;
  /** Compares what the file names with the settings; with the lines before the header, and the first row. */
  readonly check: (before: readonly string[], row: Cells) => void;
  /** For rows of so many cells. */
  readonly plan: (width: number) => RowPlan | null | undefined;
  /** A test of rows that emits nothing. */
  readonly holdsData: () => FilteredTable["holdsData"];
}

function bind(context: Context, scope: Scope, counts: Counts): Bound {
  const { settings } = context;
  const { columns } = scope;
  // Searched only when a template needs it: the meter may also be in the name of the file.
  const meter = () => columnOf(columns, settings.meter, METER_NAMES, "meter");
  const day = columnOf(columns, settings.day, DAY_NAMES, "day");
  const named = {
    ...columns,
    find: (name: string | number) => (name === "meter" ? meter() : columns.find(name)),
  };
  const inner = { ...scope, columns: named };
  const { layout, columnsOf } = daysOf(settings, day + 1, inner);
  const take = bindDay(context, layout, inner, counts, columnsOf);
  const { dayFlag, flags } = settings;
  const rowStatus = dayFlag === undefined ? undefined : [{ column: dayFlag, ...flags }];
  const status = bindStatus(rowStatus, inner);
  const takeDay = (cells: Cells): void => {
    const last = columnsOf(cells.length)[SHORT_DAY - 1];
    if (settings.partialDays === "reject" && (last === undefined || last.at >= cells.length))
      throw new RowError(
        `the row has ${cells.length} cells, fewer than the ${SHORT_DAY} half hours of the shortest day need`,
        {
          hint: "Was the file cut off here? Lines after the data are left out by `endAt` (to the end) or `skipRows`.",
        },
      );
    const { flag = 0 } = columnsOf(cells.length).find(({ at }) => at === cells.length - 1) ?? {};
    if (settings.ragged === "reject" && flag >= cells.length)
      throw new RowError(`the row has ${cells.length} cells, and ends before the status of its last half hour`, {
        hint: "Was the file cut off here? Then let it be sent again. `ragged: allow` takes such rows.",
      });
    const tags = status?.(cells);
    if (tags === "drop") counts.dropped += 1;
    else take(cells, tags);
  };
  // Under a header a short day may end its row early; where an empty cell is a fault, so is a row that was cut off.
  const mayBeShort = settings.ragged === "allow" || (settings.header && settings.missing?.includes("") !== true);
  const mayBeLong = settings.extraCells === "ignore";
  return {
    check: (before, row) =>
      checkNamed(context.unit, { ...layout, named: settings.named }, inner, { before, row, columnsOf }),
    take: checkedWidth(Object.assign(takeDay, { extra: take.extra }), inner, { mayBeShort, mayBeLong }),
    holdsData: () =>
      dataTest(context, (tools) => {
        const test = bindDay(tools, layout, inner, { missing: 0, dropped: 0 }, columnsOf);
        return (cells) => test(cells, undefined);
      }),
    plan: (width) => dayPlan({ ...layout, status: rowStatus }, inner, counts, { width, columnsOf }),
  };
}

function daysOf(settings: Settings, dayColumn: number, scope: Scope): { layout: Layout; columnsOf: DayColumns } {
  const { first, flagged, partialDays } = settings;
  if (first !== undefined) {
    const layout = layoutOf(settings, dayColumn, "order");
    const range = { first: scope.columns.find(first), last: undefined, hasFlags: flagged };
    return { layout, columnsOf: columnsFrom(layout.day as DaySettings, range, scope) };
  }
  const found = findPeriods(scope.columns.entries(), partialDays === "allow" ? 2 : undefined);
  const layout = layoutOf(settings, dayColumn, found.labels === "periods" ? "order" : "clock");
  const columns = inDay(layout.day as DaySettings, found.columns, scope);
  return { layout, columnsOf: () => columns };
}

function columnOf(
  columns: Columns,
  given: string | number | undefined,
  known: readonly string[],
  setting: string,
): number {
  if (given !== undefined) return columns.find(given);
  const names = columns.entries().map(({ name, at }) => ({ plain: plainOf(name), at }));
  for (const name of known) {
    const found = names.find(({ plain }) => plain === plainOf(name));
    if (found !== undefined) return found.at;
  }
  throw new FileError(`no column of the header is known as that of the ${setting}`, {
    text: columns
      .entries()
      .map(({ name }) => name)
      .join(", "),
    hint: `Name it by the setting \`${setting}\`; known by themselves are ${known.join(", ")}.`,
  });
}

function plainOf(name: string): string {
  return name.toLowerCase().replaceAll(/[^a-z]/g, "");
}

/** The settings in the form of a row a day. */
function layoutOf(settings: Settings, dayColumn: number, byLabels: "order" | "clock"): Layout {
  const { dst, skippedHour, flags, stamp, partialDays, firstLabel } = settings;
  const changeDays = settings.changeDays ?? byLabels;
  return {
    ...settings,
    date: { column: dayColumn, format: settings.dayFormat },
    status: undefined,
    value: undefined,
    values: undefined,
    dst,
    midnight: "startOfDay",
    shift: stamp === "end" ? "30m" : undefined,
    day: { from: 1, interval: "30m", changeDays, skippedHour, flags, partialDays, firstLabel },
  };
}
