/** Sessions of browsers. */
import { change, type Database, insert, type Row, row, rows, type Steps } from "../database.ts";
import { type AuditFact, recordAudit } from "../people/audit.ts";
import { number } from "../structure-rows.ts";

export interface SessionRecord {
  readonly id: number;
  readonly userId: number;
  readonly accountId: number;
  /** The user who acts as the other one; null: the user himself. */
  readonly impersonatorId: number | null;
  /** Of the password of the person who signed in, at that time. */
  readonly generation: string;
  /** Whether the second factor was given, or need not be. */
  readonly secondFactor: boolean;
  readonly createdMs: number;
  /** Of its last request, to a minute. */
  readonly seenMs: number;
  readonly expiresMs: number;
  readonly address: string;
  /** `User-Agent` of the browser. */
  readonly agent: string;
}

/** A session is found by the SHA-256 of its cookie alone. Facts are recorded in the account of the session. */
export interface SessionStore {
  /** Beyond 100 sessions that a person opened, those end that were not seen for longest. */
  open(tokenHash: string, session: Omit<SessionRecord, "id">, fact: AuditFact): Promise<number>;
  byToken(tokenHash: string): Promise<SessionRecord | null>;
  touch(id: number, seenMs: number): Promise<void>;
  enterAccount(id: number, accountId: number): Promise<void>;
  /** It has another cookie from now on. False when the session has ended. */
  renew(id: number, tokenHash: string, facts: Pick<SessionRecord, "generation" | "secondFactor">): Promise<boolean>;
  /** Sessions that a person opened, the last seen first. */
  openedBy(userId: number): Promise<readonly SessionRecord[]>;
  /** The fact is recorded only when there was the session; null: of a sign-in that replaces it. */
  end(session: Pick<SessionRecord, "id" | "accountId">, fact: AuditFact | null): Promise<void>;
  /** Ends what a person opened: the session `only`, or all but `except`. Returns how many ended. */
  endOpenedBy(
    userId: number,
    which: { readonly only: number } | { readonly except: number },
    place: { readonly accountId: number; readonly fact: AuditFact },
  ): Promise<number>;
  /** Removes sessions that expired, and those that were not seen since. */
  purge(nowMs: number, seenBeforeMs: number): Promise<void>;
}

const OPENED_MAX = 100;
/** Further ones, of a store that had no limit, end with the next sign-in. */
const ENDED_MAX = 10_000;
/** As in the index `session_by_opener`. */
export const OPENED_BY = "COALESCE(impersonator_id, user_id) = ?";

export function createSessionStore(database: Database): SessionStore {
  return {
    open: (tokenHash, session, fact) =>
      database.write(function* () {
        yield* recordAudit(session.accountId, fact);
        const id = yield* insert("session", {
          token_hash: tokenHash,
          user_id: session.userId,
          account_id: session.accountId,
          impersonator_id: session.impersonatorId,
          generation: session.generation,
          second_factor: session.secondFactor,
          created_ms: session.createdMs,
          seen_ms: session.seenMs,
          expires_ms: session.expiresMs,
          address: session.address,
          agent: session.agent,
        });
        yield* endBeyond(session.impersonatorId ?? session.userId, id);
        return id;
      }),
    byToken: (tokenHash) =>
      database.ask(function* () {
        const found = yield* row("SELECT * FROM session WHERE token_hash = ?", tokenHash);
        return found === undefined ? null : sessionOf(found);
      }),
    async touch(id, seenMs) {
      await database.run("UPDATE session SET seen_ms = ? WHERE id = ?", seenMs, id);
    },
    async enterAccount(id, accountId) {
      await database.run("UPDATE session SET account_id = ? WHERE id = ?", accountId, id);
    },
    async renew(id, tokenHash, { generation, secondFactor }) {
      const sql = "UPDATE session SET token_hash = ?, generation = ?, second_factor = ? WHERE id = ?";
      return (await database.run(sql, tokenHash, generation, secondFactor, id)) > 0;
    },
    openedBy: (userId) =>
      database.ask(function* () {
        const sql = `SELECT * FROM session WHERE ${OPENED_BY} ORDER BY seen_ms DESC, id DESC`;
        return (yield* rows(sql, userId)).map(sessionOf);
      }),
    end: ({ id, accountId }, fact) =>
      database.write(function* () {
        const ended = yield* change("DELETE FROM session WHERE id = ?", id);
        if (ended > 0 && fact !== null) yield* recordAudit(accountId, fact);
      }),
    endOpenedBy: (userId, which, { accountId, fact }) =>
      database.write(function* () {
        const ended = yield* endOpenedBy(userId, which);
        if (ended > 0) yield* recordAudit(accountId, { ...fact, facts: { ...fact.facts, ended } });
        return ended;
      }),
    async purge(nowMs, seenBeforeMs) {
      await database.run("DELETE FROM session WHERE expires_ms < ? OR seen_ms < ?", nowMs, seenBeforeMs);
    },
  };
}

function* endBeyond(userId: number, except: number): Steps<void> {
  const sql = `SELECT id FROM session WHERE ${OPENED_BY} AND id <> ? ORDER BY seen_ms DESC, id DESC LIMIT ? OFFSET ?`;
  yield* change(`DELETE FROM session WHERE id IN (${sql})`, userId, except, ENDED_MAX, OPENED_MAX - 1);
}

/** For use inside a write. */
export function* isOpen(id: number): Steps<boolean> {
  return (yield* row("SELECT 1 FROM session WHERE id = ?", id)) !== undefined;
}

/** For use inside a write. Returns how many ended. */
export function* endOpenedBy(
  userId: number,
  which: { readonly only: number } | { readonly except: number | null },
): Steps<number> {
  const sql = `DELETE FROM session WHERE ${OPENED_BY}`;
  if ("only" in which) return yield* change(`${sql} AND id = ?`, userId, which.only);
  return yield* change(`${sql} AND id <> ?`, userId, which.except ?? 0);
}

function sessionOf(found: Row): SessionRecord {
  return {
    id: Number(found["id"]),
    userId: Number(found["user_id"]),
    accountId: Number(found["account_id"]),
    impersonatorId: number(found["impersonator_id"]),
    generation: String(found["generation"]),
    secondFactor: Boolean(found["second_factor"]),
    createdMs: Number(found["created_ms"]),
    seenMs: Number(found["seen_ms"]),
    expiresMs: Number(found["expires_ms"]),
    address: String(found["address"]),
    agent: String(found["agent"]),
  };
}
