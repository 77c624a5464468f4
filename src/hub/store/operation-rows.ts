/** Converts operations and their outcomes from and to rows of both databases. */
import { isoOfMs } from "../time.ts";
import type { QueuedOperation } from "./ingest.ts";
import type { DueWebhook, EarlierAcceptance, KeyedPush, NewOperation, OperationRecord, Outcome } from "./operations.ts";
import { number, text } from "./structure-rows.ts";

type Row = Readonly<Record<string, unknown>>;

export function recordOf(row: Row, state: OperationRecord["state"], outcome: Outcome | null): OperationRecord {
  const webhookState = text(row["webhook_state"]);
  return {
    seq: Number(row["seq"]),
    operationId: String(row["operation_id"]),
    accountId: Number(row["account_id"]),
    userId: Number(row["user_id"]),
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

export function queuedOf(row: Row, accountId: number): QueuedOperation {
  return {
    seq: Number(row["seq"]),
    accountId,
    userId: Number(row["user_id"]),
    operationId: String(row["operation_id"]),
    timeoutSec: Number(row["timeout_sec"]),
    received: Number(row["received"]),
    calculationId: number(row["calculation_id"]),
    acceptedMs: Number(row["accepted_ms"]),
    traceLink: text(row["trace_link"]),
    body: row["bytes"] as Uint8Array,
  };
}

/** The columns of a waiting operation beside its body, for `queuedOf`. */
export const QUEUED = "operation_id, user_id, timeout_sec, received, accepted_ms, calculation_id, trace_link";

/** `received` of an outcome counts the readings of the body, as the operation does. */
export function outcomeOf(row: Row): Outcome {
  return {
    received: Number(row["received"]),
    stored: Number(row["stored"]),
    replaced: Number(row["replaced"]),
    discarded: JSON.parse(String(row["discarded"])),
    ...(typeof row["notices"] === "string" ? { notices: JSON.parse(row["notices"]) } : {}),
    started: isoOfMs(Number(row["started_ms"])),
    finished: isoOfMs(Number(row["finished_ms"])),
  };
}

/** Null: there are none. */
export function noticesText({ notices }: Outcome): string | null {
  return notices === undefined ? null : JSON.stringify(notices);
}

export function dueWebhookOf(row: Row, outcome: Outcome): DueWebhook {
  return {
    seq: Number(row["seq"]),
    accountId: Number(row["account_id"]),
    userId: Number(row["user_id"]),
    host: String(row["webhook_host"]),
    url: String(row["webhook_url"]),
    attempts: Number(row["webhook_attempts"]),
    body: {
      operationId: String(row["operation_id"]),
      account: String(row["account_id"]),
      ...outcome,
    },
  };
}

/** The columns of a new waiting operation, in the order of the values. */
export const NEW_OPERATION = `account_id, user_id, operation_id, idempotency_key, digest, timeout_sec, received,
    accepted_ms, webhook_url, webhook_host, webhook_state, state, calculation_id, trace_link`;

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
    operation.webhookUrl === null ? null : (URL.parse(operation.webhookUrl)?.host ?? ""),
    operation.webhookUrl === null ? null : "waiting",
    "accepted",
    operation.calculationId ?? null,
    operation.traceLink ?? null,
  ];
}

/** Parameters: account and key. */
export const KEY_HOLDER =
  "SELECT operation_id, digest, received FROM operation WHERE account_id = ? AND idempotency_key = ?";

/** The response to an operation whose Idempotency-Key belongs to an earlier one. */
export function earlierAcceptance(holder: Row, { digest }: KeyedPush): EarlierAcceptance {
  const operationId = String(holder["operation_id"]);
  return holder["digest"] === digest
    ? { kind: "repeated", operationId, received: Number(holder["received"]) }
    : { kind: "conflict", operationId };
}

/**
 * The accounts and hosts that have due webhooks, found by one index step for each, however many are due: `at`
 * is a row of each. The query that follows selects from it. It does not compare (account_id, webhook_host) as
 * one value: SQLite would search by the account alone, and read all of its hosts at each step.
 */
export const DUE_RECEIVERS = `WITH RECURSIVE at AS (
    SELECT * FROM (SELECT account_id, webhook_host FROM operation WHERE webhook_state = 'due'
      ORDER BY account_id, webhook_host LIMIT 1) AS first
    UNION ALL
    SELECT next.account_id, next.webhook_host FROM at JOIN operation AS next ON next.seq = coalesce(
      (SELECT seq FROM operation WHERE webhook_state = 'due'
        AND account_id = at.account_id AND webhook_host > at.webhook_host
        ORDER BY account_id, webhook_host LIMIT 1),
      (SELECT seq FROM operation WHERE webhook_state = 'due' AND account_id > at.account_id
        ORDER BY account_id, webhook_host LIMIT 1))
  )`;
