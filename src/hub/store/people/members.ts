/** Users of an account: lists, and changes that wait for each other. */
import { apartFor, type Database, type Row, rows, type Steps, type StoreDialect } from "../database.ts";
import { foldedText } from "../filter-sql.ts";
import type { Listing, Page } from "../records.ts";
import { Where } from "../where.ts";
import { USER_ORDER, USER_ROWS, type UserRecord, usersOf } from "./records.ts";

/** Fields combine with AND; absent ones do not filter. Names and addresses are found in any case. */
export interface MembersFilter {
  readonly ids?: readonly number[] | undefined;
  readonly usernames?: readonly string[] | undefined;
  readonly emails?: readonly string[] | undefined;
  readonly businessIds?: readonly string[] | undefined;
}

const MEMBERS = {
  columns: "hub_user.id",
  from: "membership JOIN hub_user ON hub_user.id = membership.user_id",
  order: "hub_user.id",
};

/** Ordered by id. */
export function listMembers(
  database: Database,
  accountId: number,
  { ids, usernames, emails, businessIds }: MembersFilter,
  page: Page,
): Promise<Listing<UserRecord>> {
  const { dialect } = database;
  const where = new Where(dialect)
    .equal("membership.account_id", accountId)
    .among("hub_user.id", ids)
    .among("hub_user.email_key", emails?.map(foldedText))
    .among("membership.business_id", businessIds);
  if (usernames !== undefined) {
    const either = `(${dialect.among("hub_user.username")} OR ${dialect.among("hub_user.username_key")})`;
    where.condition({ sql: either, values: [usernames, usernames.map(foldedText)] });
  }
  return apartFor(database, accountId, [usernames, emails, businessIds]).ask(function* (): Steps<Listing<UserRecord>> {
    const { rows: listed, total } = yield* dialect.page(MEMBERS, where, page);
    const wanted = listed.map((one) => Number(one["id"]));
    const found: readonly Row[] = yield* rows(
      `${USER_ROWS} WHERE ${dialect.among("hub_user.id")} ${USER_ORDER}`,
      wanted,
    );
    return { rows: usersOf(found), total };
  });
}

/** For use inside a write: all members of the account, which no other transaction changes until this one ends. */
export function* heldMembers({ forUpdate }: StoreDialect, accountId: number): Steps<readonly UserRecord[]> {
  const sql = `SELECT user_id FROM membership WHERE account_id = ? ORDER BY user_id${forUpdate("membership")}`;
  yield* rows(sql, accountId);
  const members = "hub_user.id IN (SELECT user_id FROM membership WHERE account_id = ?)";
  return usersOf(yield* rows(`${USER_ROWS} WHERE ${members} ${USER_ORDER}`, accountId));
}

/** A member and the one who changes it, as they are at the begin of the transaction and until it ends. */
export interface HeldMember {
  readonly user: UserRecord;
  readonly caller: UserRecord;
  /** Whether a user other than the member is an active Manager or Admin of the account, also until it ends. */
  hasOtherManager(): Steps<boolean>;
}

/** For use inside a write. Null: the account has no such user. */
export function* memberToChange(
  dialect: StoreDialect,
  accountId: number,
  userId: number,
  callerId: number,
): Steps<HeldMember | null> {
  const held = yield* usersToChange(dialect, [userId, callerId]);
  const user = held.get(userId);
  const caller = held.get(callerId);
  if (user?.memberships.some((one) => one.accountId === accountId) !== true || caller === undefined) return null;
  const hasOtherManager = function* (): Steps<boolean> {
    // Two who leave at one moment do so one after the other.
    const lock = dialect.forUpdate("structure_change");
    yield* rows(`SELECT account_id FROM structure_change WHERE account_id = ?${lock}`, accountId);
    const isManager = ["Manager", "Admin"].map((role) => `CAST(roles AS TEXT) LIKE '%"${role}"%'`).join(" OR ");
    const sql = `SELECT 1 FROM membership JOIN hub_user ON hub_user.id = membership.user_id
      WHERE account_id = ? AND user_id <> ? AND state = 'Active' AND (${isManager}) LIMIT 1`;
    return (yield* rows(sql, accountId, userId)).length > 0;
  };
  return { user, caller, hasOtherManager };
}

/** For use inside a write: these users, whom no other transaction changes until this one ends. */
export function* usersToChange(
  { forUpdate, among }: StoreDialect,
  ids: readonly number[],
): Steps<ReadonlyMap<number, UserRecord>> {
  yield* rows(`SELECT id FROM hub_user WHERE ${among("id")} ORDER BY id${forUpdate("hub_user")}`, ids);
  const found = usersOf(yield* rows(`${USER_ROWS} WHERE ${among("hub_user.id")} ${USER_ORDER}`, ids));
  return new Map(found.map((one) => [one.id, one]));
}
