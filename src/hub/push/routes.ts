/**
 * POST {push_url}/api/data (specification, *Push endpoints*; platform facts, *Push*): made durable first, then
 * confirmed, then applied.
 */
import { createHash, randomUUID } from "node:crypto";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { faultPoint } from "#core/faults.ts";
import { HttpProblem, invalidRequest } from "#wire/http-problem.ts";
import {
  elementsOfStandard,
  OPERATION_TIMEOUT_DEFAULT_SEC,
  type PushAccepted,
  PushBodyFault,
  type PushQuery,
  pushAccepted,
  pushBody,
  pushQuery,
  readPushParts,
  scanReadings,
  standardBody,
  type UnknownNames,
  WEBHOOK_WARNING,
} from "#wire/index.ts";
import {
  bareOperationId,
  idempotencyKeyOf,
  REPLAYED_HEADER,
  TRACE_LINK_HEADER,
  traceLinkOf,
} from "#wire/push-request.ts";
import type { HubContext } from "../context.ts";
import { reachOf } from "../deliveries/receivers.ts";
import { callerOf } from "../http/access.ts";
import { utf8Of } from "../http/json-bodies.ts";
import { invalidField, parsed } from "../http/problems.ts";
import { described, type RouteFacts } from "../http/route.ts";
import { judgeFields } from "../http/unknown-names.ts";
import { warn } from "../http/warnings.ts";
import type { Acceptance, EarlierAcceptance, KeyedPush, NewOperation } from "../store/operations.ts";
import type { Principal } from "../token/guard.ts";
import { packed } from "./body-compression.ts";
import { timeoutOf } from "./operations.ts";
import { fileIdOfPush } from "./origin.ts";

const DAY_MS = 86_400_000;

/** The event loop runs after so many elements and readings: some milliseconds. */
const YIELD_EVERY = 10_000;

const yieldTurn = () => new Promise<void>((resolve) => setImmediate(resolve));

export async function pushRoutes(app: FastifyInstance, context: HubContext): Promise<void> {
  // Any content type: the bytes are kept as received.
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("*", { parseAs: "buffer" }, async (request: FastifyRequest, body: Buffer) =>
    utf8Of(request, body),
  );

  const common = {
    bodyLimit: context.options.limits.body,
    onResponse: async () => {
      faultPoint("hub.push.answered");
      context.ingestion.wake();
    },
  };
  app.post("/push/api/data", {
    ...described(PUSH),
    ...common,
    handler: (request, reply) => receive(context, request, reply, bytesOf(request)),
  });
  app.post("/push/api/standard", {
    ...described(STANDARD),
    ...common,
    handler: (request, reply) => receive(context, request, reply, elementsOf(bytesOf(request))),
  });
}

const PUSH: RouteFacts = {
  access: "push",
  tag: "Push",
  summary: "Accepts readings; they are stored afterwards",
  description:
    "200 means accepted, not stored: the outcome is reported by GET /operations/{operationId} and by the webhook.",
  query: pushQuery,
  body: pushBody,
  answer: pushAccepted,
  example: {
    query: { operationId: "docs-1" },
    body: [{ variableId: 1, data: [{ date: "2026-03-01T00:00:00Z", value: 12.5 }] }],
  },
};

const STANDARD: RouteFacts = {
  ...PUSH,
  summary: "Accepts readings of older clients, each with its variable",
  description: `${PUSH.description} Names are taken in any case.`,
  body: standardBody,
  example: { body: { Data: [{ VariableId: 1, Date: "2026-03-01T00:00:00Z", Value: 12.5 }] } },
};

function bytesOf({ body }: FastifyRequest): Uint8Array {
  return body instanceof Uint8Array ? body : new Uint8Array();
}

function elementsOf(bytes: Uint8Array): Uint8Array {
  let given: unknown;
  try {
    given = JSON.parse(Buffer.from(bytes).toString("utf8"));
  } catch (thrown) {
    throw new HttpProblem(400, "invalid-json", `the body is no JSON: ${thrown instanceof Error ? thrown.message : ""}`);
  }
  return elementsOfStandard(parsed(standardBody, given));
}

async function receive(
  context: HubContext,
  request: FastifyRequest,
  reply: FastifyReply,
  body: Uint8Array,
): Promise<PushAccepted> {
  const principal = callerOf(request);
  const encoding = request.headers["content-encoding"];
  if (encoding !== undefined && encoding !== "identity")
    throw new HttpProblem(415, "unsupported-media-type", `the body is ${encoding}; send it without Content-Encoding`);
  const query = readQuery(request);
  const key = idempotencyKeyOf(request);
  const unknown: UnknownNames = new Map();
  const bytes = body.byteLength;
  const received = await countReadings(body, unknown);
  const operationId = query.operationId || randomUUID();
  const asked = readWebhookUrl(query.webhookUrl, context.options.webhook.hosts, reply);
  judgeFields(
    request,
    reply,
    context.options,
    Array.from(unknown, ([name, place]) => ({ name, ...place })),
  );
  const keyed: KeyedPush = {
    accountId: principal.accountId,
    idempotencyKey: key,
    digest: createHash("sha256").update(body).digest("hex"),
  };
  // A repeat costs nothing, so that a used-up quota never refuses a push that was accepted before.
  const before = await context.store.operations.earlier(keyed);
  if (before !== null) return answerEarlier(before, reply);
  const giveBack = await takeQuota(context, principal.accountId, {
    points: received,
    bytes,
  });
  const accepting = acceptPacked(context, {
    ...keyed,
    userId: principal.user.id,
    operationId,
    timeoutSec: timeoutOf(query) ?? OPERATION_TIMEOUT_DEFAULT_SEC,
    received,
    webhookUrl: asked ?? (await webhookOfFile(context, principal, operationId)),
    traceLink: readTraceLink(request, reply),
    acceptedMs: context.clock.now().epochMilliseconds,
    body,
  });
  const acceptance = await accepting.catch(async (thrown: unknown) => {
    await giveBack();
    throw thrown;
  });
  if (acceptance.kind !== "accepted") {
    await giveBack();
    return answerEarlier(acceptance, reply);
  }
  faultPoint("hub.push.durable");
  const { traceparent } = request.headers;
  context.log.debug({ operationId, traceparent, received, bytes }, "push accepted");
  return { operationId, status: "accepted", received };
}

/** Throws a 422 when the key came with another body. */
function answerEarlier(acceptance: EarlierAcceptance, reply: FastifyReply): PushAccepted {
  if (acceptance.kind === "conflict")
    throw new HttpProblem(
      422,
      "idempotency-conflict",
      `this Idempotency-Key came before with another body, as operation ${acceptance.operationId}`,
    );
  // Otherwise the sender takes the operation for its own.
  void reply.header(REPLAYED_HEADER, "true");
  return { operationId: acceptance.operationId, status: "accepted", received: acceptance.received };
}

/** The body must not be read afterwards. */
async function acceptPacked({ store }: HubContext, operation: NewOperation): Promise<Acceptance> {
  return store.operations.accept({ ...operation, body: await packed(operation.body) });
}

/** A link that is none is no reason to refuse readings. */
function readTraceLink(request: FastifyRequest, reply: FastifyReply): string | null {
  const link = traceLinkOf(request);
  if (link !== "refused") return link;
  warn(reply, `${TRACE_LINK_HEADER}: not kept, since it is no address of http or https of at most 2000 characters`);
  return null;
}

function readQuery(request: FastifyRequest): PushQuery {
  const query = parsed(pushQuery, request.query);
  const bare = bareOperationId(request);
  if (bare === null || query.operationId !== undefined) return query;
  return { ...query, operationId: parsed(pushQuery, { operationId: bare }).operationId };
}

/** The receiver that the sender of a file named, for a push of the file's readings. */
async function webhookOfFile({ store }: HubContext, { accountId, user }: Principal, operationId: string) {
  const id = fileIdOfPush({ userId: user.id, operationId });
  return id === null ? null : ((await store.files.one(accountId, id))?.webhookUrl ?? null);
}

// Reads the body of a push; a refusal is a problem that names the path.

/** Number of readings; `unknown` gets the fields that no push has. Throws a 400 that names the path. */
export async function countReadings(bytes: Uint8Array, unknown: UnknownNames = new Map()): Promise<number> {
  // Most bodies have the form that is counted at a third of the cost of parsing.
  const scan = scanReadings(bytes);
  for (let turn = scan.next(); ; turn = scan.next()) {
    if (turn.done !== true) await yieldTurn();
    else if (turn.value === null) break;
    else return turn.value;
  }
  return countParsed(bytes, unknown);
}

async function countParsed(bytes: Uint8Array, unknown: UnknownNames): Promise<number> {
  let received = 0;
  let sinceYield = 0;
  try {
    for (const { data } of readPushParts(bytes, undefined, unknown)) {
      received += data.length;
      sinceYield += 1 + data.length;
      if (sinceYield < YIELD_EVERY) continue;
      sinceYield = 0;
      await yieldTurn();
    }
    return received;
  } catch (thrown) {
    if (!(thrown instanceof PushBodyFault)) throw thrown;
    if (thrown.path === null) throw new HttpProblem(400, "invalid-json", thrown.message);
    throw invalidRequest(thrown.message, [{ path: thrown.path, message: thrown.words }]);
  }
}

// The `webhookUrl` of a request: where the outcome is sent.

/** Null, and a warning: the push is accepted, and its outcome is available by GET /operations/{operationId} alone. */
export function readWebhookUrl(text: string | undefined, hosts: readonly string[], reply: FastifyReply): string | null {
  if (text === undefined || text === "") return null;
  const url = URL.parse(text);
  if (url === null || !["http:", "https:"].includes(url.protocol))
    throw invalidField("webhookUrl", "is an http or https URL");
  if (reachOf(url, hosts) !== "refused") return url.href;
  warn(
    reply,
    `${WEBHOOK_WARNING} the outcome will not be sent to ${url.host}: this hub sends outcomes to ` +
      "public addresses at port 443 (https), and to the hosts of its webhook.hosts",
  );
  return null;
}

// Quotas of an account for a day (UTC): points and bytes pushed (specification, *Limits*: customer-level,
// configurable).

interface Amount {
  readonly points: number;
  readonly bytes: number;
}

/**
 * Takes the amount from the rest of today's quota; the result returns it. Throws a 429 until tomorrow, a 413 when a
 * whole day is not enough.
 */
async function takeQuota(
  { options, store, clock }: HubContext,
  accountId: number,
  amount: Amount,
): Promise<() => Promise<void>> {
  const own = options.accounts.find(({ id }) => id === accountId)?.limits;
  const points = own?.pointsPerDay ?? options.customerLimits.pointsPerDay ?? null;
  const bytes = own?.bytesPerDay ?? options.customerLimits.bytesPerDay ?? null;
  if (points === null && bytes === null) return async () => {};
  if (amount.points > (points ?? Number.POSITIVE_INFINITY) || amount.bytes > (bytes ?? Number.POSITIVE_INFINITY))
    throw new HttpProblem(
      413,
      "too-large",
      `${amount.points} points in ${amount.bytes} bytes are more than the account may push in a day ` +
        `(${words(points, bytes)}): send less at a time`,
    );
  const nowMs = clock.now().epochMilliseconds;
  const day = new Date(nowMs).toISOString().slice(0, 10);
  if (!(await store.usage.take(accountId, day, amount, { points, bytes })))
    throw new HttpProblem(
      429,
      "quota-exceeded",
      `the account has used up what it may push in a day (${words(points, bytes)}); the next day begins at 00:00 UTC`,
      undefined,
      Math.ceil((DAY_MS - (nowMs % DAY_MS)) / 1_000),
    );
  return () => store.usage.give(accountId, day, amount);
}

function words(points: number | null, bytes: number | null): string {
  return [...(points === null ? [] : [`${points} points`]), ...(bytes === null ? [] : [`${bytes} bytes`])].join(", ");
}
