import type pg from "pg";
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
import { type Sql, sqlOn, transact } from "./database.ts";
import { listPage, POSTGRES } from "./dialect.ts";
import { noteChange } from "./lanes.ts";
import { structureChanges } from "./structure-changes.ts";

const SITES = { columns: "*", from: "site", order: "id" };
const VARIABLES = { columns: "*", from: "variable", order: "id" };
const FIRST = { offset: 0, limit: 1 };

export function createStructureStore(pool: pg.Pool): StructureStore {
  const sql = sqlOn(pool);
  return {
    ...creators(pool),
    ...structureChanges(pool),
    async sites(accountId, filter, page) {
      const where = new Where(POSTGRES)
        .equal("account_id", accountId)
        .among("id", filter.ids)
        .holding("site", filter.where);
      const { rows, total } = await listPage(sql, SITES, where, page);
      return { rows: rows.map(siteOf), total };
    },
    async sources(accountId, filter, page) {
      const where = new Where(POSTGRES)
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
      const { rows, total } = await listPage(sql, SOURCES, where, page);
      return { rows: rows.map(sourceOf), total };
    },
    async variables(accountId, filter, page) {
      const where = new Where(POSTGRES)
        .equal("account_id", accountId)
        .among("id", filter.ids)
        .among("source_id", filter.sourceIds)
        .among("variable_type_id", filter.variableTypeIds)
        .sharing("tags", filter.tags);
      const { rows, total } = await listPage(sql, VARIABLES, where, page);
      return { rows: rows.map(variableOf), total };
    },
  };
}

function creators(pool: pg.Pool): Pick<StructureStore, "createSite" | "createSource" | "createVariable"> {
  return {
    createSite: (accountId, body) =>
      transact(pool, (sql) => insert(sql, "site", { account_id: accountId, ...siteColumns(body) })),
    createSource: (accountId, body) =>
      transact(pool, async (sql) => {
        await noteChange(sql, accountId);
        if (!(await keepOwned(sql, "site", body.siteId, accountId))) return null;
        const id = await insert(sql, "source", { account_id: accountId, ...sourceColumns(body) });
        const where = new Where(POSTGRES).equal("source.id", id);
        const [row] = (await listPage(sql, SOURCES, where, FIRST)).rows;
        return row === undefined ? null : sourceOf(row);
      }),
    createVariable: (accountId, body) =>
      transact(pool, async (sql) => {
        await noteChange(sql, accountId);
        if (!(await keepOwned(sql, "source", body.sourceId, accountId))) return null;
        return insert(sql, "variable", { account_id: accountId, ...variableColumns(body) });
      }),
  };
}

async function insert(
  { get }: Sql,
  table: string,
  columns: Record<string, SqlValue | undefined>,
): Promise<number> {
  const names = Object.keys(columns);
  const text = `INSERT INTO ${table} (${names.join(", ")}) VALUES (${names.map(() => "?").join(", ")}) RETURNING id`;
  const row = await get(text, ...Object.values(columns).map((value) => value ?? null));
  return Number(row?.["id"]);
}

/** Whether the parent is one of the account; it stays until the transaction ends. */
async function keepOwned(
  { get }: Sql,
  table: "site" | "source",
  id: number,
  accountId: number,
): Promise<boolean> {
  const text = `SELECT 1 FROM ${table} WHERE id = ? AND account_id = ? FOR KEY SHARE`;
  return (await get(text, id, accountId)) !== undefined;
}
