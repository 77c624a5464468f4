/**
 * POST /storage: the bytes are durable before the record, and the record before the answer. The query is checked, and
 * a body that is too large refused, before a byte of it is read.
 */
import multipart from "@fastify/multipart";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { z } from "zod";
import { systemCode } from "../../support/errors.ts";
import { faultPoint } from "../../support/faults.ts";
import { unknownNames } from "../../wire/caseless.ts";
import { HttpProblem, invalidRequest } from "../../wire/http-problem.ts";
import { fileUploadQuery } from "../../wire/index.ts";
import type { HubContext } from "../context.ts";
import { callerOf } from "../http/access.ts";
import { invalidField, parsed } from "../http/problems.ts";
import { described } from "../http/route.ts";
import { warnOfUnknown } from "../http/warnings.ts";
import type { NewFile } from "../store/store.ts";
import { ONE } from "../structure/pages.ts";
import { BlobTooLarge, type PutBlob } from "./blobs.ts";
import { kindOf } from "./kinds.ts";
import { requireFileName } from "./names.ts";
import type { StoredFiles } from "./service.ts";

/** Of the parts' headers and boundaries, beside the bytes of the file. */
const FRAME_BYTES_MAX = 16_384;
const FIELDS_MAX = 20;

const OPTIONS = described({
  access: "upload",
  tag: "Storage",
  summary: "Stores a file",
  description: "Multipart with a single part, whatever its name. The answer is the id, a bare integer.",
  query: fileUploadQuery,
  body: z.object({ file: z.string().meta({ format: "binary" }) }),
  bodyType: "multipart/form-data",
  answer: z.int(),
});

interface Upload {
  readonly name: string;
  readonly tags: readonly string[];
  readonly siteId: number | null;
  /** The rest of the account's quota; null without one. */
  readonly rest: number | null;
}

export async function uploadRoute(app: FastifyInstance, context: HubContext, files: StoredFiles): Promise<void> {
  const { limits } = context.options;
  const uploads = new WeakMap<FastifyRequest, Upload>();
  app.removeAllContentTypeParsers();
  // The limit of the file is that of `BlobStore.put`, which counts what it writes.
  await app.register(multipart, {
    limits: { fileSize: limits.file + 1, files: 2, fields: FIELDS_MAX },
    throwFileSizeLimit: false,
    isPartAFile: () => true,
  });
  app.addContentTypeParser("*", (_request, _payload, done) => done(notMultipart()));
  app.post("/storage", {
    ...OPTIONS,
    bodyLimit: limits.file + FRAME_BYTES_MAX,
    onRequest: async (request, reply) => void uploads.set(request, await admitted(context, request, reply)),
    handler: async (request) => {
      const upload = uploads.get(request);
      if (upload === undefined) throw new Error("the upload was not admitted");
      if (!request.isMultipart()) throw notMultipart();
      return await store(context, files, request, upload);
    },
  });
}

/** Some clients write `parameters.filename`. */
function withoutPrefix(query: object): Record<string, unknown> {
  const out: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(query)) {
    const own = name.replace(/^parameters\./i, "");
    out[own] = Object.hasOwn(out, own) ? [out[own], value].flat() : value;
  }
  return out;
}

async function admitted(context: HubContext, request: FastifyRequest, reply: FastifyReply): Promise<Upload> {
  const { accountId } = callerOf(request);
  const given = withoutPrefix(request.query as object);
  const query = parsed(fileUploadQuery, given);
  requireFileName(query.Filename);
  const encoding = request.headers["content-encoding"];
  if (encoding !== undefined && encoding !== "identity")
    throw new HttpProblem(415, "unsupported-media-type", `the body is ${encoding}; send it without Content-Encoding`);
  const length = Number(request.headers["content-length"] ?? 0);
  if (length > context.options.limits.file + FRAME_BYTES_MAX) throw tooLarge(context);
  if (query.SiteId !== undefined) {
    const { total } = await context.store.structure.sites(accountId, { ids: [query.SiteId] }, ONE);
    if (total === 0) throw noSite(query.SiteId);
  }
  const quota = quotaOf(context, accountId);
  const rest = quota === null ? null : quota - (await context.store.files.usedBytes(accountId));
  if (rest !== null && (rest <= 0 || length > rest + FRAME_BYTES_MAX)) throw quotaExceeded(quota);
  warnOfUnknown(reply, unknownNames(fileUploadQuery, Object.keys(given)));
  const tags = [...new Set([...(query.Tag ?? []), ...(query.Tags ?? [])])];
  return { name: query.Filename, tags, siteId: query.SiteId ?? null, rest };
}

async function store(
  context: HubContext,
  files: StoredFiles,
  request: FastifyRequest,
  { name, tags, siteId, rest }: Upload,
): Promise<number> {
  const { accountId, user } = callerOf(request);
  const quota = quotaOf(context, accountId);
  const put = await received(context, files, request, rest);
  let isRecorded = false;
  try {
    if (put.bytes === 0) throw invalidRequest("the file is empty");
    faultPoint("hub.file.durable");
    const file: NewFile = {
      fileName: name,
      size: put.bytes,
      sha256: put.sha256,
      ...kindOf(put.head, name),
      tags: [...tags],
      siteId,
      createdBy: user.username,
      via: "storage",
      createdMs: context.clock.now().epochMilliseconds,
      isScanned: files.isScanned,
    };
    const added = await context.store.files.add(accountId, file, quota);
    if (added.kind === "no-site") throw noSite(siteId ?? 0);
    if (added.kind === "full") throw quotaExceeded(quota);
    isRecorded = true;
    faultPoint("hub.file.recorded");
    context.log.debug({ id: added.id, name, bytes: put.bytes }, "file stored");
    files.wake(accountId);
    return added.id;
  } finally {
    put.release();
    if (!isRecorded) await files.discard([put.sha256]);
  }
}

/** The bytes of the only part. */
async function received(
  context: HubContext,
  files: StoredFiles,
  request: FastifyRequest,
  rest: number | null,
): Promise<PutBlob> {
  const bytesMax = Math.min(context.options.limits.file, rest ?? Number.POSITIVE_INFINITY);
  let put: PutBlob | null = null;
  try {
    for await (const part of request.parts()) {
      if (part.type !== "file") continue;
      if (put !== null) throw invalidRequest("the body has several parts; send one file per call");
      put = await files.blobs.put(part.file, bytesMax);
    }
  } catch (thrown) {
    put?.release();
    if (put !== null) await files.discard([put.sha256]);
    if (thrown instanceof BlobTooLarge)
      throw bytesMax === context.options.limits.file ? tooLarge(context) : quotaExceeded(bytesMax);
    if (["ENOSPC", "EDQUOT"].includes(systemCode(thrown) ?? "")) {
      context.log.error({ err: thrown }, "the disk of the stored files is full: uploads are refused");
      throw new HttpProblem(507, "storage-full", "the hub has no space for this file; send it again later");
    }
    throw brokenOff(request, thrown) ?? thrown;
  }
  if (put === null) throw invalidRequest("the body has no part that holds a file");
  return put;
}

/** Words of the multipart parser about a body that it cannot read. */
const UNREADABLE = /end of form|end of multipart|multipart|part header|part terminated/i;

/** Null for every other failure. */
function brokenOff({ raw }: FastifyRequest, thrown: unknown): HttpProblem | null {
  if (raw.destroyed && !raw.complete) return invalidRequest("the upload was broken off");
  if (!(thrown instanceof Error) || thrown instanceof HttpProblem || !UNREADABLE.test(thrown.message)) return null;
  return invalidRequest(`the body is no complete multipart/form-data: ${thrown.message}`);
}

function quotaOf({ options }: HubContext, accountId: number): number | null {
  const own = options.accounts.find(({ id }) => id === accountId)?.limits?.storedBytes;
  return own ?? options.customerLimits.storedBytes ?? null;
}

function noSite(id: number): HttpProblem {
  return invalidField("SiteId", `no site ${id} in this account (GET /sites)`);
}

function tooLarge({ options }: HubContext): HttpProblem {
  return new HttpProblem(413, "too-large", `the file is larger than ${options.limits.file} bytes (\`limits.file\`)`);
}

function quotaExceeded(quota: number | null): HttpProblem {
  const words = `the files of the account would exceed ${quota} bytes; remove some first (DELETE /storage)`;
  return new HttpProblem(507, "quota-exceeded", words);
}

function notMultipart(): HttpProblem {
  return new HttpProblem(415, "unsupported-media-type", "send multipart/form-data with one part that holds the file");
}
