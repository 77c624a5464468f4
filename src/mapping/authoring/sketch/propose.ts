/** Derives settings of a bundled mapper, and the source of a new mapper, from the guessed columns of a sample. */
import type { SampleReader } from "./sample.ts";
import { mapperSource, type SourceInput } from "./source.ts";

export interface Proposal {
  /** Assumptions that the sample does not confirm. */
  readonly assumed: readonly string[];
  /** Bundled mapper that reads the file by settings alone, with these settings; null when none does. */
  readonly declarative: {
    readonly mapper: string;
    readonly settings: Readonly<Record<string, unknown>>;
  } | null;
  /** Text of `mapper.ts`. */
  readonly source: string;
  /** Settings of the mapper that its first case needs. */
  readonly settings: Readonly<Record<string, unknown>>;
}

const DECLARATIVE = {
  csv: "delimited",
  xlsx: "workbook",
  json: "records",
  ndjson: "records",
  xml: null,
} as const;

export function propose(input: SourceInput): Proposal {
  const { timeZone, columns } = input;
  const { date } = columns;
  return {
    assumed:
      date?.other === undefined
        ? []
        : [
            `the dates fit ${date.format} and ${date.other}, and the first was taken: the sample does ` +
              "not decide between them",
          ],
    declarative: declarativeSettings(input),
    source: mapperSource(input),
    settings: {
      ...(timeZone === undefined ? {} : { timeZone }),
      ...(columns.source === null ? { meter: "METER-1" } : {}),
    },
  };
}

function declarativeSettings({ table: { reader }, columns, timeZone }: SourceInput): Proposal["declarative"] {
  const mapper = DECLARATIVE[reader.kind];
  const { date, values, source, quantity, missing } = columns;
  if (mapper === null || date === null || values.length === 0) return null;
  // Ambiguous names need code.
  if ("naming" in reader && (reader.naming.hasDuplicates || reader.naming.hasUnnamed)) return null;
  const [only] = values;
  const single = values.length === 1 && only !== undefined;
  const decimal = values.some((value) => value.decimal === ",") ? { decimal: "," } : {};
  const settings = {
    ...readerSettings(reader),
    ...(timeZone === undefined ? {} : { timeZone, dst: "byOrder" }),
    date: {
      ...(date.names.length === 1 ? { column: date.names[0] } : { columns: date.names }),
      ...(date.format === "iso" ? {} : { format: date.format }),
    },
    target: {
      sourceSerialNumber: source === null ? "METER-1" : `{${source}}`,
      mappingConfig: quantity !== null ? `{${quantity}}` : single ? literal(only.name) : "{column}",
    },
    ...(single
      ? { value: only.name, ...(only.unit === undefined ? {} : { unit: only.unit }) }
      : {
          values: values.map(({ name, unit }) => ({ column: name, ...(unit === undefined ? {} : { unit }) })),
        }),
    ...decimal,
    ...(missing.length === 0 ? {} : { missing }),
  };
  return { mapper, settings };
}

function readerSettings(reader: SampleReader): Readonly<Record<string, unknown>> {
  switch (reader.kind) {
    case "csv":
      return {
        ...(reader.delimiter === "," ? {} : { delimiter: reader.delimiter }),
        ...(reader.encoding === undefined ? {} : { encoding: reader.encoding }),
        ...(reader.skipLines === 0 ? {} : { skipLines: reader.skipLines }),
        ...(reader.hasHeader ? {} : { headerRows: 0 }),
      };
    case "xlsx":
      return reader.headerRow === 1 ? {} : { headerRow: reader.headerRow };
    case "json":
      return { records: reader.path.replaceAll(".*", "[*]") };
    case "ndjson":
      return { lines: true };
    default:
      return {};
  }
}

/** A text in the syntax of templates. */
function literal(name: string): string {
  return name.replaceAll("{", "{{").replaceAll("}", "}}");
}
