/**
 * Mails that wait to be sent. They are written in the transaction that they report, and sent afterwards. The content
 * is erased as soon as the mail is sent or given up, since it holds links and passwords.
 */
import { change, type Database, insert, type Row, row, rows, type Steps } from "../database.ts";
import { number } from "../structure-rows.ts";

const MAIL_KINDS = [
  "invitation",
  "temporary-password",
  "reset",
  "password-changed",
  "sign-on-confirmation",
  "alarm",
  "alarm-digest",
] as const;
export type MailKind = (typeof MAIL_KINDS)[number];

export interface MailContent {
  readonly subject: string;
  readonly text: string;
  readonly html: string;
}

export interface NewMail extends MailContent {
  /** Null: of no account. */
  readonly accountId: number | null;
  readonly kind: MailKind;
  /** One address. */
  readonly to: string;
  readonly createdMs: number;
  /** From then on it is of no use. */
  readonly expiresMs: number;
}

export interface DueMail extends MailContent {
  readonly id: number;
  readonly accountId: number | null;
  readonly kind: MailKind;
  readonly to: string;
  readonly createdMs: number;
  readonly expiresMs: number;
  /** Number of earlier attempts. */
  readonly attempts: number;
}

export interface MailStore {
  /** In a transaction of its own; returns its id. */
  queue(mail: NewMail): Promise<number>;
  /**
   * The mail that is due first of the next account after this one, which no other hub takes before `untilMs`; null when
   * none is due. Mails of no account are those of the account 0.
   */
  take(afterAccount: number, nowMs: number, untilMs: number): Promise<DueMail | null>;
  /** When the next mail is due; null when none waits. */
  nextMs(): Promise<number | null>;
  sent(id: number, nowMs: number): Promise<void>;
  /** It is tried again at `nextMs`; `failure` is for people. */
  failed(id: number, failure: string, nextMs: number): Promise<void>;
  /** No mail of the account (0: of none) is tried before. */
  postpone(account: number, untilMs: number): Promise<void>;
  /** It is not tried again. */
  givenUp(id: number, failure: string, nowMs: number): Promise<void>;
  /** The attempt does not count. */
  putBack(id: number, nowMs: number): Promise<void>;
  /** Number of the mails of a kind that were written to an address since then. */
  recent(kind: MailKind, to: string, sinceMs: number): Promise<number>;
  /** Removes records of mails that were finished before, and of links that expired before. */
  purge(beforeMs: number): Promise<void>;
}

/** For use inside a write. Returns its id. */
export function* queueMail(mail: NewMail): Steps<number> {
  const { accountId, kind, to, subject, text, html, createdMs, expiresMs } = mail;
  return yield* insert("mail", {
    account_id: accountId,
    kind,
    recipient: to,
    subject,
    text,
    html,
    created_ms: createdMs,
    expires_ms: expiresMs,
    next_ms: createdMs,
  });
}

/** The mails of some kinds that an account has had written since then, in the order of time. */
export function* mailsOf(
  accountId: number,
  kinds: readonly MailKind[],
  sinceMs: number,
): Steps<readonly { readonly to: string; readonly createdMs: number }[]> {
  const sql = `SELECT lower(recipient) AS recipient, created_ms FROM mail
    WHERE account_id = ? AND created_ms > ? AND kind IN (${kinds.map(() => "?").join(", ")}) ORDER BY created_ms, id`;
  const found = yield* rows(sql, accountId, sinceMs, ...kinds);
  return found.map((one) => ({ to: String(one["recipient"]), createdMs: Number(one["created_ms"]) }));
}

const FINISH = `UPDATE mail SET state = ?, failure = ?, done_ms = ?, text = '', html = ''
  WHERE id = ? AND state = 'waiting'`;

const NEXT = `SELECT * FROM mail WHERE state = 'waiting' AND next_ms <= ? AND coalesce(account_id, 0) > ?
  ORDER BY coalesce(account_id, 0), next_ms, id LIMIT 1`;
const BEFORE_ALL = -1;

export function createMailStore(database: Database): MailStore {
  return {
    queue: (mail) => database.write(() => queueMail(mail)),
    take: (afterAccount, nowMs, untilMs) =>
      database.write(function* (): Steps<DueMail | null> {
        for (;;) {
          const found = (yield* row(NEXT, nowMs, afterAccount)) ?? (yield* row(NEXT, nowMs, BEFORE_ALL));
          if (found === undefined) return null;
          const sql = `UPDATE mail SET next_ms = ?, attempts = attempts + 1
            WHERE id = ? AND next_ms = ? AND state = 'waiting'`;
          const taken = yield* change(sql, untilMs, Number(found["id"]), Number(found["next_ms"]));
          if (taken > 0) return mailOf(found);
        }
      }),
    nextMs: () =>
      database.ask(function* () {
        const found = yield* row("SELECT min(next_ms) AS next FROM mail WHERE state = 'waiting'");
        return number(found?.["next"]);
      }),
    async sent(id, nowMs) {
      await database.run(FINISH, "sent", null, nowMs, id);
    },
    async failed(id, failure, nextMs) {
      const sql = "UPDATE mail SET failure = ?, next_ms = ? WHERE id = ? AND state = 'waiting'";
      await database.run(sql, failure, nextMs, id);
    },
    async postpone(account, untilMs) {
      const sql = `UPDATE mail SET next_ms = ?
        WHERE state = 'waiting' AND next_ms < ? AND coalesce(account_id, 0) = ?`;
      await database.run(sql, untilMs, untilMs, account);
    },
    async givenUp(id, failure, nowMs) {
      await database.run(FINISH, "failed", failure, nowMs, id);
    },
    async putBack(id, nowMs) {
      const sql = "UPDATE mail SET attempts = attempts - 1, next_ms = ? WHERE id = ? AND state = 'waiting'";
      await database.run(sql, nowMs, id);
    },
    recent: (kind, to, sinceMs) => database.ask(() => recentMails(kind, to, sinceMs)),
    async purge(beforeMs) {
      await database.run("DELETE FROM mail WHERE state <> 'waiting' AND done_ms < ?", beforeMs);
      await database.run("DELETE FROM one_time_link WHERE expires_ms < ?", beforeMs);
    },
  };
}

/** Number of the mails of a kind that were written to an address since then. */
export function* recentMails(kind: MailKind, to: string, sinceMs: number): Steps<number> {
  const sql = "SELECT count(*) AS count FROM mail WHERE lower(recipient) = ? AND kind = ? AND created_ms >= ?";
  return Number((yield* row(sql, to.toLowerCase(), kind, sinceMs))?.["count"]);
}

function mailOf(found: Row): DueMail {
  return {
    id: Number(found["id"]),
    accountId: number(found["account_id"]),
    kind: found["kind"] as MailKind,
    to: String(found["recipient"]),
    subject: String(found["subject"]),
    text: String(found["text"]),
    html: String(found["html"]),
    createdMs: Number(found["created_ms"]),
    expiresMs: Number(found["expires_ms"]),
    attempts: Number(found["attempts"]),
  };
}
