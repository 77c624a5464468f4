/** The audit trail: who changed what about people. Rows are only added, in the transaction of the change. */
import type { AuditAction, AuditSubject } from "#wire/index.ts";
import { apartFor, change, type Database, listed, type Row, rows, type Steps } from "../database.ts";
import type { Listing, Page } from "../records.ts";
import { jsonOf, number, text } from "../structure-rows.ts";
import { Where } from "../where.ts";

/** The one who acts. */
export interface Actor {
  /** Null: the configuration, or the hub by itself. */
  readonly id: number | null;
  readonly name: string;
  /** The person who acts as this user. */
  readonly impersonator: { readonly id: number; readonly name: string } | null;
  readonly address: string | null;
}

export const CONFIGURATION: Actor = { id: null, name: "configuration of the hub", impersonator: null, address: null };

export interface AuditFact {
  readonly atMs: number;
  readonly actor: Actor;
  readonly action: AuditAction;
  readonly subject: { readonly kind: AuditSubject; readonly id: number | string; readonly name: string };
  /** Never a secret, nor anything that leads to one. */
  readonly facts?: Readonly<Record<string, unknown>>;
}

export interface AuditRecord extends Required<AuditFact> {
  readonly id: number;
}

export interface AuditFilter {
  /** As the one who acts, who acts as another, or whom it is about. */
  readonly userId?: number | undefined;
  readonly fromMs?: number | undefined;
  /** Excluded. */
  readonly toMs?: number | undefined;
}

/** For use inside a write. */
export function* recordAudit(accountId: number | null, fact: AuditFact): Steps<void> {
  const { atMs, actor, action, subject, facts = {} } = fact;
  const { impersonator } = actor;
  yield* change(
    `INSERT INTO audit (at_ms, account_id, actor_id, actor_name, impersonator_id, impersonator_name, action,
      subject_kind, subject_id, subject_name, facts, address) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    ...[atMs, accountId, actor.id, actor.name, impersonator?.id ?? null, impersonator?.name ?? null, action],
    ...[subject.kind, String(subject.id), subject.name, jsonOf(facts), actor.address],
  );
}

/** For use inside a write: what concerns the person is in the trail of every account that the user may enter. */
export function* recordAboutPerson(userId: number, fact: AuditFact): Steps<void> {
  const entered = yield* rows("SELECT account_id FROM membership WHERE user_id = ? ORDER BY account_id", userId);
  const accounts = entered.map((one) => Number(one["account_id"]));
  for (const accountId of accounts.length === 0 ? [null] : accounts) yield* recordAudit(accountId, fact);
}

const NEWEST_FIRST = { columns: "*", from: "audit", order: "id DESC" };

export function listAudit(
  database: Database,
  accountId: number,
  { userId, fromMs, toMs }: AuditFilter,
  page: Page,
): Promise<Listing<AuditRecord>> {
  const where = new Where(database.dialect).equal("account_id", accountId);
  if (userId !== undefined) {
    const about = "(actor_id = ? OR impersonator_id = ? OR (subject_kind = 'user' AND subject_id = ?))";
    where.condition({ sql: about, values: [userId, userId, String(userId)] });
  }
  if (fromMs !== undefined) where.condition({ sql: "at_ms >= ?", values: [fromMs] });
  if (toMs !== undefined) where.condition({ sql: "at_ms < ?", values: [toMs] });
  return listed(apartFor(database, accountId, [userId, fromMs, toMs]), NEWEST_FIRST, where, page, auditOf);
}

function auditOf(row: Row): AuditRecord {
  const impersonatorId = number(row["impersonator_id"]);
  return {
    id: Number(row["id"]),
    atMs: Number(row["at_ms"]),
    actor: {
      id: number(row["actor_id"]),
      name: String(row["actor_name"]),
      impersonator: impersonatorId === null ? null : { id: impersonatorId, name: String(row["impersonator_name"]) },
      address: text(row["address"]),
    },
    action: row["action"] as AuditAction,
    subject: {
      kind: row["subject_kind"] as AuditSubject,
      id: String(row["subject_id"]),
      name: String(row["subject_name"]),
    },
    facts: JSON.parse(String(row["facts"])),
  };
}
