import type pg from "pg";
import { type View, view } from "../../../wire/index.ts";
import type { ViewStore } from "../store.ts";
import { Where } from "../where.ts";
import { type Row, sqlOn } from "./database.ts";
import { listPage, POSTGRES } from "./dialect.ts";

const VIEWS = { columns: "*", from: "view", order: "id" };

export function createViewStore(pool: pg.Pool): ViewStore {
  const sql = sqlOn(pool);
  return {
    async create(accountId, { name, entityType, customFilter }) {
      const text =
        "INSERT INTO view (account_id, name, entity_type, custom_filter) VALUES (?, ?, ?, ?) RETURNING id";
      return Number((await sql.get(text, accountId, name, entityType, customFilter))?.["id"]);
    },
    async list(accountId, filter, page) {
      const where = new Where(POSTGRES)
        .equal("account_id", accountId)
        .among("id", filter.ids)
        .among("entity_type", filter.entityTypes);
      const { rows, total } = await listPage(sql, VIEWS, where, page);
      return { rows: rows.map(viewOf), total };
    },
    async remove(accountId, id) {
      return (await sql.run("DELETE FROM view WHERE id = ? AND account_id = ?", id, accountId)) > 0;
    },
  };
}

function viewOf(row: Row): View {
  const { id, name, entity_type: entityType, custom_filter: customFilter } = row;
  return view.parse({ id, name, entityType, customFilter });
}
