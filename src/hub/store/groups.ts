/** Groups of sites of an account. */
import type { Group, GroupBody } from "#wire/index.ts";
import { change, type Database, insert, row, rows, type Steps } from "./database.ts";
import { addStructureEvent, type ChangedStructure } from "./events/structure-events.ts";
import { requireRoom } from "./owned.ts";
import type { Listing, Page } from "./records.ts";
import { text } from "./structure-rows.ts";
import { Where } from "./where.ts";

export interface GroupStore {
  /** Sites that the account does not have, and then nothing was created. */
  create(accountId: number, body: GroupBody, most: number): Promise<number | readonly number[]>;
  /** Ordered by id, with the sites of each in their order. */
  list(accountId: number, filter: { readonly ids?: readonly number[] }, page: Page): Promise<Listing<Group>>;
  /** Sites that the group has stay; returns those that the account does not have, and then nothing was added. */
  addSites(accountId: number, id: number, siteIds: readonly number[]): Promise<readonly number[] | "missing">;
  /** False when the account has no such group, or the group no such site. */
  removeSite(accountId: number, id: number, siteId: number): Promise<boolean>;
  /** The sites stay. False when the account has no such group. */
  remove(accountId: number, id: number): Promise<boolean>;
}

function* groupOf(accountId: number, id: number): Steps<ChangedStructure> {
  const found = yield* row("SELECT name FROM site_group WHERE id = ? AND account_id = ?", id, accountId);
  return { kind: "group", id, name: text(found?.["name"]) };
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
    create: (accountId, { name, siteIds = [] }, most) =>
      database.write(function* (): Steps<number | readonly number[]> {
        yield* requireRoom(dialect, accountId, "site_group", most);
        const unknown = yield* foreign(accountId, siteIds);
        if (unknown.length > 0) return unknown;
        const id = yield* insert("site_group", { account_id: accountId, name });
        yield* add(id, siteIds);
        yield* addStructureEvent(accountId, "created", { kind: "group", id, name });
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
        if (unknown.length > 0) return unknown;
        yield* add(id, siteIds);
        yield* addStructureEvent(accountId, "changed", { ...(yield* groupOf(accountId, id)), facts: { siteIds } });
        return [];
      }),
    removeSite: (accountId, id, siteId) =>
      database.write(function* (): Steps<boolean> {
        const own = "group_id IN (SELECT id FROM site_group WHERE id = ? AND account_id = ?)";
        const removed = yield* change(
          `DELETE FROM site_group_member WHERE ${own} AND site_id = ?`,
          ...[id, accountId, siteId],
        );
        if (removed === 0) return false;
        const facts = { removedSiteIds: [siteId] };
        yield* addStructureEvent(accountId, "changed", { ...(yield* groupOf(accountId, id)), facts });
        return true;
      }),
    remove: (accountId, id) =>
      database.write(function* (): Steps<boolean> {
        const group = yield* groupOf(accountId, id);
        const sql = "DELETE FROM site_group WHERE id = ? AND account_id = ?";
        if ((yield* change(sql, id, accountId)) === 0) return false;
        yield* addStructureEvent(accountId, "removed", group);
        return true;
      }),
  };
}
