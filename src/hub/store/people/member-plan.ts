/** Creates and changes users of an account inside one write, as a file of master data says. */
import { readAs } from "#wire/index.ts";
import { type Row, rows, type Steps, type StoreDialect } from "../database.ts";
import { foldedText } from "../filter-sql.ts";
import { text } from "../structure-rows.ts";
import { type Actor, recordAboutPerson, recordAudit } from "./audit.ts";
import { heldMembers } from "./members.ts";
import type { UserRecord } from "./records.ts";
import { changeUser, createUser, type NewUser, putMembership, type UserChange } from "./users.ts";

/** Names and addresses that a file gives to users. */
export interface UserKeys {
  readonly usernames: readonly string[];
  readonly emails: readonly string[];
  readonly businessIds: readonly string[];
}

export interface FoundUsers {
  /** Users of the account, whatever their state; none where the file names none. */
  readonly members: readonly UserRecord[];
  /** Ids of those, in the whole hub, who have one of the names or addresses, which are folded. */
  readonly usernames: ReadonlyMap<string, number>;
  readonly emails: ReadonlyMap<string, number>;
}

interface PlannedPlace {
  readonly roles: readonly string[];
  readonly businessId: string | null;
}

export interface MemberPlan {
  readonly users: readonly (PlannedPlace & { readonly user: NewUser })[];
  readonly changedUsers: readonly (PlannedPlace & {
    readonly user: UserRecord;
    readonly change: UserChange;
    /** Names of those that differ. */
    readonly fields: readonly string[];
  })[];
  readonly actor: Actor;
  readonly atMs: number;
}

export function* findUsers(dialect: StoreDialect, accountId: number, keys: UserKeys): Steps<FoundUsers> {
  const usernames = keys.usernames.flatMap((name) => [foldedText(name), readAs(name)]);
  const emails = keys.emails.map(foldedText);
  if (usernames.length + emails.length + keys.businessIds.length === 0)
    return { members: [], usernames: new Map(), emails: new Map() };
  const members = yield* heldMembers(dialect, accountId);
  const { among } = dialect;
  const either = `${among("username_key")} OR ${among("email_key")}`;
  const sql = `SELECT id, username_key, email_key FROM hub_user WHERE ${either}`;
  const found: readonly Row[] = yield* rows(sql, usernames, [...emails, ...usernames]);
  const byKey = (column: string) =>
    new Map(found.flatMap((one) => (text(one[column]) === null ? [] : [[String(one[column]), Number(one["id"])]])));
  return { members, usernames: byKey("username_key"), emails: byKey("email_key") };
}

/** Returns the ids of the new users, in their order. The plan is known to fit what was found in the same write. */
export function* changeMembers(
  accountId: number,
  { users, changedUsers, actor, atMs }: MemberPlan,
): Steps<readonly number[]> {
  const ids: number[] = [];
  for (const { user, roles, businessId } of users) {
    const id = yield* createUser(user);
    if (typeof id === "string") throw new Error(`the user ${user.username} was created meanwhile`);
    yield* putMembership(id, { accountId, roles, businessId, origin: "people" });
    const subject = { kind: "user", id, name: user.username } as const;
    yield* recordAudit(accountId, { atMs, actor, action: "user.created", subject, facts: { roles } });
    ids.push(id);
  }
  for (const { user, change, roles, businessId, fields } of changedUsers) {
    const subject = { kind: "user", id: user.id, name: user.username } as const;
    const own = fields.filter((field) => field !== "roles" && field !== "businessId");
    if (own.length > 0) {
      if ((yield* changeUser(user.id, change)) !== null) throw new Error(`the user ${user.username} changed meanwhile`);
      yield* recordAboutPerson(user.id, { atMs, actor, action: "user.changed", subject, facts: { fields: own } });
    }
    if (own.length === fields.length) continue;
    yield* putMembership(user.id, { accountId, roles, businessId, origin: "people" });
    const action = fields.includes("roles") ? "roles.changed" : "user.changed";
    const facts = fields.includes("roles") ? { to: roles } : { fields: ["businessId"] };
    yield* recordAudit(accountId, { atMs, actor, action, subject, facts });
  }
  return ids;
}
