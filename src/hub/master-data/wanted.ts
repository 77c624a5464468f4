/**
 * The entities that the rows of a file name, each once, with all that the rows say of it. Rows that contradict each
 * other, and rows that repeat each other, get the reason.
 */
import { isDeepStrictEqual } from "node:util";
import { type Fields, quoted } from "#mapping/readers/master-data/columns.ts";
import { columnOf, type StatedRow } from "#mapping/readers/master-data/rows.ts";
import type { MasterDataEntity } from "#wire/index.ts";

/** The name of an entity; fields that name it are also fields that it has. */
interface Key {
  /** `id`, or the field by which it is found. */
  readonly by: string;
  readonly value: string | number;
}

export interface Wanted {
  readonly entity: MasterDataEntity;
  readonly key: Key;
  readonly fields: Record<string, unknown>;
  /** The row that says each of them. */
  readonly saidIn: Map<string, StatedRow>;
  /** The site of a source, the source of a variable. */
  parent: Wanted | null;
  /** In their order, the first one included. */
  readonly rows: StatedRow[];
  /** The row that is about it, and not about something in it. */
  owner: StatedRow | null;
}

export interface WantedStructure {
  readonly sites: readonly Wanted[];
  readonly sources: readonly Wanted[];
  readonly variables: readonly Wanted[];
  readonly users: readonly Wanted[];
}

/** In the order of preference. */
const KEYS: Readonly<Record<MasterDataEntity, readonly string[]>> = {
  site: ["id", "name"],
  source: ["id", "serialNumber", "ean", "meterNumber", "name"],
  variable: ["id", "mappingConfig", "variableTypeId"],
  user: ["username", "businessId"],
};

/** Names of the columns that name an entity, for people. */
const KEY_COLUMNS: Readonly<Record<MasterDataEntity, string>> = {
  site: "site_name",
  source: "source_serial_number, source_ean, meter_number or source_name",
  variable: "mapping_config or variable_type",
  user: "user_name or user_id",
};

export function wantedOf(rows: readonly StatedRow[]): WantedStructure {
  const found = new WantedEntities();
  for (const row of rows) found.add(row);
  found.findOtherNames();
  return found.all();
}

export function placeWords({ sheet, row }: Pick<StatedRow, "sheet" | "row">): string {
  return sheet === null ? `row ${row}` : `row ${row} of sheet ${quoted(sheet)}`;
}

class WantedEntities {
  readonly #known: Readonly<Record<MasterDataEntity, Map<string, Wanted>>> = {
    site: new Map(),
    source: new Map(),
    variable: new Map(),
    user: new Map(),
  };

  all(): WantedStructure {
    const { site, source, variable, user } = this.#known;
    return {
      sites: [...site.values()],
      sources: [...source.values()],
      variables: [...variable.values()],
      users: [...user.values()],
    };
  }

  add(row: StatedRow): void {
    const { site, source, variable, user } = row.said;
    const ownSite = site === undefined ? null : this.#merge("site", site, row, null);
    const ownSource = source === undefined ? null : this.#merge("source", source, row, ownSite);
    if (variable !== undefined) {
      if (source === undefined && variable["id"] === undefined)
        row.reasons.push({ column: null, message: `it names no source of the variable (${KEY_COLUMNS.source})` });
      else this.#own(this.#merge("variable", variable, row, ownSource), row);
    } else this.#own(ownSource ?? ownSite, row);
    if (user !== undefined) this.#own(this.#merge("user", user, row, null), row);
  }

  /** A row is about the narrowest of the entities that it names. */
  #own(wanted: Wanted | null, row: StatedRow): void {
    if (wanted === null) return;
    if (wanted.owner !== null)
      row.reasons.push({ column: null, message: `it repeats ${placeWords(wanted.owner)}: ${wordsOf(wanted)}` });
    else wanted.owner = row;
  }

  #merge(entity: MasterDataEntity, said: Fields, row: StatedRow, parent: Wanted | null): Wanted | null {
    const key = keyOf(entity, said);
    if (key === null) {
      // A cell that cannot be read may be the one.
      if (row.reasons.length === 0)
        row.reasons.push({ column: null, message: `it does not name the ${entity}: fill ${KEY_COLUMNS[entity]}` });
      return null;
    }
    const id = identityOf(entity, key, parent);
    const wanted = this.#known[entity].get(id) ?? newWanted(entity, key, parent);
    this.#known[entity].set(id, wanted);
    wanted.rows.push(row);
    agreeOnParent(wanted, parent, row);
    for (const [field, value] of Object.entries(said)) agreeOn(wanted, field, value, row);
    return wanted;
  }

  /** A source that two rows name in different ways would be created twice. */
  findOtherNames(): void {
    const named = new Map<string, Wanted>();
    for (const wanted of this.#known.source.values())
      for (const field of KEYS.source.slice(1, -1)) {
        const value = wanted.fields[field];
        if (value === undefined) continue;
        const other = named.get(`${field} ${String(value)}`);
        named.set(`${field} ${String(value)}`, other ?? wanted);
        const [row] = wanted.rows;
        const [first] = other?.rows ?? [];
        if (other === undefined || row === undefined || first === undefined) continue;
        const owner = `${placeWords(first)} gives it to ${wordsOf(other)}`;
        const message = `${owner}: name a source in the same way in every row`;
        row.reasons.push({ column: columnOf(row, "source", field), message });
      }
  }
}

function newWanted(entity: MasterDataEntity, key: Key, parent: Wanted | null): Wanted {
  return { entity, key, parent, fields: {}, saidIn: new Map(), rows: [], owner: null };
}

function keyOf(entity: MasterDataEntity, said: Fields): Key | null {
  const by = KEYS[entity].find((field) => said[field] !== undefined);
  return by === undefined ? null : { by, value: said[by] as string | number };
}

/** Names of sources count within their site, and variables within their source. */
function identityOf(entity: MasterDataEntity, { by, value }: Key, parent: Wanted | null): string {
  const isWithin = entity === "variable" ? by !== "id" : entity === "source" && by === "name";
  const within = isWithin && parent !== null ? `${parent.key.by} ${parent.key.value}` : "";
  return JSON.stringify([within, isWithin && parent?.key.by === "name" ? parent.parent?.key.value : "", by, value]);
}

function agreeOnParent(wanted: Wanted, parent: Wanted | null, row: StatedRow): void {
  if (parent === null || wanted.parent === parent) return;
  if (wanted.parent === null) {
    wanted.parent = parent;
    return;
  }
  const [first] = wanted.rows;
  const place = first === undefined ? "" : ` in ${placeWords(first)}`;
  const message = `${wordsOf(wanted)} is in ${wordsOf(parent)} here, and in ${wordsOf(wanted.parent)}${place}`;
  row.reasons.push({ column: null, message });
}

function agreeOn(wanted: Wanted, field: string, value: unknown, row: StatedRow): void {
  const before = wanted.saidIn.get(field);
  if (before === undefined) {
    wanted.fields[field] = value;
    wanted.saidIn.set(field, row);
    return;
  }
  if (isDeepStrictEqual(wanted.fields[field], value)) return;
  const said = quoted(String(wanted.fields[field]));
  const message = `${wordsOf(wanted)} has ${quoted(String(value))} here, and ${said} in ${placeWords(before)}`;
  row.reasons.push({ column: columnOf(row, wanted.entity, field), message });
}

/** Such as `the source MTR-0042`. */
export function wordsOf({ entity, key, parent }: Pick<Wanted, "entity" | "key" | "parent">): string {
  const own = `the ${entity} ${key.by === "id" ? `with the id ${key.value}` : key.value}`;
  return entity === "variable" && parent !== null ? `${own} of ${wordsOf(parent)}` : own;
}

/** Records why an entity is refused, at the row that says the field. */
export function refuse(wanted: Wanted, why: string, field?: string): void {
  const row = (field === undefined ? undefined : wanted.saidIn.get(field)) ?? wanted.owner ?? wanted.rows[0];
  const column = row === undefined || field === undefined ? null : columnOf(row, wanted.entity, field);
  row?.reasons.push({ column, message: `${wordsOf(wanted)}: ${why}` });
}

/** Names of users are compared without regard to case. */
export function foldedName(name: string): string {
  return name.normalize("NFC").toLowerCase();
}
