/**
 * POST {push_url}/api/generic/{guid} (specification, *Push endpoints*): the body is a file in the sender's own format,
 * for the trigger with that token. It becomes a stored file.
 */
import { Readable } from "node:stream";
import { MIMEType } from "node:util";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { z } from "zod";
import { HttpProblem } from "#wire/http-problem.ts";
import { genericPushed, genericPushQuery, type StoredFileTrigger } from "#wire/index.ts";
import type { HubContext } from "../context.ts";
import { type Allowance, allowed, type FileDraft, logRefusals, receive, recorded } from "../files/intake.ts";
import { kindOf } from "../files/kinds.ts";
import { requireFileName } from "../files/names.ts";
import { FRAME_BYTES_MAX, onlyPart, parseMultipart } from "../files/only-part.ts";
import type { StoredFiles } from "../files/service.ts";
import { NO_PLACE } from "../gateway-places.ts";
import { callerOf } from "../http/access.ts";
import { invalidField, notSupported, parsed } from "../http/problems.ts";
import { described } from "../http/route.ts";
import { readWebhookUrl } from "../push/routes.ts";
import { ONE } from "../structure/pages.ts";

/** By the content type of the body. */
const EXTENSIONS: ReadonlyMap<string, string> = new Map([
  ["application/json", "json"],
  ["application/xml", "xml"],
  ["text/xml", "xml"],
  ["text/plain", "txt"],
  ["text/csv", "csv"],
  ["application/zip", "zip"],
  ["application/gzip", "gz"],
  ["application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", "xlsx"],
]);
/** Such a name has 255 bytes at most, of which a character takes four. */
const NAME_CHARACTERS_MAX = 50;
const UNKNOWN = ".bin";

const FACTS = {
  access: "push",
  tag: "Push",
  summary: "Stores a file in the sender's own format for the file trigger with this token",
  description:
    "Any content type: the body is the file; of multipart/form-data its only part is. 200 means that it is stored; " +
    "it is converted afterwards.",
  query: genericPushQuery,
  body: z.string().meta({ format: "binary" }),
  bodyType: "application/octet-stream",
  answer: genericPushed,
} as const;

interface WithGuid {
  Params: { guid: string };
}

interface Admitted {
  readonly trigger: StoredFileTrigger;
  /** Null: query and headers give none. */
  readonly fileName: string | null;
  readonly allowance: Allowance;
  readonly webhookUrl: string | null;
}

export async function genericPushRoutes(app: FastifyInstance, context: HubContext): Promise<void> {
  const { files } = context;
  if (files === null) return withoutFolder(app);
  const pushes = new WeakMap<FastifyRequest, Admitted>();
  const names = new WeakMap<FastifyRequest, string>();
  logRefusals(app, context, (request) => names.get(request));
  const { file: fileMax } = context.options.limits;
  app.removeAllContentTypeParsers();
  await parseMultipart(app, fileMax);
  app.addContentTypeParser("*", (_request, payload, done) => done(null, payload));
  app.post<WithGuid>("/push/api/generic/:guid", {
    ...described(FACTS),
    bodyLimit: fileMax + FRAME_BYTES_MAX,
    onRequest: async (request, reply) => void pushes.set(request, await admitted(context, request, reply, names)),
    handler: async (request, reply) => {
      const push = pushes.get(request);
      if (push === undefined) throw new Error("the push was not admitted");
      return await taken(context, files, { request, reply }, push);
    },
  });
}

async function admitted(
  context: HubContext,
  request: FastifyRequest<WithGuid>,
  reply: FastifyReply,
  names: WeakMap<FastifyRequest, string>,
): Promise<Admitted> {
  const trigger = await triggerOf(context, request);
  const query = parsed(genericPushQuery, request.query);
  const fileName = nameOf(request, query.Filename);
  names.set(request, fileName ?? madeName(trigger, request.headers["content-type"], context.clock.now()));
  const isForm = /^multipart\/form-data\b/i.test(request.headers["content-type"] ?? "");
  const allowance = await allowed(context, request, isForm ? FRAME_BYTES_MAX : 0);
  const webhookUrl = readWebhookUrl(query.webhookUrl, context.options.webhook.hosts, reply);
  return { trigger, fileName, allowance, webhookUrl };
}

async function triggerOf({ store }: HubContext, request: FastifyRequest<WithGuid>): Promise<StoredFileTrigger> {
  const filter = { tokens: [request.params.guid.toLowerCase()] };
  const { rows } = await store.fileTriggers.list(callerOf(request).accountId, filter, ONE);
  const [trigger] = rows;
  if (trigger === undefined)
    throw new HttpProblem(404, "unknown-token", "no file trigger of this account has this token (GET /fileTrigger)");
  const { id, state, ingestionType } = trigger;
  if (state === "Deleted") throw new HttpProblem(409, "conflict", `the file trigger ${id} was deleted`);
  if (state === "Inactive")
    throw new HttpProblem(409, "conflict", `the file trigger ${id} is Inactive; send the file when it is Active again`);
  if (ingestionType !== "SendViaHttp") {
    const words = `the file trigger ${id} is for files that come by ${ingestionType}, and not by SendViaHttp`;
    throw new HttpProblem(409, "conflict", words);
  }
  return trigger;
}

/** Null: the sender gives none. */
function nameOf({ headers }: FastifyRequest, asked: string | undefined): string | null {
  if (asked !== undefined) {
    requireFileName(asked);
    return asked;
  }
  const header = headers["content-disposition"];
  const given = header === undefined ? null : dispositionName(header);
  if (given === undefined)
    throw invalidField("Content-Disposition", 'cannot be read; it is such as attachment; filename="meters.csv"');
  if (given !== null) requireFileName(given, "Content-Disposition");
  return given;
}

async function taken(
  context: HubContext,
  files: StoredFiles,
  call: { readonly request: FastifyRequest; readonly reply: FastifyReply },
  { trigger, allowance, webhookUrl, ...push }: Admitted,
): Promise<z.infer<typeof genericPushed>> {
  const { request } = call;
  const isNamed = push.fileName !== null;
  const { put, contentType, ...file } = await bodyOf(context, files, request, allowance, isNamed);
  const given = push.fileName ?? file.fileName;
  const made = () => namedByContent(madeName(trigger, contentType, context.clock.now()), put.head);
  const fileName = given ?? made();
  const triggerId = trigger.id;
  const { idempotencyKey } = allowance;
  const own = { triggerId, idempotencyKey, webhookUrl };
  const draft: FileDraft = { fileName, tags: [], siteId: null, via: "generic", ...own };
  const id = await recorded(context, files, call, put, draft);
  const first = idempotencyKey === null ? null : await context.store.files.one(callerOf(request).accountId, id);
  return { id, fileName: first?.fileName ?? fileName, triggerId, status: "accepted" };
}

/** Many tools send files as forms; the frame around the file is of no use to a mapper. */
async function bodyOf(
  context: HubContext,
  files: StoredFiles,
  request: FastifyRequest,
  allowance: Allowance,
  isNamed: boolean,
) {
  const judge = (fileName: string) => (isNamed ? undefined : requireFileName(fileName, "filename of the part"));
  if (request.isMultipart()) return await onlyPart(context, files, request, allowance, judge);
  const stream = request.body instanceof Readable ? request.body : request.raw;
  const put = await receive(context, files, request, stream, allowance);
  return { put, fileName: undefined, contentType: request.headers["content-type"] };
}

/** See `/storage`, which needs the same folder. */
function withoutFolder(app: FastifyInstance): void {
  const reason = NO_PLACE;
  const facts = { access: "push", tag: "Push", summary: "Not configured", status: 501, description: reason } as const;
  app.post("/push/api/generic/:guid", described(facts), () => {
    throw notSupported("/push/api/generic", reason);
  });
}

// The name of a file that came by the custom push route: as the sender says, or made from the trigger and the time.

/** RFC 6266: `filename*` before `filename`. Null: it names none; undefined: it cannot be read. */
function dispositionName(header: string): string | null | undefined {
  let parameters: MIMEType["params"];
  try {
    // Its parameters have the syntax of those of a media type.
    parameters = new MIMEType(`x/${header.trim()}`).params;
  } catch {
    return undefined;
  }
  const extended = parameters.get("filename*");
  if (extended === null) {
    const plain = parameters.get("filename");
    return plain === null ? null : utf8Of(plain);
  }
  const [, charset = "", encoded = ""] = /^([\w-]*)'[\w-]*'(.*)$/.exec(extended) ?? [];
  if (charset.toLowerCase() !== "utf-8") return undefined;
  try {
    return decodeURIComponent(encoded);
  } catch {
    return undefined;
  }
}

/** Headers are read as Latin-1, and many senders write UTF-8 into them. */
function utf8Of(text: string): string {
  const decoded = Buffer.from(text, "latin1").toString("utf8");
  return decoded.includes("\ufffd") ? text : decoded;
}

/** Such as `acme-20260301T041530123Z.csv`. */
function madeName(
  { id, name }: Pick<StoredFileTrigger, "id" | "name">,
  contentType: string | undefined,
  at: Temporal.Instant,
): string {
  const words = (name ?? "").replaceAll(/[^\p{L}\p{N}._-]+/gu, "-").replaceAll(/^[.-]+|[.-]+$/g, "");
  const time = at.toString({ fractionalSecondDigits: 3 }).replaceAll(/[-:.]/g, "");
  const type = contentType?.split(";")[0]?.trim().toLowerCase() ?? "";
  const begin = [...words].slice(0, NAME_CHARACTERS_MAX).join("") || `trigger-${id}`;
  return `${begin}-${time}${endingOf(type) ?? UNKNOWN}`;
}

function endingOf(type: string): string | null {
  const extension = EXTENSIONS.get(type);
  return extension === undefined ? null : `.${extension}`;
}

/** Many senders name no content type. `head`: of the content. A text of an unknown type stays one. */
function namedByContent(made: string, head: Uint8Array): string {
  const { cloudItemTypeId, contentType } = kindOf(head, "");
  if (!made.endsWith(UNKNOWN) || cloudItemTypeId === "Text") return made;
  return made.slice(0, -UNKNOWN.length) + (endingOf(contentType) ?? UNKNOWN);
}
