/** Groups of sites of an account. */
import type { Group, GroupBody } from "../../wire/index.ts";
import { change, type Database, insert, row, rows, type Steps } from "./database.ts";
import type { Listing, Page } from "./store.ts";
import { Where } from "./where.ts";

export interface GroupStore {
  /** Sites that the account does not have, and then nothing was created. */
  create(accountId: number, body: GroupBody): Promise<number | readonly number[]>;
  /** Ordered by id, with the sites of each in their order. */
  list(accountId: number, filter: { readonly ids?: readonly number[] }, page: Page): Promise<Listing<Group>>;
  /** Sites that the group has stay; returns those that the account does not have, and then nothing was added. */
  addSites(accountId: number, id: number, siteIds: readonly number[]): Promise<readonly number[] | "missing">;
  /** False when the account has no such group, or the group no such site. */
  removeSite(accountId: number, id: number, siteId: number): Promise<boolean>;
  /** The sites stay. False when the account has no such group. */
  remove(accountId: number, id: number): Promise<boolean>;
}

const GROUPS = { columns: "*", from: "site_group", order: "id" };

export function createGroupStore(database: Database): GroupStore {
  const { dialect } = database;
  const { among, forKeyShare, forUpdate } = dialect;
  function* foreign(accountId: number, siteIds: readonly number[]): Steps<readonly number[]> {
    const sql = `SELECT id FROM site WHERE account_id = ? AND ${among("id")} ORDER BY id${forKeyShare}`;
    const own = new Set((yield* rows(sql, accountId, siteIds)).map((one) => Number(one["id"])));
    return siteIds.filter((id) => !own.has(id));
  }
  function* add(id: number, siteIds: readonly number[]): Steps<void> {
    const sql = `INSERT INTO site_group_member (group_id, site_id)
      SELECT CAST(? AS BIGINT), id FROM site WHERE ${among("id")} ON CONFLICT DO NOTHING`;
    yield* change(sql, id, siteIds);
  }
  return {
    create: (accountId, { name, siteIds = [] }) =>
      database.write(function* (): Steps<number | readonly number[]> {
        const unknown = yield* foreign(accountId, siteIds);
        if (unknown.length > 0) return unknown;
        const id = yield* insert("site_group", { account_id: accountId, name });
        yield* add(id, siteIds);
        return id;
      }),
    list: (accountId, { ids }, page) =>
      database.ask(function* (): Steps<Listing<Group>> {
        const where = new Where(dialect).equal("account_id", accountId).among("id", ids);
        const listed = yield* dialect.page(GROUPS, where, page);
        const own = listed.rows.map((one) => Number(one["id"]));
        const sql = `SELECT group_id, site_id FROM site_group_member WHERE ${among("group_id")} ORDER BY site_id`;
        const members = Map.groupBy(yield* rows(sql, own), (one) => Number(one["group_id"]));
        const groups = listed.rows.map((one) => {
          const id = Number(one["id"]);
          const siteIds = (members.get(id) ?? []).map((member) => Number(member["site_id"]));
          return { id, name: String(one["name"]), siteIds };
        });
        return { rows: groups, total: listed.total };
      }),
    addSites: (accountId, id, siteIds) =>
      database.write(function* (): Steps<readonly number[] | "missing"> {
        const sql = `SELECT 1 FROM site_group WHERE id = ? AND account_id = ?${forUpdate("site_group")}`;
        if ((yield* row(sql, id, accountId)) === undefined) return "missing";
        const unknown = yield* foreign(accountId, siteIds);
        if (unknown.length === 0) yield* add(id, siteIds);
        return unknown;
      }),
    async removeSite(accountId, id, siteId) {
      const own = "group_id IN (SELECT id FROM site_group WHERE id = ? AND account_id = ?)";
      const sql = `DELETE FROM site_group_member WHERE ${own} AND site_id = ?`;
      return (await database.run(sql, id, accountId, siteId)) > 0;
    },
    async remove(accountId, id) {
      return (await database.run("DELETE FROM site_group WHERE id = ? AND account_id = ?", id, accountId)) > 0;
    },
  };
}
