/** The events of accounts: added in the transaction of what they report, read in the order of their ids. */
import type { AccountEvent, EventSubject, EventType } from "#wire/index.ts";
import { isoOfMs } from "../../time.ts";
import { change, type Database, type Row, row, rows, type Steps, type StoreDialect } from "../database.ts";
import type { SqlValue } from "../filter-sql.ts";
import type { QueuedOperation } from "../ingest.ts";
import type { Outcome } from "../operations.ts";
import { PURGE_ROWS } from "../queue.ts";
import { jsonOf, number, text } from "../structure-rows.ts";
import { Where } from "../where.ts";

export interface NewEvent {
  readonly accountId: number;
  readonly type: EventType;
  readonly subject: { readonly kind: EventSubject; readonly id: number | string; readonly name: string | null };
  readonly atMs: number;
  /** Of the subject since then. */
  readonly state?: string | null;
  readonly severity?: string | null;
  /** Whether a person should see it; false when absent. */
  readonly isFailure?: boolean;
  /** Where the subject belongs, as far as known: readers select events by these. */
  readonly siteId?: number | null;
  readonly sourceId?: number | null;
  readonly variableId?: number | null;
  /** Never a secret. */
  readonly facts?: Readonly<Record<string, unknown>>;
}

/** A list means any of its values; fields combine with AND; absent fields do not filter. */
export interface EventFilter {
  readonly types?: readonly string[] | undefined;
  readonly subjects?: readonly string[] | undefined;
  readonly states?: readonly string[] | undefined;
  readonly severities?: readonly string[] | undefined;
  readonly siteIds?: readonly number[] | undefined;
  readonly sourceIds?: readonly number[] | undefined;
  readonly variableIds?: readonly number[] | undefined;
  readonly onlyFailures?: boolean | undefined;
}

export type EventPage =
  | {
      readonly kind: "page";
      readonly events: readonly AccountEvent[];
      /** The last event that was scanned: the next page begins after it. */
      readonly next: number;
      /** The newest event. */
      readonly last: number;
    }
  /** Events after the wanted one are no longer kept; the oldest that is, or will be. */
  | { readonly kind: "gone"; readonly oldest: number }
  /** There is no such event yet. */
  | { readonly kind: "ahead"; readonly last: number };

export interface EventStore {
  /** Events after an id, null for the oldest that are kept, at most `limit`. */
  after(accountId: number, id: number | null, filter: EventFilter, limit: number): Promise<EventPage>;
  /** The newest event of each of these accounts; 0 without one. */
  newest(accountIds: readonly number[]): Promise<ReadonlyMap<number, number>>;
  purge(times: EventPurge): Promise<void>;
}

/** Discarded targets of one event; `GET /operations/{operationId}` has all of them. */
const TARGETS_MAX = 10;

/** Events that one query scans, however few fit its filter. */
const SCAN_MAX = 20_000;

const COLUMNS = `account_id, id, at_ms, type, subject_kind, subject_id, subject_name, state, severity, failure,
  site_id, source_id, variable_id, facts`;
const PLACES = `(${COLUMNS.replace(/\w+/g, "?")})`;
/** Rows of one statement. */
const ROWS_MAX = 50;
const COUNT = `INSERT INTO event_counter (account_id, last) VALUES (?, ?)
  ON CONFLICT (account_id) DO UPDATE SET last = event_counter.last + excluded.last RETURNING last`;

/**
 * For use inside a write, as its last statements: other transactions that add events of the account wait until this one
 * ends.
 */
export function* addEvents(events: readonly NewEvent[]): Steps<void> {
  const byAccount = Map.groupBy(events, ({ accountId }) => accountId);
  // In one order, so that no two transactions wait for each other.
  for (const [accountId, own] of [...byAccount].toSorted(([one], [other]) => one - other)) {
    const counted = yield* row(COUNT, accountId, own.length);
    const first = Number(counted?.["last"]) - own.length + 1;
    const values = own.map((event, at) => valuesOf(event, first + at));
    for (let done = 0; done < values.length; done += ROWS_MAX) {
      const part = values.slice(done, done + ROWS_MAX);
      yield* change(`INSERT INTO event (${COLUMNS}) VALUES ${part.map(() => PLACES).join(", ")}`, ...part.flat());
    }
  }
}

export function createEventStore(database: Database): EventStore {
  return {
    after: (...asked) => database.ask(() => eventsAfter(database.dialect, ...asked)),
    newest: (accountIds) =>
      database.ask(function* () {
        const sql = `SELECT account_id, last FROM event_counter WHERE ${database.dialect.among("account_id")}`;
        const found = yield* rows(sql, accountIds);
        const known = new Map(found.map((one) => [Number(one["account_id"]), Number(one["last"])]));
        return new Map(accountIds.map((id) => [id, known.get(id) ?? 0]));
      }),
    purge: (times) => purgeEvents(database, times),
  };
}

/** Events are committed in their order, so that all up to the newest one are seen; they may be purged meanwhile. */
function* eventsAfter(
  dialect: StoreDialect,
  accountId: number,
  id: number | null,
  filter: EventFilter,
  limit: number,
): Steps<EventPage> {
  for (;;) {
    const { last, purged } = yield* counterOf(accountId);
    const after = id ?? purged;
    if (after > last) return { kind: "ahead", last };
    const end = Math.min(last, after + SCAN_MAX);
    const where = whereOf(dialect, accountId, filter).condition({ sql: "id > ? AND id <= ?", values: [after, end] });
    const sql = `SELECT * FROM event ${where.sql} ORDER BY id LIMIT ?`;
    const events = (yield* rows(sql, ...where.values, limit)).map(eventOf);
    const now = yield* counterOf(accountId);
    if (after >= now.purged)
      return { kind: "page", events, next: events.length < limit ? end : (events.at(-1)?.id ?? after), last };
    if (id !== null) return { kind: "gone", oldest: now.purged + 1 };
  }
}

function* counterOf(accountId: number): Steps<{ readonly last: number; readonly purged: number }> {
  const counter = yield* row("SELECT last, purged FROM event_counter WHERE account_id = ?", accountId);
  return { last: Number(counter?.["last"] ?? 0), purged: Number(counter?.["purged"] ?? 0) };
}

function whereOf(dialect: StoreDialect, accountId: number, filter: EventFilter): Where {
  const where = new Where(dialect)
    .equal("account_id", accountId)
    .among("type", filter.types)
    .among("subject_kind", filter.subjects)
    .among("state", filter.states)
    .among("severity", filter.severities)
    .among("site_id", filter.siteIds)
    .among("source_id", filter.sourceIds)
    .among("variable_id", filter.variableIds);
  return filter.onlyFailures === true ? where.condition({ sql: "failure", values: [] }) : where;
}

function valuesOf(event: NewEvent, id: number): SqlValue[] {
  const { accountId, atMs, type, subject, state, severity, isFailure = false, facts = {} } = event;
  const { siteId, sourceId, variableId } = event;
  return [
    ...[accountId, id, Math.round(atMs), type, subject.kind, String(subject.id), subject.name?.toWellFormed() ?? null],
    ...[state ?? null, severity ?? null, isFailure, siteId ?? null, sourceId ?? null, variableId ?? null],
    jsonOf(facts),
  ];
}

function eventOf(found: Row): AccountEvent {
  return {
    id: Number(found["id"]),
    date: isoOfMs(Number(found["at_ms"])),
    type: found["type"] as EventType,
    subject: {
      kind: found["subject_kind"] as EventSubject,
      id: String(found["subject_id"]),
      name: text(found["subject_name"]),
    },
    state: text(found["state"]),
    severity: text(found["severity"]),
    isFailure: found["failure"] === true || found["failure"] === 1,
    siteId: number(found["site_id"]),
    sourceId: number(found["source_id"]),
    variableId: number(found["variable_id"]),
    facts: JSON.parse(String(found["facts"])),
  };
}

// Removes old events: always the oldest of an account, so that readers know where theirs begin.

interface EventPurge {
  /** Events before this time. */
  readonly beforeMs: number;
  /** The same for those that a webhook has still to get. */
  readonly undeliveredBeforeMs: number;
}

/** In small transactions. */
async function purgeEvents(database: Database, times: EventPurge): Promise<void> {
  const accounts = await database.ask(() => rows("SELECT account_id FROM event_counter WHERE last > purged"));
  for (const one of accounts) {
    const accountId = Number(one["account_id"]);
    const end = await database.ask(() => firstKept(accountId, times));
    while (await database.write(() => purgeStep(accountId, end)))
      await new Promise<void>((resolve) => setImmediate(resolve));
  }
}

function* firstKept(accountId: number, { beforeMs, undeliveredBeforeMs }: EventPurge): Steps<number> {
  const since = yield* firstSince(accountId, beforeMs);
  const waiting = yield* row(
    "SELECT min(position) AS position FROM event_subscription WHERE account_id = ? AND channel = 'webhook' AND active",
    accountId,
  );
  const position = waiting?.["position"];
  if (typeof position !== "number" || position + 1 >= since) return since;
  return Math.max(position + 1, yield* firstSince(accountId, undeliveredBeforeMs));
}

/** One more than the newest where none is so young. */
function* firstSince(accountId: number, ms: number): Steps<number> {
  const sql = "SELECT id FROM event WHERE account_id = ? AND at_ms >= ? ORDER BY id LIMIT 1";
  const found = yield* row(sql, accountId, ms);
  if (found !== undefined) return Number(found["id"]);
  return Number((yield* row("SELECT last FROM event_counter WHERE account_id = ?", accountId))?.["last"] ?? 0) + 1;
}

/** False when there was nothing left to remove. */
function* purgeStep(accountId: number, end: number): Steps<boolean> {
  const counter = yield* row("SELECT purged FROM event_counter WHERE account_id = ?", accountId);
  const purged = Number(counter?.["purged"] ?? 0);
  const to = Math.min(end - 1, purged + PURGE_ROWS);
  if (to <= purged) return false;
  yield* change("DELETE FROM event WHERE account_id = ? AND id <= ?", accountId, to);
  yield* change("UPDATE event_counter SET purged = ? WHERE account_id = ? AND purged < ?", to, accountId, to);
  return true;
}

// Events about the outcomes of pushes, for accounts with a subscription that asks for them.

export function* wantsPushOutcomes(accountId: number): Steps<boolean> {
  const sql = "SELECT 1 FROM event_subscription WHERE account_id = ? AND push_outcomes AND active LIMIT 1";
  return (yield* row(sql, accountId)) !== undefined;
}

export function pushOutcomeEvent(
  { accountId, operationId }: QueuedOperation,
  outcome: Outcome,
  state: "done" | "failed",
): NewEvent {
  const { received, stored, replaced, discarded, started, finished } = outcome;
  const lost = discarded.reduce((sum, { count }) => sum + count, 0);
  return {
    ...{ accountId, type: "push.outcome", atMs: Temporal.Instant.from(finished).epochMilliseconds },
    subject: { kind: "operation", id: operationId, name: operationId },
    state: state === "failed" ? "failed" : endOf(stored, lost),
    isFailure: state === "failed" || lost > 0,
    facts: {
      ...{ received, stored, replaced, discarded: lost, targets: discarded.slice(0, TARGETS_MAX), started, finished },
    },
  };
}

function endOf(stored: number, discarded: number): string {
  if (discarded === 0) return "stored";
  return stored === 0 ? "discarded" : "partly-discarded";
}
