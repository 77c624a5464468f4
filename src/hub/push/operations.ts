/**
 * Outcomes of pushes, and the commands for failed ones (extensions of Headgate, `docs/hub/readings.md`, *Outcomes*).
 */
import type { FastifyInstance, FastifyRequest } from "fastify";
import { z } from "zod";
import { HttpProblem } from "#wire/http-problem.ts";
import { accountWebhookKey, operationAgainQuery, operationsQuery, type PushOrigin, webhookKey } from "#wire/index.ts";
import type { HubContext } from "../context.ts";
import { callerOf } from "../http/access.ts";
import { invalidField, parsed } from "../http/problems.ts";
import { described } from "../http/route.ts";
import type { OperationRecord } from "../store/operations.ts";
import type { HubStore } from "../store/store.ts";
import { sendList } from "../structure/lists.ts";
import { notFound } from "../structure/pages.ts";
import { isoOfMs } from "../time.ts";
import { originsOf } from "./origin.ts";

interface WithId {
  Params: { "*": string };
}

const shown = z.looseObject({
  operationId: z.string(),
  account: z.string(),
  status: z.string(),
  received: z.int(),
});
const OPTIONS = {
  one: described({
    access: "follow",
    tag: "Push",
    summary: "The outcome of a push",
    rest: "operationId",
    answer: shown,
  }),
  list: described({
    access: "follow",
    tag: "Push",
    summary: "Operations that failed, or that wait",
    description: "The body of a failed operation is kept until it is applied again or dropped.",
    query: operationsQuery,
    answer: z.array(shown),
    example: { query: { State: "failed" } },
  }),
  again: described({
    access: "manage",
    tag: "Push",
    summary: "Applies a failed operation again",
    description:
      "Its readings overwrite those that later pushes brought for the same dates. Its webhook reports " +
      "the outcome again. The answer counts the operations of that id.",
    rest: "operationId",
    query: operationAgainQuery,
    answer: z.object({ operationId: z.string(), waiting: z.int() }),
  }),
  drop: described({
    access: "manage",
    tag: "Push",
    summary: "Drops the body of a failed operation; it cannot be undone",
    rest: "operationId",
    answer: z.object({ operationId: z.string(), dropped: z.int() }),
  }),
  key: described({
    access: "manage",
    tag: "Push",
    summary: "The key that signs the webhooks of the account",
    answer: webhookKey,
  }),
};

export async function operationRoutes(app: FastifyInstance, context: HubContext): Promise<void> {
  const { store, ingestion, log, options } = context;
  app.get("/account/webhookKey", OPTIONS.key, async (request) => {
    const { accountId } = callerOf(request);
    const { secret } = options.webhook;
    if (secret === undefined) {
      const words = "this hub signs no webhooks: its configuration has no webhook.secret";
      throw new HttpProblem(404, "not-found", words);
    }
    return { account: accountId, key: accountWebhookKey(secret, accountId) };
  });
  app.get("/operations", OPTIONS.list, async (request, reply) => {
    const { accountId } = callerOf(request);
    const query = parsed(operationsQuery, request.query);
    return sendList(request, reply, query, {
      rows: (page) => store.operations.list(accountId, query.State, page),
      shown: (rows) => shownOperations(store, rows),
      keyOf: ({ seq }) => seq,
    });
  });
  app.get<WithId>("/operations/*", OPTIONS.one, async (request) => {
    const [operation] = await shownOperations(store, [await found(store, request)]);
    return operation;
  });
  app.post<WithId>("/operations/*", OPTIONS.again, async (request) => {
    const { accountId, user } = callerOf(request);
    const timeoutSec = timeoutOf(parsed(operationAgainQuery, request.query));
    const { operationId } = await found(store, request);
    const waiting = await store.operations.applyAgain(accountId, operationId, timeoutSec ?? null);
    if (waiting === 0) throw notFailed(operationId);
    log.info({ operationId, accountId, user: user.username }, "a failed operation is applied again");
    ingestion.again();
    return { operationId, waiting };
  });
  app.delete<WithId>("/operations/*", OPTIONS.drop, async (request) => {
    const { accountId, user } = callerOf(request);
    const { operationId } = await found(store, request);
    const dropped = await store.operations.dropFailed(accountId, operationId);
    if (dropped === 0) throw notFailed(operationId);
    log.warn({ operationId, accountId, user: user.username }, "the body of a failed operation was dropped");
    return { operationId, dropped };
  });
}

async function found(store: HubStore, request: FastifyRequest<WithId>): Promise<OperationRecord> {
  const operationId = request.params["*"];
  const operation = await store.operations.operation(callerOf(request).accountId, operationId);
  if (operation === null) throw notFound("operation", operationId);
  return operation;
}

function notFailed(operationId: string): HttpProblem {
  return new HttpProblem(
    409,
    "conflict",
    `no operation ${operationId} has failed: there is nothing to apply again or to drop`,
  );
}

/** In seconds; undefined: not set. */
export function timeoutOf(query: { readonly operationTimeoutSec?: number | undefined }): number | undefined {
  const timeout = query.operationTimeoutSec;
  if (timeout !== undefined && timeout < 1) throw invalidField("operationTimeoutSec", "is at least 1");
  return timeout;
}

async function shownOperations(store: HubStore, operations: readonly OperationRecord[]) {
  const origins = await originsOf(store, operations);
  return operations.map((operation, nth) => shownOperation(operation, origins[nth] ?? null));
}

/** The body of the webhook with the state as a word. */
function shownOperation(operation: OperationRecord, file: PushOrigin | null) {
  const { operationId, accountId, received, acceptedMs, webhook, outcome } = operation;
  return {
    operationId,
    account: String(accountId),
    status: statusOf(operation),
    accepted: isoOfMs(acceptedMs),
    received,
    ...(outcome ?? {}),
    ...(webhook === null ? {} : { webhook }),
    ...(file === null ? {} : { file }),
  };
}

function statusOf({ state, outcome }: OperationRecord) {
  if (state === "failed") return "failed";
  if (outcome === null) return "accepted";
  if (outcome.discarded.length === 0) return "stored";
  return outcome.stored === 0 ? "discarded" : "partly-discarded";
}
