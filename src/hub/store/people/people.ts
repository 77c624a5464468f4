/** People: users, where they may enter, and what was changed about them. */
import { isUniqueViolation } from "#core/sql/postgres/faults.ts";
import { change, type Database, type Row, row, rows, type Steps, type StoreDialect } from "../database.ts";
import type { Listing, Page } from "../records.ts";
import { type ApiTokenRecord, apiTokenByHash, apiTokensOf, touchApiToken } from "./api-tokens.ts";
import { type AuditFilter, type AuditRecord, listAudit } from "./audit.ts";
import { type HeldMember, listMembers, type MembersFilter, memberToChange, usersToChange } from "./members.ts";
import type { UserRecord } from "./records.ts";
import { applySeed, deactivateOthers, seedPassword, type TakenSeed, takenSeed, type UserSeed } from "./seed.ts";
import { type Taken, takenBy, touchAccount, type UserChange, userByEmail, userById, userByName } from "./users.ts";

export interface PeopleStore {
  /** The user who may sign in; null for one that is inactive, as for one that does not exist. */
  entrant(id: number): Promise<UserRecord | null>;
  entrantByName(username: string): Promise<UserRecord | null>;
  /** Whatever their state. Names and addresses are found in any case. */
  userById(id: number): Promise<UserRecord | null>;
  userByName(username: string): Promise<UserRecord | null>;
  userByEmail(email: string): Promise<UserRecord | null>;
  /** Whether another user has the name or the address. */
  taken(names: UserChange): Promise<Taken | null>;
  touchAccount(userId: number, accountId: number): Promise<void>;
  /** Users of the account, ordered by id. */
  members(accountId: number, filter: MembersFilter, page: Page): Promise<Listing<UserRecord>>;
  /** One transaction about a user of the account; `missing`: the account has no such user. */
  changeMember<T>(
    place: { readonly accountId: number; readonly userId: number; readonly callerId: number },
    work: (held: HeldMember) => Steps<T>,
  ): Promise<T | "missing">;
  /** As `change`, with these users as they are at its begin and until it ends. */
  changeWith<T>(userIds: readonly number[], work: (held: ReadonlyMap<number, UserRecord>) => Steps<T>): Promise<T>;
  /** Of these users in the account, by user and type. */
  claims(accountId: number, userIds: readonly number[]): Promise<readonly ClaimRecord[]>;
  /** Of a user in an account, the newest first. */
  apiTokens(userId: number, accountId: number): Promise<readonly ApiTokenRecord[]>;
  /** By the hash of its value. */
  apiToken(hash: string): Promise<ApiTokenRecord | null>;
  /** Notes its last use. */
  touchApiToken(id: number, atMs: number): Promise<void>;
  /** See `seedPassword` in `seed.ts`. */
  seedPassword(username: string): Promise<string | null>;
  /**
   * Creates what is new, changes what is changed, and deactivates users that are no longer listed; or does nothing,
   * and returns the first entry that is another user.
   */
  seed(users: readonly UserSeed[], atMs: number): Promise<TakenSeed | null>;
  /** Of an account, newest first. */
  audit(accountId: number, filter: AuditFilter, page: Page): Promise<Listing<AuditRecord>>;
  /** Several changes and what is recorded of them, in one transaction; see `users.ts` and `audit.ts`. */
  change<T>(work: () => Steps<T>): Promise<T>;
}

/** Another request or node took the same name meanwhile: the repetition finds it. */
export function writeUnique<T>(database: Database, work: () => Steps<T>): Promise<T> {
  return database.write(work).catch((thrown: unknown) => {
    if (isUniqueViolation(thrown)) return database.write(work);
    throw thrown;
  });
}

export function createPeopleStore(database: Database): PeopleStore {
  const { ask, dialect } = database;
  const write = <T>(work: () => Steps<T>) => writeUnique(database, work);
  const ifActive = (user: UserRecord | null) => (user?.state === "Inactive" ? null : user);
  return {
    entrant: async (id) => ifActive(await ask(() => userById(id))),
    entrantByName: async (username) => ifActive(await ask(() => userByName(username))),
    userById: (id) => ask(() => userById(id)),
    userByName: (username) => ask(() => userByName(username)),
    userByEmail: (email) => ask(() => userByEmail(email)),
    taken: (names) => ask(() => takenBy(names, null)),
    touchAccount: (userId, accountId) => database.write(() => touchAccount(userId, accountId)),
    members: (accountId, filter, page) => listMembers(database, accountId, filter, page),
    changeMember: ({ accountId, userId, callerId }, work) =>
      write(function* () {
        const held = yield* memberToChange(dialect, accountId, userId, callerId);
        return held === null ? ("missing" as const) : yield* work(held);
      }),
    changeWith: (userIds, work) =>
      write(function* () {
        return yield* work(yield* usersToChange(dialect, userIds));
      }),
    claims: (accountId, userIds) => ask(() => claimsOf(dialect, accountId, userIds)),
    apiTokens: (userId, accountId) => ask(() => apiTokensOf(userId, accountId)),
    touchApiToken: (id, atMs) => database.write(() => touchApiToken(id, atMs)),
    apiToken: (hash) => ask(() => apiTokenByHash(hash)),
    seedPassword: (username) => ask(() => seedPassword(username)),
    seed: (users, atMs) =>
      database.write(function* (): Steps<TakenSeed | null> {
        // Nodes start one after the other.
        yield* rows(`SELECT id FROM account ORDER BY id${dialect.forUpdate("account")}`);
        for (const user of users) {
          const taken = yield* takenSeed(user);
          if (taken !== null) return taken;
        }
        for (const user of users) yield* applySeed(user, atMs);
        yield* deactivateOthers(
          users.map(({ username }) => username),
          atMs,
        );
        return null;
      }),
    audit: (accountId, filter, page) => listAudit(database, accountId, filter, page),
    change: write,
  };
}

// Claims: facts about people in an account, for applications. The functions are for use inside a write.

export interface ClaimRecord {
  readonly userId: number;
  readonly type: string;
  readonly value: string;
}

/** Of these users in the account, by user and type. */
function* claimsOf(
  { among }: Pick<StoreDialect, "among">,
  accountId: number,
  userIds: readonly number[],
): Steps<readonly ClaimRecord[]> {
  const sql = `SELECT * FROM user_claim WHERE account_id = ? AND ${among("user_id")} ORDER BY user_id, claim_type`;
  return (yield* rows(sql, accountId, userIds)).map(claimOf);
}

/** The user must have a membership there. */
export function* putClaim(accountId: number, { userId, type, value }: ClaimRecord): Steps<void> {
  yield* change(
    `INSERT INTO user_claim (user_id, account_id, claim_type, claim_value) VALUES (?, ?, ?, ?)
      ON CONFLICT (user_id, account_id, claim_type) DO UPDATE SET claim_value = excluded.claim_value`,
    ...[userId, accountId, type, value],
  );
}

export function* countClaims(accountId: number, userId: number): Steps<number> {
  const sql = "SELECT count(*) AS held FROM user_claim WHERE user_id = ? AND account_id = ?";
  return Number((yield* row(sql, userId, accountId))?.["held"]);
}

/** False when there was none. */
export function* removeClaim(accountId: number, userId: number, type: string): Steps<boolean> {
  const sql = "DELETE FROM user_claim WHERE user_id = ? AND account_id = ? AND claim_type = ?";
  return (yield* change(sql, userId, accountId, type)) > 0;
}

function claimOf(one: Row): ClaimRecord {
  return { userId: Number(one["user_id"]), type: String(one["claim_type"]), value: String(one["claim_value"]) };
}
