/**
 * Statements of the queue of operations that both databases share: the owners of keys, due webhooks, and the
 * purge.
 */
import { change, type Database, row, type Steps } from "./database.ts";
import { earlierAcceptance, KEY_HOLDER } from "./operation-rows.ts";
import type { EarlierAcceptance, KeyedPush, OperationStore } from "./operations.ts";
import { number } from "./structure-rows.ts";

type QueueMethods = Pick<OperationStore, "earlier" | "counts" | "nextWebhookMs" | "webhookDelivered" | "webhookFailed">;

export function queueMethods(queue: Database): QueueMethods {
  return {
    earlier: (push) => queue.ask(() => earlierOf(push)),
    counts: () =>
      queue.ask(function* () {
        const found = yield* row(
          `SELECT (SELECT count(*) FROM operation WHERE state = 'accepted') AS waiting,
            (SELECT min(accepted_ms) FROM operation WHERE state = 'accepted') AS oldest,
            (SELECT count(*) FROM operation WHERE state = 'failed') AS failed,
            (SELECT count(*) FROM operation WHERE webhook_state = 'due') AS webhooks`,
        );
        const count = (name: string) => Number(found?.[name]);
        const [waiting, failed, webhooks] = [count("waiting"), count("failed"), count("webhooks")];
        return { waiting, failed, webhooks, oldestMs: number(found?.["oldest"]) };
      }),
    nextWebhookMs: (afterMs) =>
      queue.ask(function* () {
        const sql =
          "SELECT min(webhook_next_ms) AS next FROM operation WHERE webhook_state = 'due' AND webhook_next_ms > ?";
        const next = (yield* row(sql, afterMs))?.["next"];
        return typeof next === "number" ? next : null;
      }),
    // An operation that waits to be delivered once more stays unchanged.
    async webhookDelivered(seq) {
      const sql = `UPDATE operation SET webhook_state = 'delivered', webhook_attempts = webhook_attempts + 1,
        webhook_error = NULL WHERE seq = ? AND webhook_state = 'due'`;
      await queue.run(sql, seq);
    },
    async webhookFailed(seq, error, nextMs) {
      const sql = `UPDATE operation SET webhook_state = ?, webhook_attempts = webhook_attempts + 1,
        webhook_error = ?, webhook_next_ms = ? WHERE seq = ? AND webhook_state = 'due'`;
      await queue.run(sql, nextMs === null ? "given-up" : "due", error, nextMs ?? 0, seq);
    },
  };
}

export function* earlierOf(push: KeyedPush): Steps<EarlierAcceptance | null> {
  if (push.idempotencyKey === null) return null;
  const holder = yield* row(KEY_HOLDER, push.accountId, push.idempotencyKey);
  return holder === undefined ? null : earlierAcceptance(holder, push);
}

/** Rows that one transaction of a purge changes, so that pushes and requests can run between two of them. */
export const PURGE_ROWS = 1_000;

const FORGET_KEYS = `UPDATE operation SET idempotency_key = NULL WHERE seq IN (SELECT seq FROM operation
  WHERE idempotency_key IS NOT NULL AND accepted_ms < ? AND state = 'done' LIMIT ${PURGE_ROWS})`;
const FORGET_OPERATIONS = `DELETE FROM operation WHERE seq IN (SELECT seq FROM operation
  WHERE accepted_ms < ? AND state = 'done' AND idempotency_key IS NULL
    AND (webhook_state IS NULL OR webhook_state IN ('delivered', 'given-up')) LIMIT ${PURGE_ROWS})`;

export async function purgeQueue(queue: Database, keysBeforeMs: number, outcomesBeforeMs: number): Promise<void> {
  await inSteps(queue, () => change(FORGET_KEYS, keysBeforeMs));
  await inSteps(queue, () => change(FORGET_OPERATIONS, outcomesBeforeMs));
}

export async function inSteps(database: Database, step: () => Steps<number>): Promise<void> {
  while ((await database.write(step)) === PURGE_ROWS) await new Promise<void>((resolve) => setImmediate(resolve));
}
