/** Webhooks that are due, as the queue has them. */
import type { DatabaseSync } from "node:sqlite";
import { DUE_RECEIVERS, dueWebhookOf } from "../operation-rows.ts";
import type { OperationStore, Outcome } from "../store.ts";
import { type Statements, write } from "./database.ts";

const GONE = "the outcome is no longer in the store";

type Webhooks = Pick<OperationStore, "dueWebhooks" | "nextWebhookMs" | "webhookDelivered" | "webhookFailed">;

export function createWebhooks(
  intake: DatabaseSync,
  { get, all, run }: Statements,
  outcomeWith: (seq: number) => Outcome | null,
): Webhooks {
  return {
    async dueWebhooks(nowMs, limit, { seqs, hosts, accounts }) {
      const sql = `${DUE_RECEIVERS} SELECT operation.* FROM at JOIN operation ON operation.seq = (
          SELECT seq FROM operation WHERE webhook_state = 'due' AND account_id = at.account_id AND webhook_host = at.webhook_host
            AND webhook_next_ms <= ? AND seq NOT IN (SELECT value FROM json_each(?)) ORDER BY webhook_next_ms, seq LIMIT 1)
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
        // Those that were given up stood in the place of others.
        if (due.length > 0 || rows.length === 0) return due;
      }
    },
    async nextWebhookMs(afterMs) {
      const row = get(
        "SELECT min(webhook_next_ms) AS next FROM operation WHERE webhook_state = 'due' AND webhook_next_ms > ?",
        afterMs,
      );
      const next = row?.["next"];
      return typeof next === "number" ? next : null;
    },
    // One that waits again meanwhile, to be told anew, is left alone.
    async webhookDelivered(seq) {
      const sql = `UPDATE operation SET webhook_state = 'delivered', webhook_attempts = webhook_attempts + 1, webhook_error = NULL
        WHERE seq = ? AND webhook_state = 'due'`;
      await write(intake, () => run(sql, seq));
    },
    async webhookFailed(seq, error, nextMs) {
      const sql = `UPDATE operation SET webhook_state = ?, webhook_attempts = webhook_attempts + 1, webhook_error = ?, webhook_next_ms = ?
        WHERE seq = ? AND webhook_state = 'due'`;
      await write(intake, () => run(sql, nextMs === null ? "given-up" : "due", error, nextMs ?? 0, seq));
    },
  };
}
