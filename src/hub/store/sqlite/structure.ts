import type { DatabaseSync } from "node:sqlite";
import type { SqlValue } from "../filter-sql.ts";
import type { StructureStore } from "../store.ts";
import {
  SOURCES,
  siteColumns,
  siteOf,
  sourceColumns,
  sourceOf,
  variableColumns,
  variableOf,
} from "../structure-rows.ts";
import { Where } from "../where.ts";
import { type Statements, statements, write } from "./database.ts";
import { bound, installFolding, listPage, SQLITE } from "./dialect.ts";
import { structureChanges } from "./structure-changes.ts";

const SITES = { columns: "*", from: "site", order: "id" };
const VARIABLES = { columns: "*", from: "variable", order: "id" };
const FIRST = { offset: 0, limit: 1 };

export function createStructureStore(database: DatabaseSync): StructureStore {
  installFolding(database);
  const tools = statements(database);
  return {
    ...creators(database, tools),
    ...structureChanges(database, tools),
    async sites(accountId, filter, page) {
      const where = new Where(SQLITE)
        .equal("account_id", accountId)
        .among("id", filter.ids)
        .holding("site", filter.where);
      const { rows, total } = listPage(tools, SITES, where, page);
      return { rows: rows.map(siteOf), total };
    },
    async sources(accountId, filter, page) {
      const where = new Where(SQLITE)
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
      const where = new Where(SQLITE)
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
  const insert = (table: string, columns: Record<string, SqlValue | undefined>): number => {
    const names = Object.keys(columns);
    const sql = `INSERT INTO ${table} (${names.join(", ")}) VALUES (${names.map(() => "?").join(", ")})`;
    return tools.run(sql, ...Object.values(columns).map(bound)).id;
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
        const [row] = listPage(tools, SOURCES, new Where(SQLITE).equal("source.id", id), FIRST).rows;
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
