/** Stored files (specification, *Storage endpoints*; `docs/hub/files.md`, *Storage*). */
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { z } from "zod";
import { HttpProblem } from "#wire/http-problem.ts";
import { fileIdsQuery, filesQuery, fileUploadQuery, type StoredFile, storedFile, TEMPLATE_TAG } from "#wire/index.ts";
import type { HubContext } from "../context.ts";
import { NO_PLACE } from "../gateway-places.ts";
import { callerOf } from "../http/access.ts";
import { invalidField, notSupported, parsed } from "../http/problems.ts";
import { described } from "../http/route.ts";
import { offerTemplates } from "../master-data/template.ts";
import type { FileRecord, FilesFilter } from "../store/stored-files.ts";
import { requireGroups } from "../structure/groups.ts";
import { sendList } from "../structure/lists.ts";
import { both, notFound, ONE, pathId } from "../structure/pages.ts";
import { isoOfMs } from "../time.ts";
import { BlobMissing } from "./blobs.ts";
import { requireScanned, sendOne, sendSeveral } from "./content.ts";
import { type Allowance, allowed, type FileDraft, logRefusals, noSite, recorded } from "./intake.ts";
import { requireFileName } from "./names.ts";
import { FRAME_BYTES_MAX, onlyPart, parseMultipart } from "./only-part.ts";
import type { StoredFiles } from "./service.ts";

interface WithId {
  Params: { id: string };
}

const UPLOAD_OPTIONS = described({
  access: "upload",
  tag: "Storage",
  summary: "Stores a file",
  description: "Multipart with a single part, whatever its name. The answer is the id, a bare integer.",
  query: fileUploadQuery,
  body: z.object({ file: z.string().meta({ format: "binary" }) }),
  bodyType: "multipart/form-data",
  answer: z.int(),
});

/** Ids of one call. */
const IDS_MAX = 1_000;

const OPTIONS = {
  list: described({
    access: "read",
    tag: "Storage",
    summary: "Stored files of the account",
    query: filesQuery,
    answer: z.array(storedFile),
    example: { query: { CloudItemTypeId: ["Text"], "Paging.ItemsPerPage": 20, IncludeItemsCount: true } },
  }),
  one: described({
    access: "read",
    tag: "Storage",
    summary: "One stored file, and what became of it",
    answer: storedFile,
  }),
  content: described({
    access: "read",
    tag: "Storage",
    summary: "The content of a file, or of several as a ZIP",
    description: "Of one file also ranges of bytes. The key `ids` is repeated for several.",
    query: fileIdsQuery,
    answerType: "application/octet-stream",
  }),
  head: described({
    access: "read",
    tag: "Storage",
    summary: "The headers of the content, as GET answers them",
    query: fileIdsQuery,
    answerType: "application/octet-stream",
  }),
  remove: described({
    access: "manage",
    tag: "Storage",
    summary: "Removes files at once",
    description: "All of them or, when the account does not have one of them, none.",
    query: fileIdsQuery,
    answer: z.object({ removed: z.object({ files: z.int() }) }),
  }),
  process: described({
    access: "manage",
    tag: "Storage",
    summary: "Offers an unclaimed or quarantined file to the triggers again",
    answer: storedFile,
  }),
};

export async function fileRoutes(app: FastifyInstance, context: HubContext): Promise<void> {
  const { files } = context;
  if (files === null) return withoutFolder(app);
  await app.register((scope) => uploadRoute(scope, context, files));
  const { store, clock } = context;
  app.get("/storage", OPTIONS.list, async (request, reply) => {
    const { accountId } = callerOf(request);
    const query = parsed(filesQuery, request.query);
    await requireGroups(store, accountId, query.GroupId);
    const filter = filterOf(query);
    if (filter.tags?.includes(TEMPLATE_TAG) === true) await offerTemplates(context, files, accountId);
    return sendList(request, reply, query, {
      rows: (page) => store.files.list(accountId, filter, page),
      shown: (rows) => rows.map(shown),
      keyOf: ({ id }) => id,
    });
  });
  app.get<WithId>("/storage/:id", OPTIONS.one, async (request) => {
    const file = await store.files.one(callerOf(request).accountId, pathId(request.params.id));
    if (file === null) throw notFound("file", request.params.id);
    return shown(file);
  });
  const content = (request: FastifyRequest, reply: FastifyReply) => sendContent(context, files, request, reply);
  app.get("/storage/file", OPTIONS.content, content);
  app.head("/storage/file", OPTIONS.head, content);
  app.delete("/storage", OPTIONS.remove, async (request) => {
    const ids = idsOf(request.query);
    const { accountId } = callerOf(request);
    const removal = await store.files.remove(accountId, ids);
    if (removal.kind === "missing") throw missing(removal.ids);
    await files.removed(accountId, ids);
    await files.discard(removal.sha256s);
    return { removed: { files: ids.length } };
  });
  app.post<WithId>("/storage/:id/process", OPTIONS.process, async (request) => {
    const { accountId } = callerOf(request);
    const id = pathId(request.params.id);
    const again = { atMs: clock.now().epochMilliseconds, isScanned: files.isScanned };
    const outcome = await store.files.process(accountId, id, again);
    if (outcome !== "missing" && outcome !== "offered")
      throw new HttpProblem(
        409,
        "conflict",
        `the file ${id} is ${outcome}: only unclaimed and quarantined files are offered again`,
      );
    const { rows } = await store.files.list(accountId, { ids: [id] }, ONE);
    if (outcome === "missing" || rows[0] === undefined) throw notFound("file", request.params.id);
    files.wake(accountId);
    return shown(rows[0]);
  });
}

async function sendContent(context: HubContext, files: StoredFiles, request: FastifyRequest, reply: FastifyReply) {
  const { accountId } = callerOf(request);
  const ids = idsOf(request.query);
  const records = await existing(context, accountId, ids);
  for (const record of records) requireScanned(record);
  const [only] = records;
  if (only === undefined || records.length > 1) return await sendSeveral(context, files, request, reply, records);
  try {
    return await sendOne(files, request, reply, only);
  } catch (thrown) {
    // It may have been removed in this moment.
    if (thrown instanceof BlobMissing) await existing(context, accountId, ids);
    throw thrown;
  }
}

/** Hubs that share a database do not share a folder unless one is named. */
function withoutFolder(app: FastifyInstance): void {
  const reason = NO_PLACE;
  const facts = { access: "read", tag: "Storage", summary: "Not configured", status: 501 } as const;
  for (const url of ["/storage", "/storage/*"])
    app.route({
      method: ["GET", "HEAD", "POST", "DELETE"],
      url,
      ...described({ ...facts, description: reason }),
      handler: () => {
        throw notSupported("/storage", reason);
      },
    });
}

function filterOf(query: z.infer<typeof filesQuery>): FilesFilter {
  return {
    names: query.FileName,
    text: query.SearchText,
    siteIds: both(query.SiteId, query.SiteIds),
    siteTypeIds: query.SiteTypeId,
    groupIds: query.GroupId,
    tags: both(query.Tag, query.Tags),
    kinds: query.CloudItemTypeId,
    states: query.State,
  };
}

function idsOf(query: unknown): readonly number[] {
  const given = parsed(fileIdsQuery, query);
  const ids = [...new Set(both(given.id, given.ids))];
  if (ids.length === 0) throw invalidField("ids", "name the ids of files, such as ids=1&ids=2");
  if (ids.length > IDS_MAX) throw invalidField("ids", `names more than ${IDS_MAX} files`);
  return ids;
}

async function existing({ store }: HubContext, accountId: number, ids: readonly number[]) {
  const { rows } = await store.files.list(accountId, { ids }, { offset: 0, limit: null });
  const own = new Set(rows.map(({ id }) => id));
  const absent = ids.filter((id) => !own.has(id));
  if (absent.length > 0) throw missing(absent);
  return rows;
}

function missing(ids: readonly number[]): HttpProblem {
  return invalidField("ids", `no ${ids.length === 1 ? "file" : "files"} ${ids.join(", ")} in this account`);
}

function shown(file: FileRecord): StoredFile {
  const { accountId: _account, offers: _offers, webhookUrl: _webhook, ...own } = file;
  const { createdMs, updatedMs, repeatedMs, reason, ...rest } = own;
  const isHeld = file.scan === "waiting" && file.state === "received";
  return {
    ...rest,
    reason: isHeld ? "waits for the virus scan" : reason,
    creationDate: isoOfMs(createdMs),
    stateDate: isoOfMs(updatedMs),
    repeatedDate: repeatedMs === null ? null : isoOfMs(repeatedMs),
  };
}

interface Upload {
  readonly draft: FileDraft;
  readonly allowance: Allowance;
}

/**
 * POST /storage: the bytes are durable before the record, and the record before the answer. The query is checked, and
 * a body that is too large refused, before a byte of it is read.
 */
async function uploadRoute(app: FastifyInstance, context: HubContext, files: StoredFiles): Promise<void> {
  const { limits } = context.options;
  const uploads = new WeakMap<FastifyRequest, Upload>();
  logRefusals(app, context, ({ query }) => fileUploadQuery.safeParse(query).data?.Filename);
  app.removeAllContentTypeParsers();
  await parseMultipart(app, limits.file);
  app.addContentTypeParser("*", (_request, _payload, done) => done(notMultipart()));
  app.post("/storage", {
    ...UPLOAD_OPTIONS,
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
