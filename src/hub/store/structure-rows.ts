/**
 * Converts sites, sources and variables from and to rows of their tables, which have the same columns in both
 * stores.
 */
import { type Calculated, calculated, type SiteBody, type SourceBody, type VariableBody } from "#wire/index.ts";
import type { StoredSite, StoredSource, StoredVariable, VariableFacts } from "./records.ts";

/** JSON as text. A boolean is 1 or 0 where the database has none. */
type Row = Readonly<Record<string, unknown>>;

export const text = (value: unknown): string | null => (typeof value === "string" ? value : null);
export const number = (value: unknown): number | null => (typeof value === "number" ? value : null);
export const truth = (value: unknown): boolean => value === true || value === 1;

/** Half a surrogate pair would be written as an escape that PostgreSQL stores but cannot read. */
export function jsonOf(value: unknown): string {
  return JSON.stringify(wellFormed(value));
}

function wellFormed(value: unknown): unknown {
  if (typeof value === "string") return value.toWellFormed();
  if (Array.isArray(value)) return value.map(wellFormed);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name.toWellFormed(), wellFormed(one)]));
}

/** Sources are listed with the names of their sites. */
export const SOURCES = {
  columns: "source.*, site.name AS site_name",
  from: "source JOIN site ON site.id = source.site_id",
  order: "source.id",
};

export const FACT_COLUMNS = `variable.id, variable.account_id, variable.source_id, variable.unit_id,
  variable.is_versioned, variable.versions_max, variable.calculated IS NOT NULL AS is_calculated,
  coalesce(source.time_zone_id, site.time_zone_id) AS source_zone, site.time_zone_id AS site_zone`;
export const VARIABLE_FACTS = `${FACT_COLUMNS}
  FROM variable JOIN source ON source.id = variable.source_id JOIN site ON site.id = source.site_id`;

export function siteColumns(body: SiteBody) {
  return {
    name: body.name,
    type_id: body.typeId,
    time_zone_id: body.timeZoneId,
    street: body.street,
    postal_code: body.postalCode,
    city: body.city,
    country: body.country,
    client_data: body.clientData === undefined ? null : jsonOf(body.clientData),
  };
}

export function sourceColumns(body: SourceBody) {
  return {
    site_id: body.siteId,
    name: body.name,
    serial_number: body.serialNumber,
    ean: body.ean,
    meter_number: body.meterNumber,
    source_type_id: body.sourceTypeId,
    energy_type_id: body.energyTypeId,
    energy_usage_id: body.energyUsageId,
    gateway_type_id: body.gatewayTypeId,
    time_zone_id: body.timeZoneId,
    description: body.description,
    localisation: body.localisation,
    meter_address: body.meterAddress,
    tags: jsonOf(body.tags ?? []),
    client_data: body.clientData === undefined ? null : jsonOf(body.clientData),
  };
}

export function variableColumns(body: VariableBody) {
  return {
    source_id: body.sourceId,
    name: body.name,
    variable_type_id: body.variableTypeId,
    unit_id: body.unitId,
    granularity: body.granularity,
    granularity_time_base: body.granularityTimeBase,
    quantity_type: body.quantityType,
    aggregate: body.aggregate,
    mapping_config: body.mappingConfig,
    divider: body.divider,
    tags: jsonOf(body.tags ?? []),
    is_versioned: body.isVersioned === true,
    versions_max: body.versionsMax,
  };
}

export function siteOf(row: Row): StoredSite {
  return {
    id: Number(row["id"]),
    name: String(row["name"]),
    typeId: Number(row["type_id"]),
    timeZoneId: String(row["time_zone_id"]),
    street: text(row["street"]),
    postalCode: text(row["postal_code"]),
    city: text(row["city"]),
    country: text(row["country"]),
    clientData: fieldsOf(row["client_data"]),
  };
}

export function sourceOf(row: Row): StoredSource {
  return {
    id: Number(row["id"]),
    name: String(row["name"]),
    siteId: Number(row["site_id"]),
    siteName: String(row["site_name"]),
    serialNumber: text(row["serial_number"]),
    ean: text(row["ean"]),
    meterNumber: text(row["meter_number"]),
    sourceTypeId: Number(row["source_type_id"]),
    energyTypeId: number(row["energy_type_id"]),
    energyUsageId: number(row["energy_usage_id"]),
    gatewayTypeId: number(row["gateway_type_id"]),
    timeZoneId: text(row["time_zone_id"]),
    description: text(row["description"]),
    localisation: text(row["localisation"]),
    meterAddress: text(row["meter_address"]),
    tags: JSON.parse(String(row["tags"])),
    clientData: fieldsOf(row["client_data"]),
    state: String(row["state"]),
  };
}

function fieldsOf(value: unknown): Record<string, unknown> | null {
  const json = text(value);
  return json === null ? null : JSON.parse(json);
}

export function variableOf(row: Row): StoredVariable {
  return {
    id: Number(row["id"]),
    name: String(row["name"]),
    sourceId: Number(row["source_id"]),
    variableTypeId: Number(row["variable_type_id"]),
    unitId: Number(row["unit_id"]),
    granularity: number(row["granularity"]),
    granularityTimeBase: number(row["granularity_time_base"]),
    quantityType: number(row["quantity_type"]),
    aggregate: number(row["aggregate"]),
    mappingConfig: text(row["mapping_config"]),
    tags: JSON.parse(String(row["tags"])),
    isVersioned: truth(row["is_versioned"]),
    versionsMax: number(row["versions_max"]),
    divider: number(row["divider"]),
    calculated: definitionOf(row["calculated"]),
  };
}

function definitionOf(value: unknown): Calculated | null {
  const json = text(value);
  return json === null ? null : calculated.parse(JSON.parse(json));
}

/** For a row of the columns `VARIABLE_FACTS`. */
export function factsOf(row: Row): VariableFacts {
  return {
    id: Number(row["id"]),
    accountId: Number(row["account_id"]),
    sourceId: Number(row["source_id"]),
    unitId: Number(row["unit_id"]),
    isVersioned: truth(row["is_versioned"]),
    isCalculated: truth(row["is_calculated"]),
    versionsMax: number(row["versions_max"]),
    sourceZoneId: String(row["source_zone"]),
    siteZoneId: String(row["site_zone"]),
  };
}
