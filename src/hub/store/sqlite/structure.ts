import type { DatabaseSync, SQLInputValue } from "node:sqlite";
import type { StoredSite, StoredSource, StoredVariable, StructureStore } from "../store.ts";
import { number, type Row, type Statements, statements, text, write } from "./database.ts";
import { installFolding } from "./filter-sql.ts";
import { listPage, Where } from "./filters.ts";

const SITES = { columns: "*", from: "site", order: "id" };
const SOURCES = {
  columns: "source.*, site.name AS site_name",
  from: "source JOIN site ON site.id = source.site_id",
  order: "source.id",
};
const VARIABLES = { columns: "*", from: "variable", order: "id" };
const FIRST = { offset: 0, limit: 1 };

export function createStructureStore(database: DatabaseSync): StructureStore {
  installFolding(database);
  const tools = statements(database);
  return {
    ...creators(database, tools),
    async sites(accountId, filter, page) {
      const where = new Where()
        .equal("account_id", accountId)
        .among("id", filter.ids)
        .holding("site", filter.where);
      const { rows, total } = listPage(tools, SITES, where, page);
      return { rows: rows.map(siteOf), total };
    },
    async sources(accountId, filter, page) {
      const where = new Where()
        .equal("source.account_id", accountId)
        .among("source.id", filter.ids)
        .among("source.site_id", filter.siteIds)
        .among("source.state", filter.states)
        .among("source.ean", filter.eans)
        .among("source.serial_number", filter.serialNumbers)
        .among("source.meter_number", filter.meterNumbers)
        .among("source.name", filter.names)
        .sharing("source.tags", filter.tags)
        .holding("source", filter.where);
      const { rows, total } = listPage(tools, SOURCES, where, page);
      return { rows: rows.map(sourceOf), total };
    },
    async variables(accountId, filter, page) {
      const where = new Where()
        .equal("account_id", accountId)
        .among("id", filter.ids)
        .among("source_id", filter.sourceIds)
        .among("variable_type_id", filter.variableTypeIds)
        .sharing("tags", filter.tags);
      const { rows, total } = listPage(tools, VARIABLES, where, page);
      return { rows: rows.map(variableOf), total };
    },
  };
}

function creators(
  database: DatabaseSync,
  tools: Statements,
): Pick<StructureStore, "createSite" | "createSource" | "createVariable"> {
  const insert = (table: string, columns: Record<string, SQLInputValue | undefined>): number => {
    const names = Object.keys(columns);
    const sql = `INSERT INTO ${table} (${names.join(", ")}) VALUES (${names.map(() => "?").join(", ")})`;
    return tools.run(sql, ...Object.values(columns).map((value) => value ?? null)).id;
  };
  const owned = (table: "site" | "source", id: number, accountId: number) =>
    tools.get(`SELECT 1 FROM ${table} WHERE id = ? AND account_id = ?`, id, accountId) !== undefined;
  return {
    createSite: (accountId, body) =>
      write(database, () => insert("site", { account_id: accountId, ...siteColumns(body) })),
    createSource: (accountId, body) =>
      write(database, () => {
        if (!owned("site", body.siteId, accountId)) return null;
        const id = insert("source", { account_id: accountId, ...sourceColumns(body) });
        const [row] = listPage(tools, SOURCES, new Where().equal("source.id", id), FIRST).rows;
        return row === undefined ? null : sourceOf(row);
      }),
    createVariable: (accountId, body) =>
      write(database, () =>
        owned("source", body.sourceId, accountId)
          ? insert("variable", { account_id: accountId, ...variableColumns(body) })
          : null,
      ),
  };
}

function siteColumns(body: Parameters<StructureStore["createSite"]>[1]) {
  return {
    name: body.name,
    type_id: body.typeId,
    time_zone_id: body.timeZoneId,
    street: body.street,
    postal_code: body.postalCode,
    city: body.city,
    country: body.country,
  };
}

function sourceColumns(body: Parameters<StructureStore["createSource"]>[1]) {
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
    tags: JSON.stringify(body.tags ?? []),
    client_data: body.clientData === undefined ? null : JSON.stringify(body.clientData),
  };
}

function variableColumns(body: Parameters<StructureStore["createVariable"]>[1]) {
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
    tags: JSON.stringify(body.tags ?? []),
    is_versioned: body.isVersioned === true ? 1 : 0,
  };
}

function siteOf(row: Row): StoredSite {
  return {
    id: Number(row["id"]),
    name: String(row["name"]),
    typeId: Number(row["type_id"]),
    timeZoneId: String(row["time_zone_id"]),
    street: text(row["street"]),
    postalCode: text(row["postal_code"]),
    city: text(row["city"]),
    country: text(row["country"]),
  };
}

function sourceOf(row: Row): StoredSource {
  const clientData = text(row["client_data"]);
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
    clientData: clientData === null ? null : JSON.parse(clientData),
    state: String(row["state"]),
  };
}

function variableOf(row: Row): StoredVariable {
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
    isVersioned: row["is_versioned"] === 1,
    divider: number(row["divider"]),
  };
}
