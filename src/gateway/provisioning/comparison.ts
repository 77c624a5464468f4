/** Finds existing structure that differs from the stated one. Nothing of it is changed. */
import { eachItem, type ServiceClient } from "#wire/client/index.ts";
import { QUANTITY_TYPES, TIME_PERIODS, VARIABLE_TYPES } from "#wire/referentials.ts";
import type { Site, Source, Variable } from "#wire/structure.ts";
import { type ListedUnit, namesUnit } from "#wire/units.ts";
import type { Difference, Entity, Wanted } from "./wanted.ts";

/** The existing structure of one target. */
export interface Found {
  readonly wanted: Wanted;
  readonly sourceId: number;
  /** Null: only the source exists. */
  readonly variableId: number | null;
}

const IDS_PER_CALL = 80;

/** Fields that are compared, and those that decide what a value means. */
const FIELDS = {
  site: ["typeId", "timeZoneId", "street", "postalCode", "city", "country"],
  source: ["name", "serialNumber", "ean", "meterNumber", "sourceTypeId", "energyTypeId", "timeZoneId", "description"],
  variable: ["name", "variableTypeId", "granularity", "granularityTimeBase", "quantityType", "isVersioned", "divider"],
} as const;
const WEIGHTY: ReadonlySet<string> = new Set(["timeZoneId", "isVersioned", "unit", "divider"]);

export async function compareFound(
  wanted: readonly Wanted[],
  found: readonly Found[],
  { client, units, sites }: { client: ServiceClient; units: readonly ListedUnit[]; sites: readonly Site[] },
  signal: AbortSignal,
): Promise<readonly Difference[]> {
  const stated = found.filter(({ wanted }) => wanted.stated !== null);
  const sources = await byId(
    stated.map(({ sourceId }) => sourceId),
    (Ids, paging) => client.getSources({ Ids, ...paging, DisplayLevel: "Verbose" }, signal),
  );
  const variables = await byId(
    stated.flatMap(({ variableId }) => variableId ?? []),
    (Ids, paging) => client.getVariables({ Ids, ...paging }, signal),
  );
  const differences = new Map<string, Difference>();
  const add = (one: Difference) => {
    const key = `${one.entity} ${one.id} ${one.field} ${one.stated}`;
    if (!differences.has(key)) differences.set(key, one);
  };
  for (const one of wanted) {
    const site = sites.find(({ name }) => name === one.stated?.site.name);
    if (site !== undefined) compareFields("site", one, site, one.stated?.site ?? {}, add);
  }
  for (const { wanted: one, sourceId, variableId } of stated) {
    const source = sources.get(sourceId);
    if (source !== undefined) compareSource(one, source, sites, add);
    const variable = variableId === null ? undefined : variables.get(variableId);
    if (variable !== undefined) compareVariable(one, variable, units, add);
  }
  return [...differences.values()];
}

type Add = (difference: Difference) => void;

function compareSource(wanted: Wanted, source: Source, sites: readonly Site[], add: Add): void {
  const { stated, words } = wanted;
  if (stated === null) return;
  const at = sites.find(({ id }) => id === source.siteId);
  if (at !== undefined && at.name !== stated.site.name)
    add({
      ...{ entity: "source", id: source.id, name: source.name, field: "site", target: words },
      ...{ there: at.name, stated: stated.site.name ?? "", isWeighty: true },
    });
  compareFields("source", wanted, source, stated.source, add);
}

function compareVariable(wanted: Wanted, variable: Variable, units: readonly ListedUnit[], add: Add): void {
  const { stated, words } = wanted;
  if (stated === null) return;
  const unit = units.find(({ id }) => id === variable.unitId);
  if (unit === undefined || !namesUnit(stated.unit, unit))
    add({
      ...{ entity: "variable", id: variable.id, name: variable.name, field: "unit", target: words },
      ...{
        there: unit?.symbol ?? unit?.name ?? `unit ${variable.unitId}`,
        stated: stated.unit,
        isWeighty: true,
      },
    });
  compareFields("variable", wanted, variable, stated.variable, add);
}

/** A field that was not stated may have any value. */
function compareFields(
  entity: Entity,
  { words }: Wanted,
  there: { readonly id: number; readonly name: string } & Readonly<Record<string, unknown>>,
  stated: Readonly<Record<string, unknown>>,
  add: Add,
): void {
  for (const field of FIELDS[entity]) {
    const value = stated[field];
    if (value === undefined || value === (there[field] ?? null)) continue;
    // An unset field in the account means not versioned.
    if (field === "isVersioned" && value === false && (there[field] ?? false) === false) continue;
    add({
      ...{ entity, id: there.id, name: there.name, field, target: words, isWeighty: WEIGHTY.has(field) },
      ...{ there: valueWords(field, there[field]), stated: valueWords(field, value) },
    });
  }
}

function valueWords(field: string, value: unknown): string {
  if (value === undefined || value === null) return "none";
  if (field === "granularityTimeBase") return TIME_PERIODS[String(value)] ?? String(value);
  if (field === "quantityType") return QUANTITY_TYPES[String(value)] ?? String(value);
  if (field === "variableTypeId")
    return `${value} (${VARIABLE_TYPES.find(({ id }) => id === value)?.name ?? "unknown"})`;
  return String(value);
}

type Paging = Parameters<Parameters<typeof eachItem>[0]>[0];

async function byId<Item extends { readonly id: number }>(
  ids: readonly number[],
  page: (ids: number[], paging: Paging) => Promise<{ items: readonly Item[]; total: number | null }>,
): Promise<ReadonlyMap<number, Item>> {
  const found = new Map<number, Item>();
  const distinct = [...new Set(ids)];
  for (let at = 0; at < distinct.length; at += IDS_PER_CALL) {
    const some = distinct.slice(at, at + IDS_PER_CALL);
    await eachItem(
      (paging) => page(some, paging),
      (item) => found.set(item.id, item),
    );
  }
  return found;
}
