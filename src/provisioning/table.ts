/**
 * A table of sites, sources and variables, one row a variable. Ambiguous values are refused, with their row and
 * column.
 */
import { ConfigError } from "../support/errors.ts";
import { namesUnit, type PushTarget, QUANTITY_TYPES, targetWords, type VariableBody } from "../wire/index.ts";
import { COLUMNS, type Column, CUSTOM, findColumn, IDENTIFYING, type Value } from "./columns.ts";
import { GENERIC_TYPE } from "./options.ts";
import { impossible, keyOf, spacing } from "./template.ts";
import type { Entity, Stated, Wanted } from "./wanted.ts";

/** A row of the file; numbers of a workbook keep their type. */
export interface TableRow {
  /** Row number as a spreadsheet shows it, the header included. */
  readonly row: number;
  readonly cells: readonly (string | number | boolean | null)[];
}

interface Fault {
  readonly row: number;
  readonly column: string;
  /** The fault, and what to do. */
  readonly words: string;
}

type Fields = Readonly<Record<string, Value>>;
/** The values that a row states for each thing. */
interface Said {
  readonly row: number;
  readonly site: Fields;
  readonly source: Fields;
  readonly variable: Fields;
}

const FAULTS_SHOWN = 20;
/** A spreadsheet keeps fifteen digits of a number; further digits become zeros. */
const EXACT_MAX = 1e15;

/** Throws `ConfigError` HG-MIGR-020 that lists every fault. `file`: the name for messages. */
export function readTable(file: string, rows: readonly TableRow[]): readonly Wanted[] {
  const [header, ...others] = rows;
  if (header === undefined) throw refused(file, ["it is empty: it has not even a header"]);
  const columns = readHeader(file, header);
  const faults: Fault[] = [];
  const identifying = identifyingOf(columns);
  const said = others.map((row) => readRow(row, columns, identifying, faults));
  findConflicts(said, identifying, faults);
  if (faults.length > 0) {
    const ordered = faults.toSorted((one, other) => one.row - other.row);
    const lines = ordered
      .slice(0, FAULTS_SHOWN)
      .map(({ row, column, words }) => `row ${row}, column ${column}: ${words}`);
    const more = ordered.length - lines.length;
    throw refused(file, more > 0 ? [...lines, `… and ${more} more`] : lines);
  }
  if (said.length === 0) throw refused(file, ["it has a header and no row"]);
  return said.map((one) => wantedOf(one, identifying));
}

function refused(file: string, lines: readonly string[]): ConfigError {
  return new ConfigError("HG-MIGR-020", {
    operation: "read master data",
    subject: file,
    message: `${file} cannot be used:\n${lines.map((line) => `  ${line}`).join("\n")}`,
  });
}

type Identifying = keyof typeof IDENTIFYING;

/** Null: a column without a name, which has to be empty. */
function readHeader(file: string, { row, cells }: TableRow): readonly (Column | null)[] {
  const lines: string[] = [];
  const columns = cells.map((cell) => {
    const name = String(cell ?? "").trim();
    if (name === "") return null;
    const found = findColumn(name);
    if (found === undefined)
      lines.push(
        `row ${row}, column ${name}: there is no such column; there are ` +
          `${COLUMNS.map((one) => one.name).join(", ")} and ${CUSTOM}KEY`,
      );
    return found ?? null;
  });
  const names = columns.map((one) => one?.name);
  for (const [at, name] of names.entries())
    if (name !== undefined && names.indexOf(name) < at)
      lines.push(`row ${row}, column ${name}: the column occurs twice; keep one of them`);
  const lacks = (...some: readonly string[]) => some.every((name) => !names.includes(name));
  for (const some of [["site_name"], Object.keys(IDENTIFYING), ["mapping_config", "variable_type_id"], ["unit"]])
    if (lacks(...some)) lines.push(`row ${row}: the column ${some.join(" or ")} is missing; add it`);
  if (lines.length > 0) throw refused(file, lines);
  return columns;
}

function identifyingOf(columns: readonly (Column | null)[]): Identifying {
  const names = new Set(columns.map((one) => one?.name));
  const first = (Object.keys(IDENTIFYING) as Identifying[]).find((name) => names.has(name));
  return first ?? "source_name";
}

function readRow(
  { row, cells }: TableRow,
  columns: readonly (Column | null)[],
  identifying: Identifying,
  faults: Fault[],
): Said {
  const said: Record<Entity, Record<string, Value>> = { site: {}, source: {}, variable: {} };
  const fault = (column: string, words: string) => void faults.push({ row, column, words });
  for (const [at, cell] of cells.entries()) {
    const written = String(cell ?? "").trim();
    if (written === "") continue;
    const column = columns[at];
    if (column === null || column === undefined) {
      fault(`${at + 1}`, `it holds "${written}" and has no name; name it in the header, or empty it`);
      continue;
    }
    if (typeof cell === "number" && Math.abs(cell) >= EXACT_MAX && column.read("1") === "1") {
      fault(column.name, `a number of so many digits is rounded by the spreadsheet; write it as text`);
      continue;
    }
    try {
      const value = column.read(written);
      const fields = said[column.of];
      fields[column.field] =
        column.field === "clientData" ? { ...(fields["clientData"] as object), ...(value as object) } : value;
    } catch (thrown) {
      if (!(thrown instanceof RangeError)) throw thrown;
      fault(column.name, `"${written}": ${thrown.message}`);
    }
  }
  const isRepeated = "it is empty; fill it in every row, no value is taken over from the row above";
  if (said.site["name"] === undefined) fault("site_name", isRepeated);
  if (said.source[IDENTIFYING[identifying].field] === undefined) fault(identifying, isRepeated);
  if (said.variable["unit"] === undefined) fault("unit", "it is empty; state the unit of the values");
  if (said.variable["mappingConfig"] === undefined && said.variable["variableTypeId"] === undefined)
    fault("mapping_config", "it is empty, and so is variable_type_id; fill one of them");
  return { row, ...said };
}

/** Finds rows that state different values for the same thing. */
function findConflicts(said: readonly Said[], identifying: Identifying, faults: Fault[]): void {
  const { field } = IDENTIFYING[identifying];
  const sites = new Map<string, Said>();
  const sources = new Map<string, Said>();
  const variables = new Map<string, Said>();
  for (const one of said) {
    const site = String(one.site["name"]);
    const source = String(one.source[field]);
    const { mappingConfig, variableTypeId } = one.variable;
    if (one.site["name"] === undefined || one.source[field] === undefined) continue;
    compare(sites, site, one, "site", faults);
    compare(sources, source, one, "source", faults);
    const key = JSON.stringify([source, mappingConfig ?? null, mappingConfig === undefined ? variableTypeId : null]);
    const before = variables.get(key);
    if (before === undefined) variables.set(key, one);
    else
      faults.push({
        row: one.row,
        column: mappingConfig === undefined ? "variable_type_id" : "mapping_config",
        words: `row ${before.row} is about the same variable; keep one of them`,
      });
  }
}

function compare(seen: Map<string, Said>, key: string, one: Said, of: "site" | "source", faults: Fault[]): void {
  const before = seen.get(key);
  if (before === undefined) {
    seen.set(key, one);
    return;
  }
  if (of === "source" && before.site["name"] !== one.site["name"])
    faults.push({ row: one.row, column: "site_name", words: differs(before.row, key, before.site["name"]) });
  for (const field of new Set([...Object.keys(before[of]), ...Object.keys(one[of])]))
    if (JSON.stringify(before[of][field]) !== JSON.stringify(one[of][field])) {
      const name = COLUMNS.find((column) => column.of === of && column.field === field)?.name ?? `${CUSTOM}…`;
      faults.push({ row: one.row, column: name, words: differs(before.row, key, before[of][field]) });
    }
}

function differs(row: number, key: string, value: Value | undefined): string {
  const before = value === undefined ? "nothing" : JSON.stringify(value);
  return `row ${row} states ${before} for the same ${key}; state the same in every row`;
}

function wantedOf({ row, site, source, variable }: Said, identifying: Identifying): Wanted {
  const { field, kind } = IDENTIFYING[identifying];
  const identifier = String(source[field]);
  const { unit: _, granularity, quantityType, ...rest } = variable;
  const { mappingConfig, variableTypeId } = variable;
  const target: PushTarget = {
    [kind]: identifier,
    ...(mappingConfig === undefined
      ? { variableTypeId: Number(variableTypeId) }
      : { mappingConfig: String(mappingConfig) }),
  };
  const words = `${targetWords(target)} (row ${row})`;
  const unit = String(variable["unit"]);
  const ofVariable = {
    ...rest,
    ...spacing(granularity === undefined ? undefined : String(granularity)),
    ...(quantityType === undefined ? {} : { quantityType: keyOf(QUANTITY_TYPES, String(quantityType)) }),
  };
  return {
    ...{ target, words, meant: meantBy(source, identifier, variable) },
    site() {
      for (const [needed, name] of [
        ["typeId", "site_type_id"],
        ["timeZoneId", "site_time_zone"],
      ] as const)
        if (site[needed] === undefined)
          throw impossible(words, `the site ${site["name"]} does not exist, and its ${name} is not stated`);
      return site as unknown as ReturnType<Wanted["site"]>;
    },
    source() {
      const timeZoneId = source["timeZoneId"] ?? site["timeZoneId"];
      return {
        name: identifier,
        ...(timeZoneId === undefined ? {} : { timeZoneId }),
        ...source,
      } as ReturnType<Wanted["source"]>;
    },
    variable(units) {
      const found = units.find((one) => namesUnit(unit, one));
      if (found === undefined) throw impossible(words, `the service has no unit ${unit}`);
      const type = Number(variableTypeId ?? GENERIC_TYPE);
      const body = {
        name: mappingConfig ?? `type ${type}`,
        ...ofVariable,
        variableTypeId: type,
        unitId: found.id,
      };
      return body as Omit<VariableBody, "sourceId">;
    },
    stated: { site, source, variable: ofVariable, unit } as unknown as Stated,
  };
}

/** A file may name the source by another of its identifiers. */
function meantBy(source: Fields, name: string, { mappingConfig, variableTypeId }: Fields): readonly string[] {
  const bySource = Object.values(IDENTIFYING).flatMap(({ field, kind }) => {
    const value = source[field] ?? (field === "name" ? name : undefined);
    return value === undefined ? [] : [{ [kind]: String(value) }];
  });
  const byVariable = [
    ...(mappingConfig === undefined ? [] : [{ mappingConfig: String(mappingConfig) }]),
    { variableTypeId: Number(variableTypeId ?? GENERIC_TYPE) },
  ];
  return bySource.flatMap((one) => byVariable.map((other) => targetWords({ ...one, ...other })));
}
