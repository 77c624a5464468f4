/** The columns of master data: their names, the entities that they describe, and how their cells are read. */
import type { MasterDataEntity } from "#wire/master-data.ts";
import { spacingFault, spacingOf } from "#wire/referentials/step-length.ts";
import { REFERENTIAL_FIELDS } from "#wire/referentials.ts";
import { findUnit, UNITS } from "#wire/units.ts";
import { ianaZone } from "#wire/zones.ts";
import type { CellValue } from "../contract.ts";
import { hasTypedDigits } from "../row-error.ts";

export type Fields = Readonly<Record<string, unknown>>;

/** Which ids of referentials are known: those in our lists, or any, as another service may have longer lists. */
export type KnownIds = "listed" | "any";

export interface Column {
  /** In a header, case, blanks, `_` and `-` do not matter. */
  readonly name: string;
  readonly aliases: readonly string[];
  readonly of: MasterDataEntity;
  readonly about: string;
  readonly fields: readonly string[];
  /** The fields that a cell states; throws a `RangeError` whose message completes "the cell …". */
  readonly read: (cell: Cell, ids: KnownIds) => Fields;
}

const TEXT_MAX = 4_000;
/** Results of formulas that are none. */
const NO_RESULT = /^#(N\/A|REF!|VALUE!|NAME\?|DIV\/0!|NULL!|NUM!|SPILL!|CALC!|FIELD!|GETTING_DATA|NOT CALCULATED)$/;
// biome-ignore lint/suspicious/noControlCharactersInRegex: the expression finds them
const CONTROL = /[\0-\x08\x0b\x0c\x0e-\x1f\x7f]/;

function column(of: MasterDataEntity, names: string, field: string, about: string, read: ReadCell = text): Column {
  const [name = "", ...aliases] = names.split(" ");
  return { name, aliases, of, about, fields: [field], read: (cell) => ({ [field]: read(cell) }) };
}

/** A message names those of a short list. */
const NAMES_SHOWN_MAX = 12;

/** A column of ids of a referential, which a cell names by id, or by name in any case. */
function listed(of: MasterDataEntity, names: string, field: string, about = ""): Column {
  const { path, list } = REFERENTIAL_FIELDS[field] ?? { path: "", list: [] };
  const some = list.length > NAMES_SHOWN_MAX ? "" : ` (${list.map(({ name }) => name).join(", ")})`;
  const read = (cell: Cell, ids: KnownIds) => {
    const words = text(cell);
    const isId = /^\d+$/.test(words);
    const named = words.toLowerCase();
    const found = list.find(({ id, name }) => (isId ? id === Number(words) : name.toLowerCase() === named));
    if (found === undefined && !(isId && ids === "any"))
      throw new RangeError(`is ${quoted(words)}, which is no id and no name of GET ${path}${some}`);
    return { [field]: found?.id ?? Number(words) };
  };
  return { ...column(of, names, field, `Id or name (GET ${path})${about}.`), read };
}

function unit(cell: Cell): number {
  const words = text(cell);
  const found = /^\d+$/.test(words) ? UNITS.find(({ id }) => id === Number(words)) : findUnit(words);
  if (found === undefined) throw new RangeError(`is ${quoted(words)}, which is no id, symbol or name of GET /units`);
  return found.id;
}

function zone(cell: Cell): string {
  const words = text(cell);
  if (ianaZone(words) === undefined)
    throw new RangeError(`is ${quoted(words)}, and not a time zone such as Europe/Brussels (GET /timezones)`);
  return words;
}

function tags(cell: Cell): readonly string[] {
  const each = text(cell).split("|");
  return each.map((tag) => tag.trim()).filter((tag) => tag !== "");
}

function spacing(cell: Cell): Fields {
  const words = text(cell);
  const found = spacingOf(words);
  if (found === null) throw new RangeError(`is ${quoted(words)}, and not such as 15 minutes or 1 day`);
  const fault = spacingFault(found.granularity, found.granularityTimeBase);
  if (fault !== null) throw new RangeError(fault);
  return found;
}

function versions(cell: Cell): number {
  const count = whole(cell);
  if (count < 1 || count > 10_000) throw new RangeError(`is ${count}, and not between 1 and 10000`);
  return count;
}

export function quoted(words: string): string {
  return JSON.stringify(words.length > 60 ? `${words.slice(0, 60)}…` : words);
}

const NEW = "Needed for a new one.";
const BY_ID = "Id at the hub, to name one whose name or number changes.";

export const COLUMNS: readonly Column[] = [
  column("site", "site_id", "id", BY_ID, whole),
  column("site", "site_name", "name", "Name of the site, which names it in the account."),
  listed("site", "site_type site_type_id", "typeId", "; needed for a new one"),
  column("site", "site_time_zone site_time_zone_id", "timeZoneId", `Where a day of the site begins. ${NEW}`, zone),
  column("site", "site_street", "street", "Address."),
  column("site", "site_postal_code", "postalCode", "Address."),
  column("site", "site_city", "city", "Address."),
  column("site", "site_country", "country", "Address."),
  column("source", "source_id", "id", BY_ID, whole),
  column(
    "source",
    "source_serial_number serial_number",
    "serialNumber",
    "The first of source_id, this, source_ean, meter_number and source_name that a row fills names its source.",
  ),
  column("source", "source_ean source_ean_number ean ean_number", "ean", "EAN of the connection."),
  column("source", "meter_number source_meter_number", "meterNumber", "Number of the meter."),
  column("source", "source_name", "name", "Name of the source; what names it when left out."),
  listed("source", "source_type source_type_id", "sourceTypeId", "; of a new one Pushed Data when left out"),
  listed("source", "energy_type energy_type_id", "energyTypeId"),
  listed("source", "energy_usage energy_usage_id", "energyUsageId"),
  listed("source", "gateway_type gateway_type_id", "gatewayTypeId"),
  column("source", "source_time_zone source_time_zone_id", "timeZoneId", "The site's when left out.", zone),
  column("source", "source_description", "description", "Free text."),
  column("source", "source_localisation", "localisation", "Where it is in the site."),
  column("source", "source_meter_address", "meterAddress", "Address of the meter."),
  column("source", "source_tags", "tags", "Tags, separated by |.", tags),
  column("variable", "variable_id", "id", BY_ID, whole),
  column(
    "variable",
    "mapping_config",
    "mappingConfig",
    "By which pushes name the variable. This, or variable_type, names it within its source.",
  ),
  listed("variable", "variable_type variable_type_id", "variableTypeId", "; of a new one 131, generic, when left out"),
  column("variable", "variable_name", "name", "Name of the variable; the mapping config when left out."),
  column("variable", "unit unit_id", "unitId", `Id, symbol or name (GET /units). ${NEW}`, unit),
  {
    ...column("variable", "granularity", "", "Spacing between points, such as 15 minutes or 1 day."),
    fields: ["granularity", "granularityTimeBase"],
    read: spacing,
  },
  listed("variable", "quantity_type", "quantityType", ", such as Integrated"),
  listed("variable", "aggregate", "aggregate"),
  column("variable", "is_versioned", "isVersioned", "true when revisions of a reading are kept side by side.", truth),
  column("variable", "versions_max", "versionsMax", "How many of them.", versions),
  column("variable", "divider", "divider", "Number that values are divided by.", decimal),
  column("variable", "variable_tags", "tags", "Tags, separated by |.", tags),
  column(
    "user",
    "user_name username",
    "username",
    "Name by which the user signs in; it names the user in the account.",
  ),
  column("user", "user_id user_business_id", "businessId", "Identifier of the account's own, kept as BusinessId."),
  column("user", "user_email", "email", "Address for messages."),
  column("user", "user_first_name", "firstName", "First name."),
  column("user", "user_last_name", "lastName", "Last name."),
  column("user", "user_roles user_role", "roles", "Roles, separated by |.", tags),
];

/** Permitted values: column, id, name or symbol. */
export const LISTS: readonly (readonly [string, number, string])[] = COLUMNS.flatMap(({ name: column, fields }) => {
  const list = REFERENTIAL_FIELDS[fields[0] ?? ""]?.list ?? [];
  return list.map(({ id, name, symbol = name }) => [column, id, symbol] as const);
});

const CUSTOM = /^(source|site)[\s_-]*custom\.(.+)$/i;

function folded(name: string): string {
  return name.toLowerCase().replace(/[\s_-]/g, "");
}

const BY_NAME = new Map(COLUMNS.flatMap((one) => [one.name, ...one.aliases].map((name) => [folded(name), one])));

/** `source_custom.KEY` and `site_custom.KEY` are properties that the customer defines, or fields of forms. */
export function findColumn(header: string): Column | undefined {
  const [, entity, text] = CUSTOM.exec(header.trim()) ?? [];
  const key = text?.trim();
  if (entity === undefined || key === undefined) return BY_NAME.get(folded(header));
  const of = entity.toLowerCase() === "site" ? "site" : "source";
  const name = `${of}_custom.${key}`;
  return { ...column(of, name, `clientData.${key}`, ""), name, aliases: [] };
}

/** The key in `clientData` that a field names. */
export function customKey(field: string): string | null {
  return field.startsWith("clientData.") ? field.slice("clientData.".length) : null;
}

/** Form, group and field, or the key alone. */
export function customPath(key: string): readonly string[] {
  const levels = key.split(".").map((level) => level.trim());
  return levels.length === 3 && !levels.includes("") ? levels : [key];
}

/** Whatever the names are: an object without such a property has none. */
export function valueAt(data: unknown, path: readonly string[]): unknown {
  const [name, ...rest] = path;
  if (name === undefined) return data;
  if (typeof data !== "object" || data === null || !Object.hasOwn(data, name)) return undefined;
  return valueAt(Reflect.get(data, name), rest);
}

export function withValueAt(data: unknown, [name, ...rest]: readonly string[], value: unknown): unknown {
  if (name === undefined) return value;
  const fields = typeof data === "object" && data !== null && !Array.isArray(data) ? data : {};
  return { ...fields, [name]: withValueAt(valueAt(fields, [name]), rest, value) };
}

/** Fields over those of `current` as a body: without an id of its own and without fields that are null. */
export function bodyOf(current: Fields, fields: Fields): Fields {
  const body: Record<string, unknown> = {};
  for (const [field, value] of Object.entries(current)) if (value !== null && field !== "id") body[field] = value;
  for (const [field, value] of Object.entries(fields)) {
    const key = customKey(field);
    if (field !== "id" && key === null) body[field] = value;
    if (key !== null) body["clientData"] = withValueAt(body["clientData"], customPath(key), value);
  }
  return body;
}

// Reads cells of CSV files and workbooks. A cell that a spreadsheet may have changed is refused, and never guessed.

export type Cell = CellValue;

/** Reads a cell that is not empty; throws a `RangeError` whose message completes "the cell …". */
type ReadCell = (cell: Cell) => unknown;

export function isEmpty(cell: Cell | undefined): boolean {
  return cell === null || cell === undefined || (typeof cell === "string" && cell.trim() === "");
}

export function text(cell: Cell): string {
  if (typeof cell === "number") {
    if (hasTypedDigits(cell)) return String(cell);
    throw new RangeError(`is the number ${cell}, whose digits the spreadsheet may have changed: format it as text`);
  }
  if (typeof cell === "boolean") return String(cell);
  if (typeof cell === "object" && cell !== null)
    throw new RangeError(`is the date ${cell.local}, and not a text: format it as text, and enter it again`);
  const words = (cell ?? "").trim();
  if (NO_RESULT.test(words)) throw new RangeError(`is a formula without a result (${words})`);
  if (words.length > TEXT_MAX) throw new RangeError(`is longer than ${TEXT_MAX} characters`);
  if (CONTROL.test(words) || !words.isWellFormed()) throw new RangeError("has a character that is not text");
  return words;
}

function whole(cell: Cell): number {
  const words = text(cell);
  const number = Number(words);
  if (!/^\d+$/.test(words) || !Number.isSafeInteger(number))
    throw new RangeError(`is "${words}", and not a whole number`);
  return number;
}

function decimal(cell: Cell): number {
  if (typeof cell === "number" && cell !== 0) return cell;
  const words = text(cell);
  const number = Number(words);
  if (!/^-?\d+(\.\d+)?(e-?\d+)?$/i.test(words) || !Number.isFinite(number) || number === 0)
    throw new RangeError(`is "${words}", and not a number with a decimal point other than 0`);
  return number;
}

function truth(cell: Cell): boolean {
  const word = text(cell).toLowerCase();
  if (["true", "yes", "1"].includes(word)) return true;
  if (["false", "no", "0"].includes(word)) return false;
  throw new RangeError(`is "${word}", and neither true nor false`);
}
