import type pg from "pg";
import { isoOfMs } from "../../time.ts";
import type {
  Acceptance,
  DueWebhook,
  NewOperation,
  OperationRecord,
  OperationStore,
  Outcome,
} from "../store.ts";
import { text } from "../structure-rows.ts";
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
    async finish(finished) {
      // They count as done since their points were written; what is left is to drop bodies, without delaying the writer of points.
      const seqs = (wanted: "done" | "failed") =>
        finished.filter(({ state }) => state === wanted).map(({ seq }) => seq);
      await sql.run("UPDATE operation SET state = 'failed' WHERE seq = ANY (?)", seqs("failed"));
      await sql.run("DELETE FROM body WHERE seq = ANY (?)", seqs("done"));
    },
    async operation(accountId, operationId) {
      const row = await sql.get(
        `${WITH_OUTCOME} WHERE account_id = ? AND operation_id = ? ORDER BY seq DESC LIMIT 1`,
        accountId,
        operationId,
      );
      return row === undefined ? null : recordOf(row);
    },
    async pending() {
      const row = await sql.get("SELECT count(*) AS total FROM operation WHERE state = 'accepted'");
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
    INSERT INTO operation (account_id, user_id, operation_id, idempotency_key, digest, timeout_sec, received, accepted_ms, state,
      webhook_url, webhook_state) VALUES (?, ?, ?, ?, ?, ?, ?, ?, 'accepted', ?, ?)
    ON CONFLICT (account_id, idempotency_key) WHERE idempotency_key IS NOT NULL DO NOTHING RETURNING seq
  ) INSERT INTO body (seq, bytes) SELECT seq, ? FROM accepted RETURNING seq`;

/** Each pass finds either room for the key, or who holds it. */
async function accept({ get }: Sql, operation: NewOperation): Promise<Acceptance> {
  for (;;) {
    const row = await get(
      ACCEPT,
      operation.accountId,
      operation.userId,
      operation.operationId,
      operation.idempotencyKey,
      operation.digest,
      operation.timeoutSec,
      operation.received,
      operation.acceptedMs,
      operation.webhookUrl,
      operation.webhookUrl === null ? null : "waiting",
      operation.body,
    );
    if (row !== undefined) return { kind: "accepted", seq: Number(row["seq"]) };
    const earlier = await get(
      "SELECT operation_id, digest, received FROM operation WHERE account_id = ? AND idempotency_key = ?",
      operation.accountId,
      operation.idempotencyKey,
    );
    if (earlier === undefined) continue;
    const operationId = String(earlier["operation_id"]);
    return earlier["digest"] === operation.digest
      ? { kind: "repeated", operationId, received: Number(earlier["received"]) }
      : { kind: "conflict", operationId };
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
      return rows.map((row): DueWebhook => {
        const seq = Number(row["seq"]);
        taken.add(seq);
        return {
          seq,
          url: String(row["webhook_url"]),
          attempts: Number(row["webhook_attempts"]),
          body: {
            operationId: String(row["operation_id"]),
            account: String(row["account_id"]),
            ...outcomeOf(row),
          },
        };
      });
    },
    async nextWebhookMs() {
      const row = await get("SELECT min(webhook_next_ms) AS next FROM operation WHERE webhook_state = 'due'");
      const next = row?.["next"];
      return typeof next === "number" ? next : null;
    },
    async webhookDelivered(seq) {
      await run(
        "UPDATE operation SET webhook_state = 'delivered', webhook_attempts = webhook_attempts + 1, webhook_error = NULL WHERE seq = ?",
        seq,
      );
      taken.delete(seq);
    },
    async webhookFailed(seq, error, nextMs) {
      await run(
        "UPDATE operation SET webhook_state = ?, webhook_attempts = webhook_attempts + 1, webhook_error = ?, webhook_next_ms = ? WHERE seq = ?",
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

function recordOf(row: Row): OperationRecord {
  const webhookState = text(row["webhook_state"]);
  return {
    operationId: String(row["operation_id"]),
    accountId: Number(row["account_id"]),
    state: String(row["state"]) as OperationRecord["state"],
    received: Number(row["received"]),
    acceptedMs: Number(row["accepted_ms"]),
    webhook:
      webhookState === null
        ? null
        : {
            state: webhookState,
            attempts: Number(row["webhook_attempts"]),
            error: text(row["webhook_error"]),
          },
    outcome: row["finished_ms"] === null ? null : outcomeOf(row),
  };
}

/** The outcome counts the readings of the body, as the operation does. */
function outcomeOf(row: Row): Outcome {
  return {
    received: Number(row["received"]),
    stored: Number(row["stored"]),
    replaced: Number(row["replaced"]),
    discarded: JSON.parse(String(row["discarded"])),
    started: isoOfMs(Number(row["started_ms"])),
    finished: isoOfMs(Number(row["finished_ms"])),
  };
}
