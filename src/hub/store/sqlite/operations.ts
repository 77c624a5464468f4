import { randomUUID } from "node:crypto";
import type { DatabaseSync } from "node:sqlite";
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
import { type Row, type Statements, statements, write } from "./database.ts";

/** The id of the queue, made with it. Together with `seq` it names an operation for ever, also when the queue's file is made anew. */
export function intakeId(intake: DatabaseSync): string {
  const { get, run } = statements(intake);
  const known = get("SELECT id FROM intake")?.["id"];
  if (typeof known === "string") return known;
  const id = randomUUID();
  run("INSERT INTO intake (id) VALUES (?)", id);
  return id;
}

export function createOperationStore(
  intake: DatabaseSync,
  main: DatabaseSync,
  queueId: string,
): OperationStore {
  const queue = statements(intake);
  const outcomes = statements(main);
  const outcomeOf = (seq: number): Outcome | null => {
    const row = outcomes.get("SELECT * FROM outcome WHERE intake_id = ? AND seq = ?", queueId, seq);
    return row === undefined ? null : outcomeFrom(row);
  };
  return {
    ...webhooks(intake, queue, outcomeOf),
    accept: acceptTogether(intake, queue),
    async finish(finished) {
      await write(intake, () => {
        for (const { seq, state } of finished) {
          queue.run(
            "UPDATE operation SET state = ?, webhook_state = iif(webhook_state = 'waiting', 'due', webhook_state) WHERE seq = ?",
            state,
            seq,
          );
          if (state === "done") queue.run("DELETE FROM body WHERE seq = ?", seq);
        }
      });
    },
    async operation(accountId, operationId) {
      const sql =
        "SELECT * FROM operation WHERE account_id = ? AND operation_id = ? ORDER BY seq DESC LIMIT 1";
      const row = queue.get(sql, accountId, operationId);
      return row === undefined ? null : recordOf(row, outcomeOf(Number(row["seq"])));
    },
    async pending() {
      return Number(queue.get("SELECT count(*) AS total FROM operation WHERE state = 'accepted'")?.["total"]);
    },
    async purge(keysBeforeMs, outcomesBeforeMs) {
      await write(intake, () => {
        queue.run(
          "UPDATE operation SET idempotency_key = NULL WHERE idempotency_key IS NOT NULL AND accepted_ms < ?",
          keysBeforeMs,
        );
        queue.run(
          `DELETE FROM operation WHERE state = 'done' AND accepted_ms < ? AND idempotency_key IS NULL
            AND (webhook_state IS NULL OR webhook_state IN ('delivered', 'given-up'))`,
          outcomesBeforeMs,
        );
      });
      const kept = queue.get("SELECT min(seq) AS seq FROM operation")?.["seq"];
      await write(main, () =>
        outcomes.run(
          "DELETE FROM outcome WHERE finished_ms < ? AND (intake_id <> ? OR seq < ?)",
          outcomesBeforeMs,
          queueId,
          // Without any operation left, the outcomes of all of them may go.
          typeof kept === "number" ? kept : Number.MAX_SAFE_INTEGER,
        ),
      );
    },
  };
}

/** Operations that come at the same moment are durable by one commit: each costs the disk a few milliseconds. */
function acceptTogether(intake: DatabaseSync, queue: Statements): OperationStore["accept"] {
  let waiting: {
    operation: NewOperation;
    resolve(acceptance: Acceptance): void;
    reject(thrown: unknown): void;
  }[] = [];
  const flush = async (): Promise<void> => {
    const batch = waiting;
    waiting = [];
    try {
      const acceptances = await write(intake, () =>
        batch.map((one) => ({ one, acceptance: accept(queue, one.operation) })),
      );
      for (const { one, acceptance } of acceptances) one.resolve(acceptance);
    } catch (thrown) {
      for (const { reject } of batch) reject(thrown);
    }
  };
  return (operation) =>
    new Promise((resolve, reject) => {
      if (waiting.push({ operation, resolve, reject }) === 1) setImmediate(() => void flush());
    });
}

function accept({ get, run }: Statements, operation: NewOperation) {
  const { accountId, idempotencyKey } = operation;
  if (idempotencyKey !== null) {
    const sql =
      "SELECT operation_id, digest, received FROM operation WHERE account_id = ? AND idempotency_key = ?";
    const earlier = get(sql, accountId, idempotencyKey);
    if (earlier !== undefined) {
      const operationId = String(earlier["operation_id"]);
      return earlier["digest"] === operation.digest
        ? ({ kind: "repeated", operationId, received: Number(earlier["received"]) } as const)
        : ({ kind: "conflict", operationId } as const);
    }
  }
  const { id } = run(
    `INSERT INTO operation (account_id, user_id, operation_id, idempotency_key, digest, timeout_sec, received, accepted_ms, state,
      webhook_url, webhook_state) VALUES (?, ?, ?, ?, ?, ?, ?, ?, 'accepted', ?, ?)`,
    accountId,
    operation.userId,
    operation.operationId,
    idempotencyKey,
    operation.digest,
    operation.timeoutSec,
    operation.received,
    operation.acceptedMs,
    operation.webhookUrl,
    operation.webhookUrl === null ? null : "waiting",
  );
  run("INSERT INTO body (seq, bytes) VALUES (?, ?)", id, operation.body);
  return { kind: "accepted", seq: id } as const;
}

const GONE = "the outcome is no longer in the store";

type Webhooks = Pick<OperationStore, "dueWebhooks" | "nextWebhookMs" | "webhookDelivered" | "webhookFailed">;

function webhooks(
  intake: DatabaseSync,
  { get, all, run }: Statements,
  outcomeOf: (seq: number) => Outcome | null,
): Webhooks {
  return {
    async dueWebhooks(nowMs, limit) {
      const sql =
        "SELECT * FROM operation WHERE webhook_state = 'due' AND webhook_next_ms <= ? ORDER BY webhook_next_ms, seq LIMIT ?";
      return all(sql, nowMs, limit).flatMap((row): DueWebhook[] => {
        const seq = Number(row["seq"]);
        const outcome = outcomeOf(seq);
        if (outcome === null) {
          run("UPDATE operation SET webhook_state = 'given-up', webhook_error = ? WHERE seq = ?", GONE, seq);
          return [];
        }
        const body = {
          operationId: String(row["operation_id"]),
          account: String(row["account_id"]),
          ...outcome,
        };
        return [{ seq, url: String(row["webhook_url"]), attempts: Number(row["webhook_attempts"]), body }];
      });
    },
    async nextWebhookMs() {
      const next = get("SELECT min(webhook_next_ms) AS next FROM operation WHERE webhook_state = 'due'")?.[
        "next"
      ];
      return typeof next === "number" ? next : null;
    },
    async webhookDelivered(seq) {
      const sql = `UPDATE operation SET webhook_state = 'delivered', webhook_attempts = webhook_attempts + 1, webhook_error = NULL WHERE seq = ?`;
      await write(intake, () => run(sql, seq));
    },
    async webhookFailed(seq, error, nextMs) {
      const sql = `UPDATE operation SET webhook_state = ?, webhook_attempts = webhook_attempts + 1, webhook_error = ?, webhook_next_ms = ? WHERE seq = ?`;
      await write(intake, () => run(sql, nextMs === null ? "given-up" : "due", error, nextMs ?? 0, seq));
    },
  };
}

function recordOf(row: Row, outcome: Outcome | null): OperationRecord {
  const state = String(row["state"]) as OperationRecord["state"];
  const webhookState = text(row["webhook_state"]);
  return {
    operationId: String(row["operation_id"]),
    accountId: Number(row["account_id"]),
    // The outcome is the truth; the queue learns of it a moment later.
    state: outcome !== null && state === "accepted" ? "done" : state,
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
    outcome,
  };
}

function outcomeFrom(row: Row): Outcome {
  return {
    received: Number(row["received"]),
    stored: Number(row["stored"]),
    replaced: Number(row["replaced"]),
    discarded: JSON.parse(String(row["discarded"])),
    started: isoOfMs(Number(row["started_ms"])),
    finished: isoOfMs(Number(row["finished_ms"])),
  };
}
