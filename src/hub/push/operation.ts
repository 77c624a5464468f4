import type { OperationRecord } from "../store/store.ts";
import { isoOfMs } from "../time.ts";

/** Answer of GET /operations/{operationId}, ours: the body of the webhook with the state in a word. */
export function shownOperation(operation: OperationRecord) {
  const { operationId, accountId, received, acceptedMs, webhook, outcome } = operation;
  return {
    operationId,
    account: String(accountId),
    status: statusOf(operation),
    accepted: isoOfMs(acceptedMs),
    received,
    ...(outcome ?? {}),
    ...(webhook === null ? {} : { webhook }),
  };
}

function statusOf({ state, outcome }: OperationRecord) {
  if (state === "failed") return "failed";
  if (outcome === null) return "accepted";
  if (outcome.discarded.length === 0) return "stored";
  return outcome.stored === 0 ? "discarded" : "partly-discarded";
}
