/** The columns of a table of sites, sources and variables: their names, their values, and the fields that they fill. */
import { ianaZone, QUANTITY_TYPES, TIME_PERIODS } from "../wire/index.ts";
import type { Entity } from "./wanted.ts";

export type Value = string | number | boolean | readonly string[] | Readonly<Record<string, unknown>>;

export interface Column {
  /** In a header, case, blanks, `_` and `-` do not matter. */
  readonly name: string;
  readonly of: Entity;
  /** The field of the body. The table itself reads a few of them. */
  readonly field: string;
  readonly about: string;
  /** Reads a cell that is not empty; throws a `RangeError` whose message says what was expected. */
  readonly read: (text: string) => Value;
}

const text = (value: string) => value;

function whole(value: string): number {
  const number = Number(value);
  if (!/^\d+$/.test(value) || !Number.isSafeInteger(number)) throw new RangeError("expected a whole number");
  return number;
}

function decimal(value: string): number {
  const number = Number(value);
  if (!/^-?\d+(\.\d+)?(e-?\d+)?$/i.test(value) || !Number.isFinite(number) || number === 0)
    throw new RangeError("expected a number with a decimal point, and not 0");
  return number;
}

function zone(value: string): string {
  if (ianaZone(value) === undefined) throw new RangeError("expected a time zone such as Europe/Brussels");
  return value;
}

function yesNo(value: string): boolean {
  const word = value.toLowerCase();
  if (word !== "true" && word !== "false") throw new RangeError("expected true or false");
  return word === "true";
}

function tags(value: string): readonly string[] {
  return value
    .split("|")
    .map((tag) => tag.trim())
    .filter((tag) => tag !== "");
}

const PERIODS = Object.values(TIME_PERIODS).map((name) => name.toLowerCase());
const SPACING = new RegExp(`^[1-9]\\d{0,5} (${PERIODS.join("|")})s?$`);

function spacingWords(value: string): string {
  if (!SPACING.test(value)) throw new RangeError("expected such as 15 minutes or 1 day");
  return value;
}

function quantity(value: string): string {
  const names = Object.values(QUANTITY_TYPES);
  const name = names.find((one) => one.toLowerCase() === value.toLowerCase());
  if (name === undefined) throw new RangeError(`expected one of ${names.join(", ")}`);
  return name;
}

const column = (of: Entity, name: string, field: string, about: string, read: Column["read"] = text): Column => ({
  ...{ of, name, field, about, read },
});

/** Sources are known by the first of these columns that the table has; every row fills it. */
export const IDENTIFYING = {
  source_serial_number: { field: "serialNumber", kind: "sourceSerialNumber" },
  source_ean: { field: "ean", kind: "sourceEan" },
  meter_number: { field: "meterNumber", kind: "meterNumber" },
  source_name: { field: "name", kind: "sourceName" },
} as const;

export const COLUMNS: readonly Column[] = [
  column("site", "site_name", "name", "Name of the site. Required, in every row."),
  column(
    "site",
    "site_type_id",
    "typeId",
    "Site type (`GET /sitetypes`). Needed for a site that is to be created.",
    whole,
  ),
  column(
    "site",
    "site_time_zone",
    "timeZoneId",
    "Where a day of the site starts. Needed for a site that is to be created.",
    zone,
  ),
  column("site", "site_street", "street", "Address."),
  column("site", "site_postal_code", "postalCode", "Address."),
  column("site", "site_city", "city", "Address."),
  column("site", "site_country", "country", "Address."),
  column(
    "source",
    "source_serial_number",
    "serialNumber",
    "Serial number. One of this and the next three is required.",
  ),
  column("source", "source_ean", "ean", "EAN of the connection."),
  column("source", "meter_number", "meterNumber", "Number of the meter."),
  column("source", "source_name", "name", "Name of the source; the identifier when left out."),
  column(
    "source",
    "source_type_id",
    "sourceTypeId",
    "Source type (`GET /sourceTypes`); the one named Pushed Data when left out.",
    whole,
  ),
  column("source", "energy_type_id", "energyTypeId", "Energy type (`GET /energyTypes`).", whole),
  column("source", "source_time_zone", "timeZoneId", "Time zone of the source; the site's when left out.", zone),
  column("source", "source_description", "description", "Free text."),
  column("source", "source_tags", "tags", "Tags, separated by `|`.", tags),
  column(
    "variable",
    "mapping_config",
    "mappingConfig",
    "The name by which pushes refer to the variable. This or `variable_type_id` is required.",
  ),
  column(
    "variable",
    "variable_type_id",
    "variableTypeId",
    "Variable type (`GET /variableTypes`); 131, generic, when left out.",
    whole,
  ),
  column("variable", "variable_name", "name", "Name of the variable; the mapping config when left out."),
  column("variable", "unit", "unit", "Unit of the values, as the service names it. Required, in every row."),
  column(
    "variable",
    "granularity",
    "granularity",
    "Spacing between points, such as `15 minutes` or `1 day`.",
    spacingWords,
  ),
  column(
    "variable",
    "quantity_type",
    "quantityType",
    "What a value is, such as `Integrated` (`GET /quantityTypes`).",
    quantity,
  ),
  column("variable", "is_versioned", "isVersioned", "`true` when revisions of a reading are kept side by side.", yesNo),
  column("variable", "divider", "divider", "Number that values are divided by.", decimal),
  column("variable", "variable_tags", "tags", "Tags, separated by `|`.", tags),
];

/** `source_custom.KEY`: the customer's own properties of a source, by key. */
export const CUSTOM = "source_custom.";
const customName = /^source[\s_-]*custom\.(.+)$/i;

export function findColumn(header: string): Column | undefined {
  const key = customName.exec(header)?.[1]?.trim();
  if (key !== undefined) return column("source", `${CUSTOM}${key}`, "clientData", "", (value) => ({ [key]: value }));
  return COLUMNS.find(({ name }) => folded(name) === folded(header));
}

function folded(name: string): string {
  return name.toLowerCase().replace(/[\s_-]/g, "");
}
