/** Operations and their outcomes as rows of both databases. */
import { isoOfMs } from "../time.ts";
import type { Acceptance, DueWebhook, NewOperation, OperationRecord, Outcome } from "./store.ts";
import { text } from "./structure-rows.ts";

type Row = Readonly<Record<string, unknown>>;

export function recordOf(
  row: Row,
  state: OperationRecord["state"],
  outcome: Outcome | null,
): OperationRecord {
  const webhookState = text(row["webhook_state"]);
  return {
    operationId: String(row["operation_id"]),
    accountId: Number(row["account_id"]),
    state,
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

/** `received` of an outcome counts the readings of the body, as the operation does. */
export function outcomeOf(row: Row): Outcome {
  return {
    received: Number(row["received"]),
    stored: Number(row["stored"]),
    replaced: Number(row["replaced"]),
    discarded: JSON.parse(String(row["discarded"])),
    started: isoOfMs(Number(row["started_ms"])),
    finished: isoOfMs(Number(row["finished_ms"])),
  };
}

export function dueWebhookOf(row: Row, outcome: Outcome): DueWebhook {
  return {
    seq: Number(row["seq"]),
    url: String(row["webhook_url"]),
    attempts: Number(row["webhook_attempts"]),
    body: {
      operationId: String(row["operation_id"]),
      account: String(row["account_id"]),
      ...outcome,
    },
  };
}

/** The columns of a new operation that waits, in the order of `NEW_OPERATION`. */
export const NEW_OPERATION =
  "account_id, user_id, operation_id, idempotency_key, digest, timeout_sec, received, accepted_ms, webhook_url, webhook_state, state";

export function newOperationValues(operation: NewOperation): (string | number | null)[] {
  return [
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
    "accepted",
  ];
}

/** What an operation is answered whose Idempotency-Key another one holds. */
export function earlierAcceptance(holder: Row, { digest }: NewOperation): Acceptance {
  const operationId = String(holder["operation_id"]);
  return holder["digest"] === digest
    ? { kind: "repeated", operationId, received: Number(holder["received"]) }
    : { kind: "conflict", operationId };
}
