/** POST {push_url}/api/data (specification, *Push endpoints*; platform facts, *Push*): durable first, then answered, then applied. */
import { createHash, randomUUID } from "node:crypto";
import type { FastifyInstance, FastifyRequest } from "fastify";
import { faultPoint } from "../../support/faults.ts";
import {
  OPERATION_TIMEOUT_DEFAULT_SEC,
  type PushAccepted,
  type PushQuery,
  pushQuery,
} from "../../wire/index.ts";
import type { HubContext } from "../context.ts";
import { HttpProblem, invalidField, notSupported, parsed } from "../http/problems.ts";
import { notFound } from "../structure/sites.ts";
import { type Principal, requireRight } from "../token/guard.ts";
import { countReadings, readPushBody } from "./body.ts";
import { shownOperation } from "./operation.ts";

const KEY_CHARACTERS_MAX = 400;

export async function pushRoutes(app: FastifyInstance, context: HubContext): Promise<void> {
  // Whatever the content type says, the bytes are kept as they came.
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("*", { parseAs: "buffer" }, (_request, body, done) => done(null, body));

  // Who calls is settled before the body is read.
  const principals = new WeakMap<FastifyRequest, Principal>();
  app.post("/push/api/data", {
    bodyLimit: context.options.limits.body,
    onRequest: async (request) => {
      const principal = await context.guard.authenticatePush(request);
      requireRight(principal, "push", "Datapusher (datapusher.standard)");
      principals.set(request, principal);
    },
    onResponse: async () => {
      faultPoint("hub.push.answered");
      context.ingestion.wake();
    },
    handler: async (request) => {
      const principal = principals.get(request) ?? (await context.guard.authenticatePush(request));
      return receive(context, request, principal);
    },
  });
  app.post("/push/api/generic/*", async (request) => {
    await context.guard.authenticatePush(request);
    throw notSupported("/push/api/generic/{guid}", "file triggers come with a later version");
  });
}

export async function operationRoutes(app: FastifyInstance, { guard, store }: HubContext): Promise<void> {
  app.get<{ Params: { "*": string } }>("/operations/*", async (request) => {
    const { accountId } = await guard.authenticate(request, ["push-data", "datahub-api"]);
    const operationId = request.params["*"];
    const operation = await store.operations.operation(accountId, operationId);
    if (operation === null) throw notFound("operation", operationId);
    return shownOperation(operation);
  });
}

async function receive(
  context: HubContext,
  request: FastifyRequest,
  principal: Principal,
): Promise<PushAccepted> {
  const encoding = request.headers["content-encoding"];
  if (encoding !== undefined && encoding !== "identity")
    throw new HttpProblem(
      415,
      "unsupported-media-type",
      `the body is ${encoding}; send it without Content-Encoding`,
    );
  const query = readQuery(request);
  const key = idempotencyKey(request);
  const webhookUrl = readWebhookUrl(query.webhookUrl, context.options.webhook.hosts);
  const body = request.body instanceof Uint8Array ? request.body : new Uint8Array();
  const received = countReadings(readPushBody(body));
  const operationId = query.operationId || randomUUID();
  const acceptance = await context.store.operations.accept({
    accountId: principal.accountId,
    userId: principal.user.id,
    operationId,
    idempotencyKey: key,
    digest: createHash("sha256").update(body).digest("hex"),
    timeoutSec: query.operationTimeoutSec ?? OPERATION_TIMEOUT_DEFAULT_SEC,
    received,
    webhookUrl,
    acceptedMs: context.clock.now().epochMilliseconds,
    body,
  });
  if (acceptance.kind === "conflict")
    throw new HttpProblem(
      422,
      "idempotency-conflict",
      `this Idempotency-Key came before with another body, as operation ${acceptance.operationId}`,
    );
  if (acceptance.kind === "repeated")
    return { operationId: acceptance.operationId, status: "accepted", received: acceptance.received };
  faultPoint("hub.push.durable");
  context.log.debug({ operationId, received, bytes: body.byteLength }, "push accepted");
  return { operationId, status: "accepted", received };
}

/** Older clients send the operation id as a bare query string, `?<id>` with no name. */
function readQuery(request: FastifyRequest): PushQuery {
  const query = parsed(pushQuery, request.query);
  const timeout = query.operationTimeoutSec;
  if (timeout !== undefined && timeout < 1) throw invalidField("operationTimeoutSec", "is at least 1");
  const [, raw = ""] = request.url.split("?", 2);
  const bare = raw.split("&").find((part) => part !== "" && !part.includes("="));
  if (bare === undefined || query.operationId !== undefined) return query;
  return { ...query, operationId: parsed(pushQuery, { operationId: decoded(bare) }).operationId };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll("+", " "));
  } catch (thrown) {
    if (thrown instanceof URIError) return text;
    throw thrown;
  }
}

function idempotencyKey(request: FastifyRequest): string | null {
  const key = request.headers["idempotency-key"];
  if (key === undefined || key === "") return null;
  if (typeof key !== "string" || key.length > KEY_CHARACTERS_MAX)
    throw invalidField("Idempotency-Key", `is one value of at most ${KEY_CHARACTERS_MAX} characters`);
  return key;
}

function readWebhookUrl(text: string | undefined, hosts: readonly string[] | undefined): string | null {
  if (text === undefined || text === "") return null;
  const url = URL.parse(text);
  if (url === null || !["http:", "https:"].includes(url.protocol))
    throw invalidField("webhookUrl", "is an http or https URL");
  if (hosts !== undefined && !hosts.includes(url.hostname))
    throw invalidField("webhookUrl", `this hub does not deliver to ${url.hostname}`);
  return url.href;
}
