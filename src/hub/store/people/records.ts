/** Records of people, and how they are read from rows. */
import type { Row } from "../database.ts";
import { number, text } from "../structure-rows.ts";

/** Invited: has not signed in yet. Inactive: may not sign in. */
export type UserState = "Active" | "Invited" | "Inactive";
/** Users of the configuration leave with it. */
export type UserOrigin = "configuration" | "people";

export interface Membership {
  readonly accountId: number;
  readonly roles: readonly string[];
  readonly businessId: string | null;
}

export interface UserRecord {
  readonly id: number;
  readonly username: string;
  readonly email: string | null;
  readonly firstName: string | null;
  readonly lastName: string | null;
  readonly state: UserState;
  /** PHC string; null: none was given yet, or another service knows the user. */
  readonly passwordHash: string | null;
  readonly mustChangePassword: boolean;
  /**
   * When the owner of the address proved to be the user: whatever lets the user in came by a mail since, or from the
   * configuration. Null: another person may have set the address or the password.
   */
  readonly provenMs: number | null;
  /** When a temporary password ends. */
  readonly temporaryUntilMs: number | null;
  /** Grows when tokens and sessions end; see `generationOf`. */
  readonly tokenGeneration: number;
  /** The second factor; not asked for before it is confirmed. */
  readonly totp: Totp | null;
  readonly origin: UserOrigin;
  /** The first is of the default account until one is touched. */
  readonly memberships: readonly Membership[];
  readonly lastAccountId: number | null;
}

export interface Totp {
  readonly secret: string;
  readonly confirmedMs: number | null;
  /** The last time step whose code was taken. */
  readonly usedStep: number | null;
}

/** One row a membership, ordered by `USER_ORDER`; a user without one has one row. */
export const USER_ROWS = `SELECT hub_user.*, membership.account_id AS entered_id, membership.roles,
    membership.business_id
  FROM hub_user LEFT JOIN membership ON membership.user_id = hub_user.id`;
export const USER_ORDER = "ORDER BY hub_user.id, membership.place, membership.account_id";

/** The users of such rows, in their order. */
export function usersOf(found: readonly Row[]): readonly UserRecord[] {
  return [...Map.groupBy(found, (row) => Number(row["id"])).values()].flatMap((rows) => {
    const [row] = rows;
    if (row === undefined) return [];
    const memberships = rows.filter((one) => one["entered_id"] !== null).map(membershipOf);
    return [{ ...personOf(row), memberships }];
  });
}

function membershipOf(row: Row): Membership {
  return {
    accountId: Number(row["entered_id"]),
    roles: JSON.parse(String(row["roles"])),
    businessId: text(row["business_id"]),
  };
}

function personOf(row: Row): Omit<UserRecord, "memberships"> {
  const secret = text(row["totp_secret"]);
  return {
    id: Number(row["id"]),
    username: String(row["username"]),
    email: text(row["email"]),
    firstName: text(row["first_name"]),
    lastName: text(row["last_name"]),
    state: row["state"] as UserState,
    passwordHash: text(row["password_hash"]),
    mustChangePassword: row["must_change_password"] === true || row["must_change_password"] === 1,
    provenMs: number(row["proven_ms"]),
    temporaryUntilMs: number(row["temporary_until_ms"]),
    tokenGeneration: Number(row["token_generation"]),
    totp:
      secret === null
        ? null
        : { secret, confirmedMs: number(row["totp_confirmed_ms"]), usedStep: number(row["totp_used_step"]) },
    origin: row["origin"] as UserOrigin,
    lastAccountId: number(row["last_account_id"]),
  };
}
