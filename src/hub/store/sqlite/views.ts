import type { DatabaseSync } from "node:sqlite";
import { type View, view } from "../../../wire/index.ts";
import type { ViewStore } from "../store.ts";
import { Where } from "../where.ts";
import { type Row, statements, write } from "./database.ts";
import { listPage, SQLITE } from "./dialect.ts";

const VIEWS = { columns: "*", from: "view", order: "id" };

export function createViewStore(database: DatabaseSync): ViewStore {
  const tools = statements(database);
  return {
    create: (accountId, { name, entityType, customFilter }) =>
      write(database, () => {
        const sql = "INSERT INTO view (account_id, name, entity_type, custom_filter) VALUES (?, ?, ?, ?)";
        return tools.run(sql, accountId, name, entityType, customFilter).id;
      }),
    async list(accountId, filter, page) {
      const where = new Where(SQLITE)
        .equal("account_id", accountId)
        .among("id", filter.ids)
        .among("entity_type", filter.entityTypes);
      const { rows, total } = listPage(tools, VIEWS, where, page);
      return { rows: rows.map(viewOf), total };
    },
    remove: (accountId, id) =>
      write(
        database,
        () => tools.run("DELETE FROM view WHERE id = ? AND account_id = ?", id, accountId).changes > 0,
      ),
  };
}

function viewOf(row: Row): View {
  const { id, name, entity_type: entityType, custom_filter: customFilter } = row;
  return view.parse({ id, name, entityType, customFilter });
}
