/**
 * The routes for senders: `POST /api/data`, `/api/standard`, `/api/generic/{guid}` and `/storage` (specification, *Push
 * endpoints*, *Storage endpoints*; platform facts, *Push*). The sender is authenticated before the body is
 * read; the response follows when the body is durable.
 */
import { Readable } from "node:stream";
import multipart from "@fastify/multipart";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { z } from "zod";
import type { Clock } from "#core/clock.ts";
import { isOutOfSpace, TransientError } from "#core/errors.ts";
import { faultPoint } from "#core/faults.ts";
import type { Logger } from "#core/log.ts";
import { parsedJson } from "#core/text.ts";
import { caseless } from "#wire/caseless.ts";
import { HttpProblem, installProblemHandlers, invalidRequest, unauthenticated } from "#wire/http-problem.ts";
import { elementsOfStandard, type PushAccepted, pushQuery, standardBody } from "#wire/push.ts";
import { countReadings, PushBodyFault, readPushBody } from "#wire/push-body.ts";
import { bareOperationId, idempotencyKeyOf, REPLAYED_HEADER } from "#wire/push-request.ts";
import { type BodyStore, BodyTooLarge, type Received } from "./body-store.ts";
import type { IntakeRight, IntakeUser } from "./options.ts";
import type { Receipt } from "./receipts.ts";
import type { People } from "./senders.ts";

export interface TokenRefusal {
  /** False: a trigger that is not known now may claim the file. */
  readonly isFinal: boolean;
  readonly reason: string;
}

export interface RouteParts {
  readonly bodies: BodyStore;
  readonly people: People;
  readonly limits: { readonly body: number; readonly backlog: number };
  readonly clock: Clock;
  readonly log: Logger;
  /** Whether the spool accepts no more files. */
  isFull(): Promise<boolean>;
  serviceOf(user: IntakeUser): string;
  /** Why no trigger claims files under this guid for this service; null when one does. */
  refusalOf(token: string, service: string): TokenRefusal | null;
  onTaken(): void;
}

/** The facts of a body beside its bytes. */
type Draft = Pick<Receipt, "route" | "operationId" | "token"> & {
  path(id: number): string;
  readonly details: Readonly<Record<string, unknown>>;
  answer(received: Received): unknown;
};

const RETRY_AFTER_SECONDS = 30;

/** Value of `WWW-Authenticate`. */
const CHALLENGE = 'Bearer, Basic realm="headgate"';

/** Of the 400 characters that the service accepts, some are reserved for the suffix of the gateway. */
const OPERATION_ID_CHARACTERS_MAX = 340;
const FILE_NAME_BYTES_MAX = 200;
const FIELDS_MAX = 20;
const EXTENSIONS: ReadonlyMap<string, string> = new Map([
  ["application/json", "json"],
  ["application/xml", "xml"],
  ["text/xml", "xml"],
  ["text/plain", "txt"],
  ["text/csv", "csv"],
]);

export async function pushRoutes(app: FastifyInstance, parts: RouteParts): Promise<void> {
  // Whatever the content type, the bytes are stored as received.
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("*", (_request, payload, done) => done(null, payload));
  const onRequest = admission(parts, "push", "push-data");
  const user = (request: FastifyRequest) => admitted(request);

  for (const prefix of ["", "/push"]) {
    for (const name of ["data", "standard"] as const)
      app.post(`${prefix}/api/${name}`, { onRequest }, async (request, reply) => {
        const operationId = operationIdOf(request);
        const body = await receive(parts, bodyOf(request));
        const received = name === "data" ? body : await asElements(parts, body);
        const readings = await checked(parts, received);
        const id = operationId ?? String(received.id);
        return await take(parts, { request, reply, user: user(request) }, received, {
          route: "data",
          operationId,
          token: null,
          path: (one) => `data/${one}.json`,
          details: { contentType: request.headers["content-type"] },
          answer: () => ({ operationId: id, status: "accepted", received: readings }) satisfies PushAccepted,
        });
      });
    app.post<{ Params: { guid: string } }>(`${prefix}/api/generic/:guid`, { onRequest }, async (request, reply) => {
      const token = request.params.guid.toLowerCase();
      const refusal = parts.refusalOf(token, parts.serviceOf(user(request)));
      if (refusal !== null && !refusal.isFinal) throw unavailable("unavailable", refusal.reason);
      if (refusal !== null) throw new HttpProblem(404, "unknown-token", refusal.reason);
      const operationId = operationIdOf(request);
      const type = request.headers["content-type"]?.split(";")[0]?.trim().toLowerCase() ?? "";
      const received = await receive(parts, bodyOf(request));
      if (received.size === 0) await refuse(parts, received, invalidRequest("the body is empty"));
      return await take(parts, { request, reply, user: user(request) }, received, {
        route: "generic",
        operationId,
        token,
        path: (id) => `generic/${id}.${EXTENSIONS.get(type) ?? "bin"}`,
        details: { contentType: request.headers["content-type"] },
        answer: ({ id }) => ({ operationId: operationId ?? String(id), status: "accepted" }) satisfies PushAccepted,
      });
    });
  }
}

const storageQuery = caseless(
  z.object({
    Filename: z.string(),
    Tag: z.string().max(200).optional(),
    SiteId: z.string().max(40).optional(),
  }),
);

export async function storageRoutes(app: FastifyInstance, parts: RouteParts): Promise<void> {
  app.removeAllContentTypeParsers();
  const limits = { fileSize: parts.limits.body + 1, files: 2, fields: FIELDS_MAX };
  // Whatever its name, and with or without a file name: the only part is the file.
  await app.register(multipart, { limits, throwFileSizeLimit: false, isPartAFile: () => true });
  app.addContentTypeParser("*", (_request, _payload, done) => done(notMultipart()));
  const onRequest = [
    admission(parts, "storage", "datahub-api"),
    async (request: FastifyRequest) => void uploadOf(request),
  ];
  app.post("/storage", { onRequest }, async (request, reply) => {
    const { Filename, Tag, SiteId } = uploadOf(request);
    if (!request.isMultipart()) throw notMultipart();
    const received = await receivePart(parts, request);
    return await take(parts, { request, reply, user: admitted(request) }, received, {
      route: "storage",
      operationId: null,
      token: null,
      path: (id) => `storage/${id}/${Filename}`,
      details: { Tag, SiteId },
      answer: ({ id }) => id,
    });
  });
}

/** The query of the upload. */
function uploadOf(request: FastifyRequest): z.output<typeof storageQuery> {
  const query = storageQuery.safeParse(request.query);
  if (!query.success) throw invalidRequest("the query names no Filename, the name that triggers match");
  checkFileName(query.data.Filename);
  return query.data;
}

function notMultipart(): HttpProblem {
  return new HttpProblem(415, "unsupported-media-type", "send multipart/form-data with one part that holds the file");
}

const users = new WeakMap<FastifyRequest, IntakeUser>();

function admission(parts: RouteParts, right: IntakeRight, scope: string) {
  return async (request: FastifyRequest): Promise<void> => {
    users.set(request, await parts.people.authenticate(request, right, scope));
    const encoding = request.headers["content-encoding"];
    if (encoding !== undefined && encoding !== "identity")
      throw new HttpProblem(415, "unsupported-media-type", `the body is ${encoding}; send it without Content-Encoding`);
    if (Number(request.headers["content-length"] ?? 0) > parts.limits.body) throw tooLarge(parts);
    if ((await parts.bodies.waitingBytes()) >= parts.limits.backlog)
      throw unavailable(
        "backlog-full",
        "too many bodies wait to be delivered; send this again when the service is available",
      );
    if (await parts.isFull())
      throw unavailable(
        "storage-full",
        "the gateway has reached its limit until the service is available; send this again later",
      );
  };
}

function admitted(request: FastifyRequest): IntakeUser {
  const user = users.get(request);
  if (user === undefined) throw unauthenticated("no user signed in");
  return user;
}

interface Sending {
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  readonly user: IntakeUser;
}

async function take(
  parts: RouteParts,
  { request, reply, user }: Sending,
  received: Received,
  draft: Draft,
): Promise<unknown> {
  const { bodies, log } = parts;
  const answer = draft.answer(received);
  const receipt: Receipt = {
    id: received.id,
    path: draft.path(received.id),
    size: received.size,
    mtime: received.mtime,
    sha256: received.sha256,
    route: draft.route,
    username: user.username,
    service: parts.serviceOf(user),
    operationId: draft.operationId,
    idempotencyKey: await keyOf(parts, request, received),
    token: draft.token,
    details: JSON.stringify(draft.details),
    answer: JSON.stringify(answer),
  };
  const outcome = await bodies.publish(received, receipt);
  if (outcome.kind === "conflict")
    throw new HttpProblem(422, "idempotency-conflict", "this Idempotency-Key came before with another body");
  if (outcome.kind === "repeat") {
    log.debug({ user: user.username, path: outcome.receipt.path }, "a repeated body got the same response");
    void reply.header(REPLAYED_HEADER, "true");
    return JSON.parse(outcome.receipt.answer);
  }
  faultPoint("intake.durable");
  log.debug({ user: user.username, path: receipt.path, bytes: receipt.size }, "the intake received a body");
  parts.onTaken();
  return answer;
}

async function receive(parts: RouteParts, stream: Readable): Promise<Received> {
  try {
    return await parts.bodies.receive(stream, parts.clock.now().epochMilliseconds, parts.limits.body);
  } catch (thrown) {
    throw thrown instanceof BodyTooLarge ? tooLarge(parts) : thrown;
  }
}

async function receivePart(parts: RouteParts, request: FastifyRequest): Promise<Received> {
  let received: Received | null = null;
  for await (const part of request.parts()) {
    if (part.type !== "file") continue;
    if (received !== null)
      await refuse(parts, received, invalidRequest("the body has several parts; send one file per call"));
    received = await receive(parts, part.file);
  }
  if (received === null) throw invalidRequest("the body has no part that holds a file");
  return received;
}

async function refuse(parts: RouteParts, received: Received, problem: unknown): Promise<never> {
  await parts.bodies.discard(received);
  throw problem;
}

/** The flat body of an older client (`/api/standard`) as one of `/api/data`. */
async function asElements(parts: RouteParts, received: Received): Promise<Received> {
  const given = parsedJson(Buffer.from(await parts.bodies.bytes(received)).toString("utf8"));
  await parts.bodies.discard(received);
  const body = standardBody.safeParse(given);
  if (body.success) return await receive(parts, Readable.from([elementsOfStandard(body.data)]));
  const errors = body.error.issues.slice(0, 20).map(({ path, message }) => ({ path: path.join("."), message }));
  throw invalidRequest(errors.map(({ path, message }) => `${path || "the body"}: ${message}`).join("; "), errors);
}

/** The number of readings, once the shape of the body is valid for the service. */
async function checked(parts: RouteParts, received: Received): Promise<number> {
  try {
    return countReadings(readPushBody(await parts.bodies.bytes(received)));
  } catch (thrown) {
    await parts.bodies.discard(received);
    if (!(thrown instanceof PushBodyFault)) throw thrown;
    if (thrown.path === null) throw new HttpProblem(400, "invalid-json", thrown.message);
    const errors = [{ path: thrown.path, message: thrown.words }];
    throw invalidRequest(thrown.message, errors);
  }
}

function bodyOf(request: FastifyRequest): Readable {
  return request.body instanceof Readable ? request.body : request.raw;
}

function operationIdOf(request: FastifyRequest): string | null {
  const query = pushQuery.safeParse(request.query);
  if (!query.success)
    throw invalidRequest(query.error.issues.map((issue) => `${issue.path.join(".")}: ${issue.message}`).join("; "));
  const id = query.data.operationId || (bareOperationId(request) ?? "");
  if (id.length > OPERATION_ID_CHARACTERS_MAX)
    throw invalidRequest(`operationId: is at most ${OPERATION_ID_CHARACTERS_MAX} characters`);
  return id === "" ? null : id;
}

async function keyOf(parts: RouteParts, request: FastifyRequest, received: Received): Promise<string | null> {
  try {
    return idempotencyKeyOf(request);
  } catch (thrown) {
    return await refuse(parts, received, thrown);
  }
}

function checkFileName(name: string): void {
  const plain = name.trim() !== "" && !/[/\\\p{Cc}]/u.test(name) && name !== "." && name !== "..";
  if (!plain) throw invalidRequest("Filename: is a name without folders");
  if (Buffer.byteLength(name) > FILE_NAME_BYTES_MAX)
    throw invalidRequest(`Filename: is at most ${FILE_NAME_BYTES_MAX} bytes`);
}

function tooLarge({ limits }: RouteParts): HttpProblem {
  return new HttpProblem(
    413,
    "too-large",
    `the body is larger than the ${limits.body} bytes that this intake accepts; send it in parts`,
  );
}

// Errors of the intake as problem details; the response itself is in `wire/http-problem.ts`.

/** The intake accepts no bodies now; the sender may try again. */
function unavailable(code: "storage-full" | "backlog-full" | "unavailable", detail: string): HttpProblem {
  return new HttpProblem(503, code, detail, undefined, RETRY_AFTER_SECONDS);
}

export function installProblems(app: FastifyInstance, log: Logger): void {
  installProblemHandlers(app, {
    challenge: CHALLENGE,
    faultOf(thrown, place) {
      log.error({ err: thrown, ...place }, "the intake failed");
      return faultOf(thrown);
    },
    known: () =>
      ": this intake accepts POST /api/data, /api/standard, /api/generic/{guid}, /storage and /connect/token",
  });
}

function faultOf(thrown: unknown): HttpProblem {
  if (isOutOfSpace(thrown))
    return unavailable("storage-full", "the disk of the gateway is full; send this again later");
  if (thrown instanceof TransientError)
    return unavailable("unavailable", "the storage of the gateway cannot be reached now; send this again later");
  return new HttpProblem(
    500,
    "internal",
    "the gateway could not accept this; its log has the reason. Send it again later",
  );
}
