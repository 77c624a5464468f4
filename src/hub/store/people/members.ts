/** Users of an account: lists, and changes that wait for each other. */
import { apartFor, type Database, type Row, rows, type Steps, type StoreDialect } from "../database.ts";
import { foldedText } from "../filter-sql.ts";
import type { Listing, Page } from "../store.ts";
import { Where } from "../where.ts";
import { USER_ORDER, USER_ROWS, type UserRecord, usersOf } from "./records.ts";
import { userToChange } from "./users.ts";

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

/**
 * For use inside a write: all members of the account, or those who manage it and the one of the id. No other
 * transaction changes them until this one ends.
 */
export function* heldMembers(
  { forUpdate }: StoreDialect,
  accountId: number,
  among: "all" | { readonly managersAnd: number } = "all",
): Steps<readonly UserRecord[]> {
  const isManager = ["Manager", "Admin"].map((role) => `CAST(roles AS TEXT) LIKE '%"${role}"%'`).join(" OR ");
  const where = among === "all" ? "account_id = ?" : `account_id = ? AND (user_id = ? OR ${isManager})`;
  const held = `SELECT user_id FROM membership WHERE ${where}`;
  const values = among === "all" ? [accountId] : [accountId, among.managersAnd];
  yield* rows(`${held} ORDER BY user_id${forUpdate("membership")}`, ...values);
  return usersOf(yield* rows(`${USER_ROWS} WHERE hub_user.id IN (${held}) ${USER_ORDER}`, ...values));
}

/** A member and those who manage the account, at the begin of a change. */
export interface HeldMember {
  readonly user: UserRecord;
  /** Managers and Admins, with the user. */
  readonly members: readonly UserRecord[];
}

/** For use inside a write. Null: the account has no such user. */
export function* memberToChange(dialect: StoreDialect, accountId: number, userId: number): Steps<HeldMember | null> {
  const members = yield* heldMembers(dialect, accountId, { managersAnd: userId });
  if (!members.some(({ id }) => id === userId)) return null;
  const user = yield* userToChange(userId, dialect.forUpdate);
  return user === null ? null : { user, members };
}
