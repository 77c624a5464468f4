/**
 * POST /storage: the bytes are durable before the record, and the record before the answer. The query is checked, and
 * a body that is too large refused, before a byte of it is read.
 */
import multipart from "@fastify/multipart";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { z } from "zod";
import { unknownNames } from "../../wire/caseless.ts";
import { HttpProblem, invalidRequest } from "../../wire/http-problem.ts";
import { fileUploadQuery } from "../../wire/index.ts";
import type { HubContext } from "../context.ts";
import { callerOf } from "../http/access.ts";
import { parsed } from "../http/problems.ts";
import { described } from "../http/route.ts";
import { warnOfUnknown } from "../http/warnings.ts";
import { ONE } from "../structure/pages.ts";
import type { PutBlob } from "./blobs.ts";
import {
  type Allowance,
  allowed,
  brokenOff,
  type FileDraft,
  logRefusals,
  noSite,
  receive,
  recorded,
} from "./intake.ts";
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
  readonly draft: FileDraft;
  readonly allowance: Allowance;
}

export async function uploadRoute(app: FastifyInstance, context: HubContext, files: StoredFiles): Promise<void> {
  const { limits } = context.options;
  const uploads = new WeakMap<FastifyRequest, Upload>();
  logRefusals(app, context, ({ query }) => fileUploadQuery.safeParse(withoutPrefix(query as object)).data?.Filename);
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
      const put = await onlyPart(context, files, request, upload.allowance);
      return await recorded(context, files, request, put, upload.draft);
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
  const allowance = await allowed(context, request, FRAME_BYTES_MAX);
  if (query.SiteId !== undefined && !allowance.isRepeat) {
    const { total } = await context.store.structure.sites(accountId, { ids: [query.SiteId] }, ONE);
    if (total === 0) throw noSite(query.SiteId);
  }
  warnOfUnknown(reply, unknownNames(fileUploadQuery, Object.keys(given)));
  const tags = [...new Set([...(query.Tag ?? []), ...(query.Tags ?? [])])];
  const draft = {
    fileName: query.Filename,
    tags,
    siteId: query.SiteId ?? null,
    via: "storage",
    idempotencyKey: allowance.idempotencyKey,
  } as const;
  return { draft, allowance };
}

/** The bytes of the only part. */
async function onlyPart(
  context: HubContext,
  files: StoredFiles,
  request: FastifyRequest,
  allowance: Allowance,
): Promise<PutBlob> {
  let put: PutBlob | null = null;
  try {
    for await (const part of request.parts()) {
      if (part.type !== "file") continue;
      if (put !== null) throw invalidRequest("the body has several parts; send one file per call");
      put = await receive(context, files, request, part.file, allowance);
    }
  } catch (thrown) {
    put?.release();
    if (put !== null) await files.discard([put.sha256]);
    throw brokenOff(request) ?? unreadable(thrown) ?? thrown;
  }
  if (put === null) throw invalidRequest("the body has no part that holds a file");
  return put;
}

/** Words of the multipart parser about a body that it cannot read. */
const UNREADABLE = /end of form|end of multipart|multipart|part header|part terminated/i;

/** Null for every other failure. */
function unreadable(thrown: unknown): HttpProblem | null {
  if (!(thrown instanceof Error) || thrown instanceof HttpProblem || !UNREADABLE.test(thrown.message)) return null;
  return invalidRequest(`the body is no complete multipart/form-data: ${thrown.message}`);
}

function notMultipart(): HttpProblem {
  return new HttpProblem(415, "unsupported-media-type", "send multipart/form-data with one part that holds the file");
}
