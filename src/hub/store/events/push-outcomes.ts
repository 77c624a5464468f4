/** Events about the outcomes of pushes, for accounts with a subscription that asks for them. */
import { row, type Steps } from "../database.ts";
import type { Outcome, QueuedOperation } from "../store.ts";
import type { NewEvent } from "./events.ts";

/** Discarded targets of one event; `GET /operations/{operationId}` has all of them. */
const TARGETS_MAX = 10;

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
