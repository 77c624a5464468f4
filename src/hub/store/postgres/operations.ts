import type pg from "pg";
import type { Database } from "../database.ts";
import {
  DUE_RECEIVERS,
  dueWebhookOf,
  NEW_OPERATION,
  newOperationValues,
  outcomeOf,
  recordOf,
} from "../operation-rows.ts";
import type { Acceptance, NewOperation, OperationRecord, OperationStore } from "../operations.ts";
import { earlierOf, purgeQueue, queueMethods } from "../queue.ts";
import { type Row, type Sql, sqlOn, transact } from "./database.ts";

const OUTCOME =
  "outcome.stored, outcome.replaced, outcome.discarded, outcome.notices, outcome.started_ms, outcome.finished_ms";
const WITH_OUTCOME = `SELECT operation.*, ${OUTCOME} FROM operation LEFT JOIN outcome USING (seq)`;

export interface PostgresOperations extends OperationStore {
  /** Makes the webhooks that this node was about to deliver due again at once. */
  release(): Promise<void>;
}

export function createOperationStore(pool: pg.Pool, database: Database): PostgresOperations {
  const sql = sqlOn(pool);
  return {
    ...queueMethods(database),
    ...webhooks(sql, queueMethods(database)),
    accept: (operation) => accept(sql, database, operation),
    // The outcomes are stored with the points; this step only drops bodies, without a delay for the writer of
    // points.
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
    async list(accountId, state, { offset, limit, after = 0, isCounted }) {
      const wanted = "WHERE account_id = ? AND state = ?";
      const rows = await sql.all(
        `${WITH_OUTCOME} ${wanted} AND seq > ? ORDER BY seq LIMIT ? OFFSET ?`,
        ...[accountId, state, after, limit, offset],
      );
      const count = () => sql.get(`SELECT count(*) AS total FROM operation ${wanted}`, accountId, state);
      const total = isCounted === false ? 0 : Number((await count())?.["total"]);
      return { rows: rows.map(recordWith), total };
    },
    applyAgain: (accountId, operationId, timeoutSec) =>
      transact(pool, async ({ all, run }) => {
        const rows = await all(
          `UPDATE operation SET state = 'accepted', timeout_sec = coalesce(CAST(? AS BIGINT), timeout_sec),
            webhook_state = CASE WHEN webhook_url IS NULL THEN NULL ELSE 'waiting' END, webhook_attempts = 0,
            webhook_error = NULL, webhook_next_ms = 0
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
          UPDATE operation SET state = 'done'
            WHERE account_id = ? AND operation_id = ? AND state = 'failed' RETURNING seq
        ), gone AS (DELETE FROM body USING dropped WHERE body.seq = dropped.seq) SELECT count(*) AS total FROM dropped`,
        accountId,
        operationId,
      );
      return Number(row?.["total"]);
    },
    async purge(keysBeforeMs, outcomesBeforeMs) {
      await purgeQueue(database, keysBeforeMs, outcomesBeforeMs);
      // Bodies of operations whose node ended between applying and `finish`.
      await sql.run("DELETE FROM body USING operation WHERE operation.seq = body.seq AND state = 'done'");
    },
  };
}

const ACCEPT = `WITH accepted AS (
    INSERT INTO operation (${NEW_OPERATION}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (account_id, idempotency_key) WHERE idempotency_key IS NOT NULL DO NOTHING RETURNING seq
  ) INSERT INTO body (seq, bytes) SELECT seq, ? FROM accepted RETURNING seq`;

/** Each pass either inserts the key, or finds its owner. */
async function accept(sql: Sql, database: Database, operation: NewOperation): Promise<Acceptance> {
  for (;;) {
    const row = await sql.get(ACCEPT, ...newOperationValues(operation), operation.body);
    if (row !== undefined) return { kind: "accepted", seq: Number(row["seq"]) };
    const before = await database.ask(() => earlierOf(operation));
    if (before !== null) return before;
  }
}

/** How long a node may take to deliver the webhooks that it took; afterwards another node may take them. */
const LEASE_MS = 120_000;

type Webhooks = Pick<PostgresOperations, "dueWebhooks" | "webhookDelivered" | "webhookFailed" | "release">;

function webhooks({ all, run }: Sql, queue: ReturnType<typeof queueMethods>): Webhooks {
  const taken = new Set<number>();
  return {
    async dueWebhooks(nowMs, limit, { seqs, hosts, accounts }) {
      const rows = await all(
        `${DUE_RECEIVERS}, due AS (
          SELECT longest.* FROM at CROSS JOIN LATERAL (
            SELECT seq, webhook_next_ms FROM operation WHERE webhook_state = 'due' AND account_id = at.account_id
              AND webhook_host = at.webhook_host AND webhook_next_ms <= ? AND seq <> ALL (CAST(? AS BIGINT[]))
            ORDER BY webhook_next_ms, seq LIMIT 1 FOR UPDATE SKIP LOCKED
          ) AS longest
          WHERE at.account_id <> ALL (CAST(? AS BIGINT[]))
            AND at.account_id || ' ' || at.webhook_host <> ALL (CAST(? AS TEXT[]))
          ORDER BY webhook_next_ms, seq LIMIT ?
        ), taken AS (
          UPDATE operation SET webhook_next_ms = ? FROM due WHERE operation.seq = due.seq
            RETURNING operation.*, due.webhook_next_ms AS was_ms
        ) SELECT taken.*, ${OUTCOME} FROM taken JOIN outcome USING (seq) ORDER BY was_ms, seq`,
        nowMs,
        seqs,
        accounts,
        hosts.map(({ accountId, host }) => `${accountId} ${host}`),
        limit,
        nowMs + LEASE_MS,
      );
      return rows.map((row) => {
        taken.add(Number(row["seq"]));
        return dueWebhookOf(row, outcomeOf(row));
      });
    },
    async webhookDelivered(seq) {
      await queue.webhookDelivered(seq);
      taken.delete(seq);
    },
    async webhookFailed(seq, error, nextMs) {
      await queue.webhookFailed(seq, error, nextMs);
      taken.delete(seq);
    },
    async release() {
      if (taken.size === 0) return;
      await run("UPDATE operation SET webhook_next_ms = 0 WHERE webhook_state = 'due' AND seq = ANY (?)", [...taken]);
      taken.clear();
    },
  };
}

function recordWith(row: Row): OperationRecord {
  const state = String(row["state"]) as OperationRecord["state"];
  return recordOf(row, state, row["finished_ms"] === null ? null : outcomeOf(row));
}
