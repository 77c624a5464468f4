/** Named filters of an account. */
import { type View, type ViewBody, view } from "#wire/index.ts";
import { type Database, insert, listed, type Row, type Steps } from "./database.ts";
import { requireRoom } from "./owned.ts";
import type { Listing, Page } from "./store.ts";
import { Where } from "./where.ts";

interface ViewsFilter {
  readonly ids?: readonly number[] | undefined;
  readonly entityTypes?: readonly View["entityType"][] | undefined;
}

export interface ViewStore {
  /** Throws `AccountFull` where the account has `most`. */
  create(accountId: number, body: ViewBody, most: number): Promise<number>;
  /** Ordered by id. */
  list(accountId: number, filter: ViewsFilter, page: Page): Promise<Listing<View>>;
  /** False when the account has no such view. */
  remove(accountId: number, id: number): Promise<boolean>;
}

const VIEWS = { columns: "*", from: "view", order: "id" };

export function createViewStore(database: Database): ViewStore {
  const { dialect } = database;
  return {
    create: (accountId, { name, entityType, customFilter }, most) =>
      database.write(function* (): Steps<number> {
        yield* requireRoom(dialect, accountId, "view", most);
        const columns = { account_id: accountId, name, entity_type: entityType, custom_filter: customFilter };
        return yield* insert("view", columns);
      }),
    list(accountId, filter, page) {
      const where = new Where(dialect)
        .equal("account_id", accountId)
        .among("id", filter.ids)
        .among("entity_type", filter.entityTypes);
      return listed(database, VIEWS, where, page, viewOf);
    },
    async remove(accountId, id) {
      const sql = "DELETE FROM view WHERE id = ? AND account_id = ?";
      return (await database.run(sql, id, accountId)) > 0;
    },
  };
}

function viewOf(row: Row): View {
  const { id, name, entity_type: entityType, custom_filter: customFilter } = row;
  return view.parse({ id, name, entityType, customFilter });
}
