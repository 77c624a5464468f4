/** Generates the text of a mapper's module, in the style of a handwritten one. */
import type { Naming, SampleReader, SampleTable, SketchedColumns, ValueColumn } from "./sample.ts";

export interface SourceInput {
  readonly name: string;
  readonly table: SampleTable;
  readonly columns: SketchedColumns;
  /** Zone of dates without designator; undefined when the dates carry one. */
  readonly timeZone: string | undefined;
}

export function mapperSource({ name, table, columns, timeZone }: SourceInput): string {
  const { date, values, source, quantity, missing } = columns;
  const cell = cellAccess(table);
  const readings = values.map((value) => readingSource(value, columns, cell)).join("\n");
  const settings = [
    ...(timeZone === undefined
      ? []
      : ['    timeZone: z.string().describe("Zone of the dates in the file, such as Europe/Brussels"),']),
    ...(source === null ? ['    meter: z.string().describe("Serial number of the meter that the file is from"),'] : []),
  ];
  const tools = [
    "file",
    ...(settings.length > 0 ? ["settings"] : []),
    "emit",
    "eachRow",
    "time",
    ...(values.length > 0 ? ["number"] : []),
  ];
  const parts = date?.names.map(cell) ?? ['"the date"'];
  const stamp = parts.length === 1 ? bare(parts[0] ?? "") : parts.join(' + " " + ');
  // Series alternate in many files: each passes the repeated hour of autumn separately.
  const policy = "{ byOrder: sourceSerialNumber }";
  const when =
    date === null || date.format === "iso"
      ? `time.iso(${stamp}${timeZone === undefined ? "" : `, settings.timeZone, ${policy}`})`
      : `time.local(${stamp}, ${text(date.format)}, settings.timeZone, ${policy})`;
  const notes = [
    ...(date?.other === undefined
      ? []
      : [`  // The sample fits both ${date.format} and ${date.other}: check which of them the sender writes.`]),
    ...(date === null ? ["  // No column of the sample looks like a date: name its columns."] : []),
    ...(values.length === 0 ? ["  // No column of the sample looks like values: emit them here."] : []),
  ];
  const missingTexts =
    missing.length === 0
      ? ""
      : `\n/** Texts that stand for no value. */\nconst MISSING = new Set(${JSON.stringify(missing)});\n`;
  const comments = notes.length > 0 ? `${notes.join("\n")}\n` : "";
  return `/** ${name}: made from a sample by \`headgate mapper new\`. Check its date, target and values. */
import { defineMapper, ${isTable(table.reader) ? "" : "RowError, "}z } from "headgate/mapper";
${missingTexts}
export default defineMapper({
  name: ${text(name)},
  summary: ${text(`Files of ${name}`)},
  version: "1.0.0",
  settings: z.strictObject({${settings.length === 0 ? "" : `\n${settings.join("\n")}\n  `}}),
  async map({ ${tools.join(", ")} }) {
${comments}    await eachRow(${readerSource(table, columns)}, (${rowName(table.reader)}) => {
${rowPrelude(table.reader)}      const sourceSerialNumber = ${source === null ? "settings.meter" : bare(cell(source))};
      const date = ${when};
${quantity === null ? "" : `      const mappingConfig = ${bare(cell(quantity))};\n`}${readings}
    });
  },
});
`;
}

function readingSource(
  value: ValueColumn,
  { quantity, missing }: SketchedColumns,
  cell: (name: string) => string,
): string {
  const options = value.decimal === "," ? ', { decimal: "," }' : "";
  const target =
    quantity === null
      ? `{ sourceSerialNumber, mappingConfig: ${text(value.name)} }`
      : "{ sourceSerialNumber, mappingConfig }";
  const unit = value.unit === undefined ? "" : `, unit: ${text(value.unit)}`;
  const emit = `emit({ target: ${target}, date, value: number(${bare(cell(value.name))}${options})${unit} });`;
  return missing.length === 0
    ? `      ${emit}`
    : `      if (!MISSING.has(${cell(value.name)}.trim()))\n        ${emit}`;
}

function readerSource({ reader, columns: all }: SampleTable, columns: SketchedColumns): string {
  switch (reader.kind) {
    case "csv": {
      const options = [
        reader.hasHeader ? "columns: true" : `columns: [${all.map(text).join(", ")}]`,
        ...(reader.delimiter === "," ? [] : [`delimiter: ${text(reader.delimiter)}`]),
        ...(reader.encoding === undefined ? [] : [`encoding: ${text(reader.encoding)}`]),
        ...(reader.skipLines === 0 ? [] : [`skipLines: ${reader.skipLines}`]),
        ...namingOptions(reader.naming),
      ];
      return `file.csv${reader.hasHeader ? namesSource(columns) : ""}({ ${options.join(", ")} })`;
    }
    case "xlsx":
      return (
        `file.xlsx${namesSource(columns)}({ ` +
        [
          "columns: true",
          ...(reader.headerRow === 1 ? [] : [`headerRow: ${reader.headerRow}`]),
          ...namingOptions(reader.naming),
        ].join(", ") +
        " })"
      );
    case "json":
      return `file.json({ path: ${text(reader.path)} })`;
    case "ndjson":
      return "file.ndjson()";
    case "xml":
      return `file.xml({ elements: ${text(reader.element)} })`;
  }
}

/** The columns that the code reads, for the compiler. */
function namesSource({ date, values, source, quantity }: SketchedColumns): string {
  const names = [...(date?.names ?? []), ...values.map(({ name }) => name), source, quantity];
  const read = [...new Set(names.filter((name) => name !== null))];
  return read.length === 0 ? "" : `<${read.map(text).join(" | ")}>`;
}

function namingOptions({ hasDuplicates, hasUnnamed }: Naming): string[] {
  return [...(hasDuplicates ? ['duplicates: "number"'] : []), ...(hasUnnamed ? ['unnamed: "skip"'] : [])];
}

function rowName({ kind }: SampleReader): string {
  return kind === "json" || kind === "ndjson" ? "item" : kind === "xml" ? "element" : "row";
}

/** Whether its rows have columns: reading one that the file lacks is an error by itself. */
function isTable({ kind }: SampleReader): boolean {
  return kind === "csv" || kind === "xlsx";
}

/**
 * Cells and fields may be of any type: a lookup by name that returns texts, and refuses names that are missing, keeps
 * the lines below alike.
 */
function rowPrelude({ kind }: SampleReader): string {
  switch (kind) {
    case "csv":
      return "";
    case "xlsx":
      return `      const cell = (name: keyof typeof row) => {
        const value = row[name];
        if (value === null) return "";
        // A date of a workbook is wall time as the spreadsheet shows it.
        return typeof value === "object" ? value.local : String(value);
      };
`;
    case "json":
    case "ndjson":
      return `      type Fields = Record<string, unknown> | undefined;
      const found = (...names: string[]) =>
        names.reduce<unknown>((value, name) => (value as Fields)?.[name], item.value);
      const field = (...names: string[]) => {
        const value = found(...names);
        if (value !== undefined) return value === null ? "" : String(value);
        throw new RowError(\`the record has no field \${names.join(".")}\`, { column: names.join(".") });
      };
`;
    case "xml":
      return `      const part = (name: string) => {
        const value = name.startsWith("@") ? element.attributes[name.slice(1)] : element.textOf(name);
        if (value !== undefined) return value;
        throw new RowError(\`the element has no \${name}\`, { column: name });
      };
`;
  }
}

/** The code that returns the text of a column. Fields that some records of the sample lack may be missing. */
function cellAccess({ reader, columns, rows }: SampleTable): (name: string) => string {
  const isOptional = (name: string) => rows.some((row) => (row[columns.indexOf(name)] ?? "") === "");
  switch (reader.kind) {
    case "csv":
      return (name) => `row[${text(name)}]`;
    case "xlsx":
      return (name) => `cell(${text(name)})`;
    case "json":
    case "ndjson":
      return (name) => {
        const names = name.split(".").map(text).join(", ");
        return isOptional(name) ? `String(found(${names}) ?? "")` : `field(${names})`;
      };
    case "xml":
      return (name) => {
        if (!isOptional(name)) return `part(${text(name)})`;
        return name.startsWith("@")
          ? `(element.attributes[${text(name.slice(1))}] ?? "")`
          : `(element.textOf(${text(name)}) ?? "")`;
      };
  }
}

/** Without the parentheses that an expression needs only beside others. */
function bare(expression: string): string {
  return /^\(.*\)$/.test(expression) ? expression.slice(1, -1) : expression;
}

function text(value: string): string {
  return JSON.stringify(value);
}

/** A mapper without a sample, for lines of text. */
export function emptySource(name: string): string {
  return `/** ${name}: takes lines of meter;date;value until you say otherwise. */
import { defineMapper, z } from "headgate/mapper";

export default defineMapper({
  name: ${text(name)},
  summary: ${text(`Files of ${name}`)},
  version: "1.0.0",
  settings: z.strictObject({}),
  async map({ file, emit, reject, eachRow, time, number }) {
    await eachRow(file.lines(), (line) => {
      const [meter, when, value] = line.text.split(";");
      if (meter === undefined || when === undefined || value === undefined) {
        reject(line, "the line has fewer than three cells");
        return;
      }
      emit({
        target: { sourceSerialNumber: meter, mappingConfig: "value" },
        date: time.iso(when),
        value: number(value),
      });
    });
  },
});
`;
}
