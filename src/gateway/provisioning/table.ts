/**
 * A table of sites, sources and variables, one row a variable. Ambiguous values are refused, with their row and
 * column.
 */
import { isDeepStrictEqual } from "node:util";
import { ConfigError } from "#core/errors.ts";
import {
  bodyOf,
  COLUMNS,
  type Column,
  customKey,
  type Fields,
  findColumn,
  text,
} from "#mapping/readers/master-data/columns.ts";
import { columnOf, type StatedRow, type TableRules } from "#mapping/readers/master-data/rows.ts";
import type { PushTarget } from "#wire/push.ts";
import type { VariableBody } from "#wire/structure.ts";
import { targetWords } from "#wire/target.ts";
import { namesUnit } from "#wire/units.ts";
import { GENERIC_TYPE } from "./options.ts";
import { impossible } from "./template.ts";
import type { Stated, Wanted } from "./wanted.ts";

/** The unit as it is written: the service may have other units than our list. */
function withOwnUnit(column: Column): Column {
  return column.fields[0] === "unitId"
    ? { ...column, fields: ["unit"], read: (cell) => ({ unit: text(cell) }) }
    : column;
}

const isTaken = ({ of, fields: [field = ""] }: Column) =>
  of !== "user" && field !== "id" && (of !== "site" || customKey(field) === null);

/** Columns of tables: what the account has is found by names, never by ids. */
export const TABLE_COLUMNS: readonly Column[] = COLUMNS.filter(isTaken).map(withOwnUnit);

export const TABLE_RULES: TableRules = {
  findColumn(header) {
    const column = findColumn(header);
    return column === undefined || !isTaken(column) ? undefined : withOwnUnit(column);
  },
  columnsAre: `there are ${TABLE_COLUMNS.map(({ name }) => name).join(", ")} and source_custom.KEY`,
  sheets: "first",
  ids: "any",
};

/** Sources are known by the first of these fields whose column the table has; every row fills it. */
const IDENTIFYING = [
  { field: "serialNumber", kind: "sourceSerialNumber" },
  { field: "ean", kind: "sourceEan" },
  { field: "meterNumber", kind: "meterNumber" },
  { field: "name", kind: "sourceName" },
] as const;
type Identifying = (typeof IDENTIFYING)[number];

/** The values that a row states for each thing. */
interface Said {
  readonly row: StatedRow;
  readonly site: Fields;
  readonly source: Fields;
  readonly variable: Fields;
}

const FAULTS_SHOWN = 20;

/** Throws `ConfigError` HG-MIGR-020 that lists every fault. `file`: the name for messages. */
export function readTable(file: string, rows: readonly StatedRow[]): readonly Wanted[] {
  const [first] = rows;
  if (first === undefined) throw refused(file, ["it has a header and no row, or is empty"]);
  // A header with a fault is a row of its own, without which no cell can be read.
  const missing = first.header.columns.length === 0 ? [] : missingColumns(first);
  const identifying = IDENTIFYING.find(({ field }) => columnOf(first, "source", field) !== null) ?? IDENTIFYING[3];
  const isReadable = missing.length === 0 && first.header.columns.length > 0;
  const said = isReadable ? rows.map((row) => saidIn(row, identifying)) : [];
  findConflicts(said, identifying);
  const faults = rows.flatMap(({ row, reasons }) =>
    reasons.map(({ column, message }) => `row ${row}${column === null ? "" : `, column ${column}`}: ${message}`),
  );
  const lines = [...faults, ...missing];
  const more = lines.length - FAULTS_SHOWN;
  if (lines.length > 0) throw refused(file, more > 0 ? [...lines.slice(0, FAULTS_SHOWN), `… and ${more} more`] : lines);
  return said.map((one) => wantedOf(one, identifying));
}

/** Each needs one of its fields. */
const NEEDED = [
  ["site", "name"],
  ["source", ...IDENTIFYING.map(({ field }) => field)],
  ["variable", "mappingConfig", "variableTypeId"],
  ["variable", "unit"],
] as const;

function missingColumns(first: StatedRow): readonly string[] {
  return NEEDED.flatMap(([entity, ...fields]) => {
    if (fields.some((field) => columnOf(first, entity, field) !== null)) return [];
    const names = fields.map(
      (field) => TABLE_COLUMNS.find((one) => one.of === entity && one.fields[0] === field)?.name,
    );
    return [`the column ${names.join(" or ")} is missing; add it`];
  });
}

function refused(file: string, lines: readonly string[]): ConfigError {
  return new ConfigError("HG-MIGR-020", {
    operation: "read master data",
    subject: file,
    message: `${file} cannot be used:\n${lines.map((line) => `  ${line}`).join("\n")}`,
  });
}

/** Adds the reasons of what the row lacks. */
function saidIn(row: StatedRow, { field }: Identifying): Said {
  const { site = {}, source = {}, variable = {} } = row.said;
  const fault = (entity: "site" | "source" | "variable", field: string, message: string) =>
    void row.reasons.push({ column: columnOf(row, entity, field), message });
  const isRepeated = "it is empty; fill it in every row, no value is taken over from the row above";
  if (site["name"] === undefined) fault("site", "name", isRepeated);
  if (source[field] === undefined) fault("source", field, isRepeated);
  if (variable["unit"] === undefined) fault("variable", "unit", "it is empty; state the unit of the values");
  if (variable["mappingConfig"] === undefined && variable["variableTypeId"] === undefined)
    fault("variable", "mappingConfig", "it is empty, and so is variable_type; fill one of them");
  return { row, site, source, variable };
}

/** Finds rows that state different values for the same thing. */
function findConflicts(said: readonly Said[], { field }: Identifying): void {
  const sites = new Map<string, Said>();
  const sources = new Map<string, Said>();
  const variables = new Map<string, Said>();
  for (const one of said) {
    const site = String(one.site["name"]);
    const source = String(one.source[field]);
    const { mappingConfig, variableTypeId } = one.variable;
    if (one.site["name"] === undefined || one.source[field] === undefined) continue;
    compare(sites, site, one, "site");
    compare(sources, source, one, "source");
    const key = JSON.stringify([source, mappingConfig ?? null, mappingConfig === undefined ? variableTypeId : null]);
    const before = variables.get(key);
    if (before === undefined) variables.set(key, one);
    else
      one.row.reasons.push({
        column: columnOf(one.row, "variable", mappingConfig === undefined ? "variableTypeId" : "mappingConfig"),
        message: `row ${before.row.row} is about the same variable; keep one of them`,
      });
  }
}

function compare(seen: Map<string, Said>, key: string, one: Said, of: "site" | "source"): void {
  const before = seen.get(key);
  if (before === undefined) {
    seen.set(key, one);
    return;
  }
  const differ = (entity: "site" | "source", field: string) => {
    const value = before[entity][field];
    if (isDeepStrictEqual(value, one[entity][field])) return;
    const stated = value === undefined ? "nothing" : JSON.stringify(value);
    const message = `row ${before.row.row} states ${stated} for the same ${key}; state the same in every row`;
    one.row.reasons.push({ column: columnOf(one.row, entity, field), message });
  };
  if (of === "source") differ("site", "name");
  for (const field of new Set([...Object.keys(before[of]), ...Object.keys(one[of])])) differ(of, field);
}

function wantedOf({ row, site, source, variable }: Said, identifying: Identifying): Wanted {
  const { field, kind } = identifying;
  const identifier = String(source[field]);
  const { unit: _, ...ofVariable } = variable;
  const { mappingConfig, variableTypeId } = variable;
  const target: PushTarget = {
    [kind]: identifier,
    ...(mappingConfig === undefined
      ? { variableTypeId: Number(variableTypeId) }
      : { mappingConfig: String(mappingConfig) }),
  };
  const words = `${targetWords(target)} (row ${row.row})`;
  const unit = String(variable["unit"]);
  return {
    ...{ target, words, meant: meantBy(source, identifier, variable) },
    site() {
      for (const [needed, name] of [
        ["typeId", "site_type"],
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
        ...bodyOf({}, source),
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
  const bySource = IDENTIFYING.flatMap(({ field, kind }) => {
    const value = source[field] ?? (field === "name" ? name : undefined);
    return value === undefined ? [] : [{ [kind]: String(value) }];
  });
  const byVariable = [
    ...(mappingConfig === undefined ? [] : [{ mappingConfig: String(mappingConfig) }]),
    { variableTypeId: Number(variableTypeId ?? GENERIC_TYPE) },
  ];
  return bySource.flatMap((one) => byVariable.map((other) => targetWords({ ...one, ...other })));
}
