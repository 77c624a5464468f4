import type pg from "pg";
import {
  dueWebhookOf,
  earlierAcceptance,
  NEW_OPERATION,
  newOperationValues,
  outcomeOf,
  recordOf,
} from "../operation-rows.ts";
import type { Acceptance, NewOperation, OperationRecord, OperationStore } from "../store.ts";
import { type Row, type Sql, sqlOn, transact } from "./database.ts";

const OUTCOME =
  "outcome.stored, outcome.replaced, outcome.discarded, outcome.started_ms, outcome.finished_ms";
const WITH_OUTCOME = `SELECT operation.*, ${OUTCOME} FROM operation LEFT JOIN outcome USING (seq)`;

export interface PostgresOperations extends OperationStore {
  /** Webhooks that this node was about to deliver are due again at once. */
  release(): Promise<void>;
}

export function createOperationStore(pool: pg.Pool): PostgresOperations {
  const sql = sqlOn(pool);
  return {
    ...webhooks(sql),
    accept: (operation) => accept(sql, operation),
    // What became of them is known since their points were written; what is left is to drop bodies, without delaying the writer of points.
    async finish(seqs) {
      await sql.run(
        "DELETE FROM body USING operation WHERE operation.seq = body.seq AND state = 'done' AND body.seq = ANY (?)",
        seqs,
      );
    },
    async operation(accountId, operationId) {
      const row = await sql.get(
        `${WITH_OUTCOME} WHERE account_id = ? AND operation_id = ? ORDER BY seq DESC LIMIT 1`,
        accountId,
        operationId,
      );
      return row === undefined ? null : recordWith(row);
    },
    async counts() {
      const row = await sql.get(
        `SELECT (SELECT count(*) FROM operation WHERE state = 'accepted') AS waiting,
          (SELECT count(*) FROM operation WHERE state = 'failed') AS failed`,
      );
      return { waiting: Number(row?.["waiting"]), failed: Number(row?.["failed"]) };
    },
    async list(accountId, state, { offset, limit }) {
      const wanted = "WHERE account_id = ? AND state = ?";
      const rows = await sql.all(
        `${WITH_OUTCOME} ${wanted} ORDER BY seq LIMIT ? OFFSET ?`,
        accountId,
        state,
        limit,
        offset,
      );
      const total = await sql.get(`SELECT count(*) AS total FROM operation ${wanted}`, accountId, state);
      return { rows: rows.map(recordWith), total: Number(total?.["total"]) };
    },
    applyAgain: (accountId, operationId, timeoutSec) =>
      transact(pool, async ({ all, run }) => {
        const rows = await all(
          `UPDATE operation SET state = 'accepted', timeout_sec = coalesce(CAST(? AS BIGINT), timeout_sec), webhook_attempts = 0,
            webhook_state = CASE WHEN webhook_url IS NULL THEN NULL ELSE 'waiting' END, webhook_error = NULL, webhook_next_ms = 0
            WHERE account_id = ? AND operation_id = ? AND state = 'failed' RETURNING seq`,
          timeoutSec,
          accountId,
          operationId,
        );
        await run(
          "DELETE FROM outcome WHERE seq = ANY (?)",
          rows.map((row) => Number(row["seq"])),
        );
        return rows.length;
      }),
    async dropFailed(accountId, operationId) {
      const row = await sql.get(
        `WITH dropped AS (
          UPDATE operation SET state = 'done' WHERE account_id = ? AND operation_id = ? AND state = 'failed' RETURNING seq
        ), gone AS (DELETE FROM body USING dropped WHERE body.seq = dropped.seq) SELECT count(*) AS total FROM dropped`,
        accountId,
        operationId,
      );
      return Number(row?.["total"]);
    },
    purge: (keysBeforeMs, outcomesBeforeMs) =>
      transact(pool, async ({ run }) => {
        await run(
          "UPDATE operation SET idempotency_key = NULL WHERE idempotency_key IS NOT NULL AND accepted_ms < ?",
          keysBeforeMs,
        );
        await run(
          `DELETE FROM operation WHERE state = 'done' AND accepted_ms < ? AND idempotency_key IS NULL
            AND (webhook_state IS NULL OR webhook_state IN ('delivered', 'given-up'))`,
          outcomesBeforeMs,
        );
        // Of operations whose node ended between applying and `finish`.
        await run("DELETE FROM body USING operation WHERE operation.seq = body.seq AND state = 'done'");
      }),
  };
}

const ACCEPT = `WITH accepted AS (
    INSERT INTO operation (${NEW_OPERATION}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (account_id, idempotency_key) WHERE idempotency_key IS NOT NULL DO NOTHING RETURNING seq
  ) INSERT INTO body (seq, bytes) SELECT seq, ? FROM accepted RETURNING seq`;

/** Each pass finds either room for the key, or who holds it. */
async function accept({ get }: Sql, operation: NewOperation): Promise<Acceptance> {
  for (;;) {
    const row = await get(ACCEPT, ...newOperationValues(operation), operation.body);
    if (row !== undefined) return { kind: "accepted", seq: Number(row["seq"]) };
    const holder = await get(
      "SELECT operation_id, digest, received FROM operation WHERE account_id = ? AND idempotency_key = ?",
      operation.accountId,
      operation.idempotencyKey,
    );
    if (holder !== undefined) return earlierAcceptance(holder, operation);
  }
}

/** How long a node may take to deliver what it took; then another one does. */
const LEASE_MS = 120_000;

type Webhooks = Pick<
  PostgresOperations,
  "dueWebhooks" | "nextWebhookMs" | "webhookDelivered" | "webhookFailed" | "release"
>;

function webhooks({ get, all, run }: Sql): Webhooks {
  const taken = new Set<number>();
  return {
    async dueWebhooks(nowMs, limit) {
      const rows = await all(
        `WITH due AS (
          SELECT seq, webhook_next_ms FROM operation WHERE webhook_state = 'due' AND webhook_next_ms <= ?
          ORDER BY webhook_next_ms, seq LIMIT ? FOR UPDATE SKIP LOCKED
        ), taken AS (
          UPDATE operation SET webhook_next_ms = ? FROM due WHERE operation.seq = due.seq RETURNING operation.*, due.webhook_next_ms AS was_ms
        ) SELECT taken.*, ${OUTCOME} FROM taken JOIN outcome USING (seq) ORDER BY was_ms, seq`,
        nowMs,
        limit,
        nowMs + LEASE_MS,
      );
      return rows.map((row) => {
        taken.add(Number(row["seq"]));
        return dueWebhookOf(row, outcomeOf(row));
      });
    },
    async nextWebhookMs() {
      const row = await get("SELECT min(webhook_next_ms) AS next FROM operation WHERE webhook_state = 'due'");
      const next = row?.["next"];
      return typeof next === "number" ? next : null;
    },
    // One that waits again meanwhile, to be told anew, is left alone.
    async webhookDelivered(seq) {
      await run(
        `UPDATE operation SET webhook_state = 'delivered', webhook_attempts = webhook_attempts + 1, webhook_error = NULL
          WHERE seq = ? AND webhook_state = 'due'`,
        seq,
      );
      taken.delete(seq);
    },
    async webhookFailed(seq, error, nextMs) {
      await run(
        `UPDATE operation SET webhook_state = ?, webhook_attempts = webhook_attempts + 1, webhook_error = ?, webhook_next_ms = ?
          WHERE seq = ? AND webhook_state = 'due'`,
        nextMs === null ? "given-up" : "due",
        error,
        nextMs ?? 0,
        seq,
      );
      taken.delete(seq);
    },
    async release() {
      if (taken.size === 0) return;
      await run("UPDATE operation SET webhook_next_ms = 0 WHERE webhook_state = 'due' AND seq = ANY (?)", [
        ...taken,
      ]);
      taken.clear();
    },
  };
}

function recordWith(row: Row): OperationRecord {
  const state = String(row["state"]) as OperationRecord["state"];
  return recordOf(row, state, row["finished_ms"] === null ? null : outcomeOf(row));
}
