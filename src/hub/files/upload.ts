/**
 * POST /storage: the bytes are durable before the record, and the record before the answer. The query is checked, and
 * a body that is too large refused, before a byte of it is read.
 */
import type { FastifyInstance, FastifyRequest } from "fastify";
import { z } from "zod";
import { HttpProblem } from "#wire/http-problem.ts";
import { fileUploadQuery } from "#wire/index.ts";
import type { HubContext } from "../context.ts";
import { callerOf } from "../http/access.ts";
import { parsed } from "../http/problems.ts";
import { described } from "../http/route.ts";
import { ONE } from "../structure/pages.ts";
import { type Allowance, allowed, type FileDraft, logRefusals, noSite, recorded } from "./intake.ts";
import { requireFileName } from "./names.ts";
import { FRAME_BYTES_MAX, onlyPart, parseMultipart } from "./only-part.ts";
import type { StoredFiles } from "./service.ts";

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
  logRefusals(app, context, ({ query }) => fileUploadQuery.safeParse(query).data?.Filename);
  app.removeAllContentTypeParsers();
  await parseMultipart(app, limits.file);
  app.addContentTypeParser("*", (_request, _payload, done) => done(notMultipart()));
  app.post("/storage", {
    ...OPTIONS,
    bodyLimit: limits.file + FRAME_BYTES_MAX,
    onRequest: async (request) => void uploads.set(request, await admitted(context, request)),
    handler: async (request, reply) => {
      const upload = uploads.get(request);
      if (upload === undefined) throw new Error("the upload was not admitted");
      if (!request.isMultipart()) throw notMultipart();
      const { put } = await onlyPart(context, files, request, upload.allowance);
      return await recorded(context, files, { request, reply }, put, upload.draft);
    },
  });
}

async function admitted(context: HubContext, request: FastifyRequest): Promise<Upload> {
  const { accountId } = callerOf(request);
  const given = request.query as object;
  const query = parsed(fileUploadQuery, given);
  requireFileName(query.Filename);
  const allowance = await allowed(context, request, FRAME_BYTES_MAX);
  if (query.SiteId !== undefined && !allowance.isRepeat) {
    const { total } = await context.store.structure.sites(accountId, { ids: [query.SiteId] }, ONE);
    if (total === 0) throw noSite(query.SiteId);
  }
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

function notMultipart(): HttpProblem {
  return new HttpProblem(415, "unsupported-media-type", "send multipart/form-data with one part that holds the file");
}
