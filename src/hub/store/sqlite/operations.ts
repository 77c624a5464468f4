/**
 * The queue of operations is a database beside that of points and outcomes. The outcome is authoritative: an
 * operation with an outcome was applied, or failed; the queue is updated a moment later, also when the
 * process ended in between.
 */
import { randomUUID } from "node:crypto";
import type { DatabaseSync } from "node:sqlite";
import { change } from "../database.ts";
import {
  DUE_RECEIVERS,
  dueWebhookOf,
  NEW_OPERATION,
  newOperationValues,
  outcomeOf,
  recordOf,
} from "../operation-rows.ts";
import type { Acceptance, NewOperation, OperationRecord, OperationStore, Outcome } from "../operations.ts";
import { earlierOf, inSteps, PURGE_ROWS, purgeQueue, queueMethods } from "../queue.ts";
import { type Row, type Statements, statements } from "./database.ts";
import { drive, sqliteDatabase, type Write } from "./driver.ts";

const GONE = "the outcome is no longer in the store";

/**
 * The id of the queue, created with it. Together with `seq` it identifies an operation for ever, even after
 * the queue's file is replaced.
 */
export function intakeId(intake: DatabaseSync): string {
  const { get, run } = statements(intake);
  const known = get("SELECT id FROM intake")?.["id"];
  if (typeof known === "string") return known;
  const id = randomUUID();
  run("INSERT INTO intake (id) VALUES (?)", id);
  return id;
}

/**
 * A power cut may take an operation from the queue before its push was answered, and leave its outcome: its number is
 * not given to another, which would count as applied.
 */
export function skipAppliedNumbers(intake: Statements, main: Statements, queueId: string): void {
  const applied = Number(main.get("SELECT max(seq) AS last FROM outcome WHERE intake_id = ?", queueId)?.["last"] ?? 0);
  const given = Number(intake.get("SELECT seq FROM sqlite_sequence WHERE name = 'operation'")?.["seq"] ?? 0);
  if (applied <= given) return;
  intake.run("DELETE FROM sqlite_sequence WHERE name = 'operation'");
  intake.run("INSERT INTO sqlite_sequence (name, seq) VALUES ('operation', ?)", applied);
}

/** Both databases, and the id by which outcomes refer to the queue. */
interface Both {
  readonly queue: Statements;
  readonly writeQueue: Write;
  readonly outcomes: Statements;
  readonly writeMain: Write;
  readonly queueId: string;
}

/** The statements of a database, and its write transactions. */
interface Part {
  readonly tools: Statements;
  readonly write: Write;
}

export function createOperationStore({ tools: queue, write }: Part, main: Part, queueId: string): OperationStore {
  const both = { queue, writeQueue: write, outcomes: main.tools, writeMain: main.write, queueId };
  const database = sqliteDatabase(queue, write);
  const methods = queueMethods(database);
  return {
    ...createWebhooks(queue, (seq) => {
      const row = outcomeRow(both, seq);
      return row === undefined ? null : outcomeOf(row);
    }),
    ...methods,
    async earlier(push) {
      const found = await methods.earlier(push);
      // Its own answer may still wait for the sync, and so does this one then.
      if (found !== null) await write(() => undefined);
      return found;
    },
    // Operations that come at one moment share a transaction and a sync of the log.
    accept: (operation) => write(() => accept(queue, operation)),
    finish: (seqs) => finish(both, seqs),
    async operation(accountId, operationId) {
      const sql = "SELECT * FROM operation WHERE account_id = ? AND operation_id = ? ORDER BY seq DESC LIMIT 1";
      const row = queue.get(sql, accountId, operationId);
      return row === undefined ? null : recordWith(both, row);
    },
    async list(accountId, state, { offset, limit, after = 0, isCounted }) {
      const from = `FROM operation WHERE account_id = ? AND state = '${state}'`;
      const page = "AND seq > ? ORDER BY seq LIMIT ? OFFSET ?";
      const rows = queue.all(`SELECT * ${from} ${page}`, accountId, after, limit ?? -1, offset);
      const count = () => Number(queue.get(`SELECT count(*) AS total ${from}`, accountId)?.["total"]);
      const total = isCounted === false ? 0 : count();
      return { rows: rows.map((row) => recordWith(both, row)), total };
    },
    applyAgain: (...all) => applyAgain(both, ...all),
    dropFailed: (accountId, operationId) =>
      write(() => {
        const seqs = failedSeqs(queue, accountId, operationId);
        for (const seq of seqs) {
          queue.run("UPDATE operation SET state = 'done' WHERE seq = ?", seq);
          queue.run("DELETE FROM body WHERE seq = ?", seq);
        }
        return seqs.length;
      }),
    purge: (...all) => purge(both, ...all),
  };
}

function outcomeRow({ outcomes, queueId }: Both, seq: number): Row | undefined {
  return outcomes.get("SELECT * FROM outcome WHERE intake_id = ? AND seq = ?", queueId, seq);
}

function recordWith(both: Both, row: Row): OperationRecord {
  const found = outcomeRow(both, Number(row["seq"]));
  const state = String(row["state"]) as OperationRecord["state"];
  return found === undefined
    ? recordOf(row, state, null)
    : recordOf(row, state === "accepted" ? stateOf(found) : state, outcomeOf(found));
}

function stateOf(found: Row): "done" | "failed" {
  return found["failed"] === 1 ? "failed" : "done";
}

async function finish(both: Both, seqs: readonly number[]): Promise<void> {
  const { queue, writeQueue } = both;
  await writeQueue(() => {
    for (const seq of seqs) {
      const found = outcomeRow(both, seq);
      if (found === undefined) continue;
      const state = stateOf(found);
      queue.run(
        `UPDATE operation SET state = ?, webhook_state = iif(webhook_state = 'waiting', 'due', webhook_state)
          WHERE seq = ?`,
        state,
        seq,
      );
      if (state === "done") queue.run("DELETE FROM body WHERE seq = ?", seq);
    }
  });
}

function failedSeqs({ all }: Statements, accountId: number, operationId: string): number[] {
  const sql = "SELECT seq FROM operation WHERE account_id = ? AND operation_id = ? AND state = 'failed' ORDER BY seq";
  return all(sql, accountId, operationId).map((row) => Number(row["seq"]));
}

/** Outcomes are deleted first: a waiting operation with an outcome would count as applied. */
async function applyAgain(
  { queue, writeQueue, outcomes, writeMain, queueId }: Both,
  accountId: number,
  operationId: string,
  timeoutSec: number | null,
): Promise<number> {
  const seqs = failedSeqs(queue, accountId, operationId);
  await writeMain(() => {
    for (const seq of seqs)
      outcomes.run("DELETE FROM outcome WHERE intake_id = ? AND seq = ? AND failed = 1", queueId, seq);
  });
  const sql = `UPDATE operation SET state = 'accepted', timeout_sec = coalesce(?, timeout_sec),
    webhook_state = iif(webhook_url IS NULL, NULL, 'waiting'), webhook_attempts = 0, webhook_error = NULL,
    webhook_next_ms = 0
    WHERE seq = ? AND state = 'failed'`;
  return writeQueue(() => seqs.reduce((sum, seq) => sum + queue.run(sql, timeoutSec, seq).changes, 0));
}

const FORGET_OUTCOMES = `DELETE FROM outcome WHERE (intake_id, seq) IN (SELECT intake_id, seq FROM outcome
  WHERE finished_ms < ? AND (intake_id <> ? OR seq NOT IN (SELECT value FROM json_each(?))) LIMIT ${PURGE_ROWS})`;

async function purge(
  { queue, writeQueue, outcomes, writeMain, queueId }: Both,
  keysBeforeMs: number,
  outcomesBeforeMs: number,
): Promise<void> {
  await purgeQueue(sqliteDatabase(queue, writeQueue), keysBeforeMs, outcomesBeforeMs);
  // An operation that is still in the queue without its outcome would be applied again.
  const sql =
    "SELECT seq FROM operation WHERE accepted_ms < ? UNION SELECT seq FROM operation WHERE state = 'accepted'";
  const kept = JSON.stringify(queue.all(sql, outcomesBeforeMs).map((row) => Number(row["seq"])));
  const step = () => change(FORGET_OUTCOMES, outcomesBeforeMs, queueId, kept);
  await inSteps(sqliteDatabase(outcomes, writeMain), step);
}

function accept(queue: Statements, operation: NewOperation): Acceptance {
  const before = drive(queue, earlierOf(operation));
  if (before !== null) return before;
  const values = newOperationValues(operation);
  const places = values.map(() => "?").join(", ");
  const { run } = queue;
  const { id } = run(`INSERT INTO operation (${NEW_OPERATION}) VALUES (${places})`, ...values);
  run("INSERT INTO body (seq, bytes) VALUES (?, ?)", id, operation.body);
  return { kind: "accepted", seq: id };
}

type Webhooks = Pick<OperationStore, "dueWebhooks">;

/** The due webhooks of the queue. */
function createWebhooks({ all, run }: Statements, outcomeWith: (seq: number) => Outcome | null): Webhooks {
  return {
    async dueWebhooks(nowMs, limit, { seqs, hosts, accounts }) {
      const sql = `${DUE_RECEIVERS} SELECT operation.* FROM at JOIN operation ON operation.seq = (
          SELECT seq FROM operation WHERE webhook_state = 'due'
            AND account_id = at.account_id AND webhook_host = at.webhook_host
            AND webhook_next_ms <= ? AND seq NOT IN (SELECT value FROM json_each(?))
          ORDER BY webhook_next_ms, seq LIMIT 1)
        WHERE at.account_id NOT IN (SELECT value FROM json_each(?))
          AND at.account_id || ' ' || at.webhook_host NOT IN (SELECT value FROM json_each(?))
        ORDER BY operation.webhook_next_ms, operation.seq LIMIT ?`;
      const full = hosts.map(({ accountId, host }) => `${accountId} ${host}`);
      const lists = [seqs, accounts, full].map((list) => JSON.stringify(list));
      for (;;) {
        const rows = all(sql, nowMs, ...lists, limit);
        const due = rows.flatMap((row) => {
          const seq = Number(row["seq"]);
          const outcome = outcomeWith(seq);
          if (outcome !== null) return [dueWebhookOf(row, outcome)];
          run("UPDATE operation SET webhook_state = 'given-up', webhook_error = ? WHERE seq = ?", GONE, seq);
          return [];
        });
        // Webhooks that were given up took the places of others, so the query is repeated.
        if (due.length > 0 || rows.length === 0) return due;
      }
    },
  };
}
