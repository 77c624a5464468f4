/** Invitations to an account: from the mail with the link to the user who accepted. */
import type { InvitationState } from "#wire/index.ts";
import { change, type Database, listed, type Row, row, type Steps } from "../database.ts";
import { foldedText } from "../filter-sql.ts";
import type { Listing, Page } from "../records.ts";
import { jsonOf, number, text } from "../structure-rows.ts";
import { Where } from "../where.ts";

export interface NewInvitation {
  readonly accountId: number;
  readonly email: string;
  readonly roles: readonly string[];
  readonly firstName: string | null;
  readonly lastName: string | null;
  readonly inviterId: number;
  readonly inviterName: string;
  readonly createdMs: number;
  readonly expiresMs: number;
}

export interface InvitationRecord extends NewInvitation {
  readonly id: number;
  readonly state: InvitationState;
  /** Of the last mail. */
  readonly sentMs: number;
  readonly userId: number | null;
  /** Null: its record was purged. */
  readonly mail: { readonly state: "waiting" | "sent" | "failed"; readonly failure: string | null } | null;
}

interface InvitationsFilter {
  readonly ids?: readonly number[] | undefined;
  readonly state?: InvitationState | undefined;
}

export interface InvitationStore {
  /** Newest first. */
  list(accountId: number, filter: InvitationsFilter, nowMs: number, page: Page): Promise<Listing<InvitationRecord>>;
  /** Of any account; null when there is none. */
  byId(id: number, nowMs: number): Promise<InvitationRecord | null>;
}

const COLUMNS = "invitation.*, mail.state AS mail_state, mail.failure AS mail_failure";
const FROM = "invitation LEFT JOIN mail ON mail.id = invitation.mail_id";
const NEWEST_FIRST = { columns: COLUMNS, from: FROM, order: "invitation.id DESC" };

export function createInvitationStore(database: Database): InvitationStore {
  return {
    list(accountId, { ids, state }, nowMs, page) {
      const where = new Where(database.dialect).equal("invitation.account_id", accountId).among("invitation.id", ids);
      if (state === "Open" || state === "Expired") {
        const sql = `invitation.state = 'Open' AND invitation.expires_ms ${state === "Open" ? ">" : "<="} ?`;
        where.condition({ sql, values: [nowMs] });
      } else if (state !== undefined) {
        where.condition({ sql: "invitation.state = ?", values: [state] });
      }
      return listed(database, NEWEST_FIRST, where, page, (found) => invitationOf(found, nowMs));
    },
    byId: (id, nowMs) => database.ask(() => invitationById(id, nowMs)),
  };
}

/** For use inside a write, as the next ones. Returns its id; null when the address has an open one there. */
export function* addInvitation(fresh: NewInvitation): Steps<number | null> {
  const { accountId, email, roles, firstName, lastName, inviterId, inviterName, createdMs, expiresMs } = fresh;
  const key = foldedText(email);
  // An expired one does not count.
  yield* change(
    `UPDATE invitation SET state = 'Withdrawn' WHERE account_id = ? AND email_key = ? AND state = 'Open'
      AND expires_ms <= ?`,
    ...[accountId, key, createdMs],
  );
  const added = yield* row(
    `INSERT INTO invitation (account_id, email, email_key, roles, first_name, last_name, inviter_id, inviter_name,
      created_ms, expires_ms, sent_ms) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
      ON CONFLICT (account_id, email_key) WHERE state = 'Open' DO NOTHING RETURNING id`,
    ...[accountId, email, key, jsonOf(roles), firstName, lastName, inviterId, inviterName],
    ...[createdMs, expiresMs, createdMs],
  );
  return number(added?.["id"]);
}

export function* openInvitations(accountId: number, nowMs: number): Steps<number> {
  const sql = "SELECT count(*) AS count FROM invitation WHERE account_id = ? AND state = 'Open' AND expires_ms > ?";
  return Number((yield* row(sql, accountId, nowMs))?.["count"]);
}

export function* invitationById(id: number, nowMs: number): Steps<InvitationRecord | null> {
  const found = yield* row(`SELECT ${COLUMNS} FROM ${FROM} WHERE invitation.id = ?`, id);
  return found === undefined ? null : invitationOf(found, nowMs);
}

/** Another transaction that locks it waits until this one has ended, and then reads what it left. */
export function* lockInvitation(id: number): Steps<void> {
  yield* change("UPDATE invitation SET state = state WHERE id = ?", id);
}

export function* setMail(id: number, mailId: number, sentMs: number, expiresMs: number): Steps<void> {
  const sql = "UPDATE invitation SET mail_id = ?, sent_ms = ?, expires_ms = ? WHERE id = ?";
  yield* change(sql, mailId, sentMs, expiresMs, id);
}

/** False when it is no longer open. */
export function* finishInvitation(id: number, state: "Accepted" | "Withdrawn", userId: number | null): Steps<boolean> {
  const sql = "UPDATE invitation SET state = ?, user_id = ? WHERE id = ? AND state = 'Open'";
  return (yield* change(sql, state, userId, id)) > 0;
}

function invitationOf(found: Row, nowMs: number): InvitationRecord {
  const state = found["state"] as InvitationState;
  const expiresMs = Number(found["expires_ms"]);
  const mail = text(found["mail_state"]);
  return {
    id: Number(found["id"]),
    accountId: Number(found["account_id"]),
    email: String(found["email"]),
    roles: JSON.parse(String(found["roles"])),
    firstName: text(found["first_name"]),
    lastName: text(found["last_name"]),
    inviterId: Number(found["inviter_id"]),
    inviterName: String(found["inviter_name"]),
    createdMs: Number(found["created_ms"]),
    expiresMs,
    sentMs: Number(found["sent_ms"]),
    state: state === "Open" && expiresMs <= nowMs ? "Expired" : state,
    userId: number(found["user_id"]),
    mail: mail === null ? null : { state: mail as "waiting" | "sent" | "failed", failure: text(found["mail_failure"]) },
  };
}
