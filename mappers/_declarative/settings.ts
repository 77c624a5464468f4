/**
 * Settings that the declarative mappers share: the place of date, target and values in a row, and how they are read.
 */
import { z } from "headgate/mapper";
import { pattern, templateText } from "./settings-text.ts";
import { lookupSettings } from "./tables.ts";

/** Name of a column as the file writes it, or its number from 1. */
export const reference = z.union([z.string().min(1), z.int().min(1)]);

const text = z.string().min(1);
const TEMPLATE = "`{name}` stands for a column of the row or a named group of a pattern";

const identifier = z.union([templateText, z.int().min(0)]).optional();

const duration = z
  .string()
  .regex(/^-?\d+[smhd]$/, "it is no duration such as 15m, 1h, -30m or 1d")
  .describe("Duration such as 30s, 15m, 1h or 1d.");

export const targetSchema = z
  .strictObject({
    variableId: identifier.describe("The variable itself; needs nothing else."),
    sourceId: identifier.describe("Id of the source."),
    sourceSerialNumber: identifier.describe("Serial number of the source."),
    sourceEan: identifier.describe("EAN of the source."),
    meterNumber: identifier.describe("Meter number of the source."),
    sourceName: identifier.describe("Name of the source."),
    mappingConfig: identifier.describe("Which variable of the source."),
    variableTypeId: identifier.describe("Type of the variable, instead of mappingConfig."),
  })
  .describe(
    `What names the variable: \`variableId\`, or one \`source…\` or \`meterNumber\` with ` +
      `\`mappingConfig\` or \`variableTypeId\`. Texts are templates: ${TEMPLATE}, \`{column}\` for the ` +
      "name of the value's column.",
  );

const date = z
  .strictObject({
    column: reference.optional().describe("Column of the date."),
    columns: z
      .array(reference)
      .min(1)
      .optional()
      .describe("Columns that hold the date in parts, such as day and time; they are joined by one blank."),
    text: templateText.optional().describe(`The date put together, such as \`{year}-{Day} {Time}\`; ${TEMPLATE}.`),
    pattern: pattern
      .optional()
      .describe("Regular expression that finds the date in the text: its first group, or all that it matches."),
    format: z
      .union([text, z.array(text).min(1)])
      .default("iso")
      .describe(
        "Format, or formats of which one has to fit each date: in letters such as `dd/MM/yyyy HH:mm`, " +
          "or `iso`, `unix` (seconds), `unixMs`, `serial` (days of a spreadsheet), `serial1904`.",
      ),
  })
  .superRefine((value, check) => {
    const given = [value.column, value.columns, value.text].filter((one) => one !== undefined);
    if (given.length !== 1) check.addIssue({ code: "custom", message: "give exactly one of column, columns and text" });
  })
  .describe("Place and format of the date of a row.");

const ACTION = /^(?:keep|drop|reject|[^:|]+:[^|]*(?:\|[^:|]+:[^|]*)*)$/;
const action = z.string().regex(ACTION, "it is none of keep, drop, reject, and no tag such as quality:estimated");

export const actionShape = {
  values: z
    .record(z.string(), action)
    .describe(
      "Action for a reading by its status: `keep`, `drop`, `reject`, or tags for it as `name:value|name:value`.",
    ),
  otherwise: action.default("reject").describe("Action for a reading with any other status."),
};

const status = z
  .array(z.strictObject({ column: reference.describe("Column of the status."), ...actionShape }))
  .describe("Columns whose value keeps, drops, refuses or tags the row.");

/** Settings for reading a value; for all values, and beside each entry of `values` for that entry. */
const valueShape = {
  unit: templateText
    .optional()
    .describe(`Unit in which the file has the values; ${TEMPLATE}. Checked against the variable's unit.`),
  convertTo: templateText.optional().describe(`Unit into which the values are converted from \`unit\`; ${TEMPLATE}.`),
  scale: z
    .union([z.number(), templateText])
    .optional()
    .describe("Factor that every value is multiplied by: a number, or a template such as `{Factor}`."),
  missing: z
    .array(z.string())
    .optional()
    .describe('Texts that stand for no value, such as `""`, `NaN` or `-9999`; they are left out and counted.'),
  status: status.optional(),
  tags: z
    .record(z.string().min(1), templateText)
    .optional()
    .describe(`Tags of the readings, by name; ${TEMPLATE}. Empty ones are left out.`),
  version: templateText.optional().describe(`VersionTag of the readings; ${TEMPLATE}.`),
};

const values = z
  .array(
    z.strictObject({
      column: reference.optional().describe("Column of the values."),
      match: pattern
        .optional()
        .describe(
          "Regular expression on the names of columns, for every column that it fits; its named " +
            "groups may be used in templates.",
        ),
      target: targetSchema.optional().describe("Fields of the target that hold for this column."),
      ...valueShape,
    }),
  )
  .min(1)
  .describe("Wide layout: a column a quantity. An entry's settings go before those for all values.");

/** Settings of days of which the file has parts. */
export const partialShape = {
  partialDays: z
    .enum(["reject", "allow"])
    .default("reject")
    .describe(
      "Files whose columns are fewer than the intervals of a day, or whose labels leave one out: `reject`; or " +
        "`allow`, and then labels such as HH07 or 06:30 say which intervals the columns are; without labels they " +
        "are the first of the day.",
    ),
  firstLabel: text
    .optional()
    .describe(
      "Label that the first interval of a day has or would have, where it is none of 0, 1, 00:00 and one interval " +
        "later, or where `partialDays: allow` leaves it open.",
    ),
};

const day = z
  .strictObject({
    from: reference.optional().describe("First column of the day."),
    to: reference.optional().describe("Last column of the day; without it the last of the header."),
    match: pattern.optional().describe("Regular expression on the names of the day's columns, instead of from and to."),
    interval: z
      .string()
      .regex(/^(?:\d+[smh])$/, "it is no duration such as 15m or 1h")
      .describe("Time that one column stands for, such as 15m, 30m or 1h."),
    flags: z
      .strictObject(actionShape)
      .optional()
      .describe("Set when every column of the day is followed by one with the status of its value."),
    skippedHour: z
      .enum(["empty", "zero"])
      .default("empty")
      .describe(
        "What columns hold that have no interval on a short day: nothing, or zeros to be left out. " +
          "Anything else is refused.",
      ),
    changeDays: z
      .enum(["reject", "order", "clock"])
      .default("reject")
      .describe(
        "Days of 23 and 25 hours. `order`: columns follow each other without a gap, so that a short " +
          "day ends early and a long one fills further columns. `clock`: columns are times of the " +
          "clock; those of the skipped hour are empty, and further columns at the end hold the second " +
          "pass of the repeated hour. `reject` refuses the row.",
      ),
    ...partialShape,
  })
  .describe("Wide layout: a row a day, a column an interval. The date has the format `yyyy-MM-dd` if none is given.");

export const layoutShape = {
  date,
  timeZone: templateText
    .optional()
    .describe(
      "Zone of dates without designator, such as Europe/Brussels or +10:00; no default. May be a " +
        "template such as `{Zone}`.",
    ),
  dst: z
    .enum(["reject", "earlier", "later", "byOrder"])
    .default("reject")
    .describe("What a local time means that occurs twice or not at all because of daylight saving."),
  midnight: z
    .enum(["startOfDay", "endOfDay"])
    .default("startOfDay")
    .describe(
      "What 00:00 means: the start of the day of its date, or its end, as files write that stamp ends of intervals " +
        "and give the last one of a day the date of that day.",
    ),
  shift: duration
    .optional()
    .describe("Added to every date, such as `-15m` when the file stamps ends of intervals and starts are wanted."),
  decimal: z.enum([".", ","]).default(".").describe("Decimal mark."),
  group: z.enum([".", ",", " ", "'", "_"]).optional().describe("Group mark; no default."),
  fileName: pattern
    .optional()
    .describe("Regular expression on the name of the file; its named groups may be used in templates."),
  lookup: lookupSettings.optional(),
  target: targetSchema.optional(),
  value: reference.optional().describe("Long layout: the column of the values."),
  values: values.optional(),
  day: day.optional(),
  ...valueShape,
};

export type Layout = z.output<z.ZodObject<typeof layoutShape>>;
export type DateSettings = Layout["date"];
export type DaySettings = NonNullable<Layout["day"]>;
export type TargetSettings = NonNullable<Layout["target"]>;
export type ActionSettings = z.output<z.ZodObject<typeof actionShape>>;
export type StatusSettings = NonNullable<Layout["status"]>;
export type ValueSettings = Pick<Layout, "unit" | "convertTo" | "scale" | "missing" | "status" | "tags" | "version">;

type Check = { addIssue(issue: { code: "custom"; path: (string | number)[]; message: string }): void };

/** Checks that involve several fields. */
export function checkLayout(layout: Layout, check: Check): void {
  const fault = (path: (string | number)[], message: string) => check.addIssue({ code: "custom", path, message });
  const layouts = [layout.value, layout.values, layout.day].filter((one) => one !== undefined);
  if (layouts.length !== 1)
    fault(["value"], "give exactly one of value (long), values (a column a quantity) and day (a row a day)");
  const entries = layout.values ?? [{}];
  entries.forEach((entry, at) => {
    const path = layout.values === undefined ? [] : ["values", at];
    if (layout.values !== undefined && (entry.column === undefined) === (entry.match === undefined))
      fault(path, "give either column or match");
    const reason = targetFault({ ...layout.target, ...entry.target });
    if (reason !== null) fault([...path, "target"], reason);
    if ((entry.convertTo ?? layout.convertTo) !== undefined && (entry.unit ?? layout.unit) === undefined)
      fault([...path, "unit"], "convertTo needs the unit to convert from");
  });
  if (layout.day !== undefined) checkDay(layout, fault);
  else if (layout.timeZone === undefined && formatsOf(layout.date).some((format) => !ZONELESS.has(format)))
    fault(["timeZone"], "a date format in letters needs the zone of the dates, such as Europe/Brussels");
  const timeless = formatsOf(layout.date).find((format) => format !== "iso" && !/[Hh]/.test(format));
  if (layout.midnight === "endOfDay" && timeless !== undefined)
    fault(["midnight"], `dates of the format ${timeless} have no time of day`);
}

/** Formats that give an instant without a zone. */
const ZONELESS: ReadonlySet<string> = new Set(["iso", "unix", "unixMs"]);

function checkDay(layout: Layout, fault: (path: (string | number)[], message: string) => void): void {
  const { day } = layout;
  if (layout.timeZone === undefined)
    fault(["timeZone"], "a row a day needs the zone whose days they are, such as Europe/Brussels");
  if ((day?.from === undefined) === (day?.match === undefined)) fault(["day"], "give either from or match");
  if (day !== undefined && !Number.isInteger(86_400_000 / durationMs(day.interval)))
    fault(["day", "interval"], "it does not divide a day into equal parts");
  if (layout.midnight === "endOfDay") fault(["midnight"], "a row that holds the whole day has no times of day");
  if (layout.dst === "byOrder") fault(["dst"], "byOrder does not apply to a row that holds the whole day");
}

const IDENTIFIERS = ["variableId", "sourceId", "sourceSerialNumber", "sourceEan", "meterNumber", "sourceName"] as const;

function targetFault(target: TargetSettings): string | null {
  const named = IDENTIFIERS.filter((field) => target[field] !== undefined);
  if (named.length === 0) return `it names no variable: give one of ${IDENTIFIERS.join(", ")}`;
  if (named.length > 1) return `it has ${named.join(" and ")}: give one of them`;
  const which = [target.mappingConfig, target.variableTypeId].filter((one) => one !== undefined);
  if (named[0] !== "variableId" && which.length !== 1)
    return `${named[0]} names a source: give mappingConfig or variableTypeId, which says which of its variables`;
  if (named[0] === "variableId" && which.length > 0)
    return "variableId is the variable itself: leave out mappingConfig and variableTypeId";
  return null;
}

export function formatsOf({ format }: DateSettings): readonly string[] {
  return typeof format === "string" ? [format] : format;
}

const UNITS: Readonly<Record<string, number>> = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** Milliseconds of a duration such as `15m`. */
export function durationMs(text: string): number {
  return Number(text.slice(0, -1)) * (UNITS[text.slice(-1)] ?? Number.NaN);
}
