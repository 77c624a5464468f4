/** The due webhooks of the queue. */
import { DUE_RECEIVERS, dueWebhookOf } from "../operation-rows.ts";
import type { OperationStore, Outcome } from "../store.ts";
import type { Statements } from "./database.ts";

const GONE = "the outcome is no longer in the store";

type Webhooks = Pick<OperationStore, "dueWebhooks">;

export function createWebhooks({ all, run }: Statements, outcomeWith: (seq: number) => Outcome | null): Webhooks {
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
