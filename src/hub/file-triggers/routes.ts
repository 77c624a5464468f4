/** File triggers (specification, *File trigger endpoints*; `docs/hub/files.md`, *File triggers*). */
import { randomUUID } from "node:crypto";
import { basename } from "node:path/posix";
import { isDeepStrictEqual } from "node:util";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { z } from "zod";
import { gzipEntryName, isContainerName, isZipName } from "#core/file-names.ts";
import { HttpProblem } from "#wire/http-problem.ts";
import {
  FILE_TYPES,
  FILTER_TYPES,
  type FileTriggerBody,
  type FileTriggerFields,
  type FileTriggerJudgement,
  type FileTriggerTest,
  fileTriggerBody,
  fileTriggerChange,
  fileTriggerCountQuery,
  fileTriggerFields,
  fileTriggerHistoryQuery,
  fileTriggerIdsQuery,
  fileTriggersQuery,
  fileTriggerTest,
  fileTriggerTestQuery,
  fileTriggerUpdate,
  INGESTION_TYPES,
  type IngestionType,
  MASTER_DATA,
  type Mapping,
  mapping,
  type ShownFileTrigger,
  type StoredFileTrigger,
  shownFileTrigger,
  TRIGGER_COMBINATIONS,
  TRIGGER_TYPES,
} from "#wire/index.ts";
import { constantWords, matchToken, matchTrigger } from "#wire/trigger-match.ts";
import { limitOf } from "../account-limits.ts";
import type { HubContext } from "../context.ts";
import { callerOf } from "../http/access.ts";
import { invalidField, parsed } from "../http/problems.ts";
import { described } from "../http/route.ts";
import { warn } from "../http/warnings.ts";
import type { Edit, FileTriggersFilter } from "../store/file-triggers.ts";
import { sendList } from "../structure/lists.ts";
import { notFound, ONE, pathId } from "../structure/pages.ts";
import { isKnown, requireSettings } from "./mappers.ts";

interface WithId {
  Params: { id: string };
}

/** Mappers of file types that have a format of their own. */
const MAPPERS_OF_TYPES: Readonly<Partial<Record<FileTriggerFields["fileType"], string>>> = {
  OpisenseStandard: "standard",
  OpisenseManualLoad: "meter-index",
  IndexIs: "meter-index",
};

const OPENED = "a ZIP is opened, and each file in it is offered to the triggers by its own name";
const NAME_ENTRIES = "; Entry=NAME, repeated, tests names of files in it";
const UNPACKED = "a .gz is unpacked, and the file in it is offered to the triggers by its own name, without .gz";
const NESTED = "it is a container within another, and only the outermost one is opened: the file is quarantined";
const TAG = "File triggers";
const read = { access: "read", tag: TAG } as const;
const manage = { access: "manage", tag: TAG } as const;
const PATTERNS = [{ filterType: "StartsWith", value: "acme_" }];

const OPTIONS = {
  list: described({
    ...read,
    summary: "File triggers of the account, without the deleted ones",
    query: fileTriggersQuery,
    answer: z.array(shownFileTrigger),
    example: { query: { ItemsPerPage: 20, State: ["Active"] } },
  }),
  one: described({ ...read, summary: "One file trigger", answer: shownFileTrigger }),
  count: described({
    ...read,
    summary: "How many file triggers the list has",
    query: fileTriggerCountQuery,
    refusesUnknown: "without an unknown filter the count would be that of all",
    answer: z.int(),
    example: { query: {} },
  }),
  token: described({
    ...read,
    summary: "A GUID for a new file trigger",
    description: "Each call makes another; it belongs to a trigger once one is created with it.",
    answer: z.guid(),
    example: {},
  }),
  mappings: described({
    ...read,
    summary: "Mappers that the hub has for the account",
    answer: z.array(mapping),
    example: {},
  }),
  create: described({
    ...manage,
    summary: "Adds a file trigger",
    description: "The answer is the id, a bare integer. A mapper that the hub does not have is a warning.",
    body: fileTriggerBody,
    shown: shownFileTrigger,
    answer: z.int(),
    example: {
      body: { name: "ACME", fileNamePatternMatches: PATTERNS, ingestionType: "UploadInStorage", mapping: "acme" },
    },
  }),
  update: described({
    ...manage,
    summary: "Changes the file trigger that the body names by its id",
    description: "Fields that the body leaves out stay as they are. The answer is the whole trigger.",
    body: fileTriggerUpdate,
    answer: shownFileTrigger,
    example: { body: { id: 1, state: "Inactive" } },
  }),
  remove: described({
    ...manage,
    summary: "Deletes file triggers: they claim nothing more and stay for their history",
    description:
      "All of them or, when the account does not have one of them, none. One that was deleted before is not counted.",
    query: fileTriggerIdsQuery,
    answer: z.object({ removed: z.object({ fileTriggers: z.int() }) }),
    example: { query: { ids: [1] } },
  }),
  history: described({
    ...read,
    summary: "Changes of a file trigger, newest first",
    query: fileTriggerHistoryQuery,
    answer: z.array(fileTriggerChange),
  }),
  test: described({
    ...read,
    summary: "Which file trigger would claim a file of this name, and why the others would not",
    description: "Nothing is changed.",
    query: fileTriggerTestQuery,
    answer: fileTriggerTest,
    example: { query: { Filename: "acme_2026-03.csv" } },
  }),
};

const VALUES: Readonly<Record<string, readonly string[]>> = {
  fileTypes: FILE_TYPES,
  filterTypes: FILTER_TYPES,
  ingestionTypes: INGESTION_TYPES,
  triggerTypes: TRIGGER_TYPES,
  triggerCombinations: TRIGGER_COMBINATIONS,
};

export async function fileTriggerRoutes(app: FastifyInstance, context: HubContext): Promise<void> {
  for (const [path, values] of Object.entries(VALUES)) {
    const facts = { ...read, summary: `Values of ${path}`, answer: z.array(z.string()), example: {} };
    app.get(`/fileTrigger/${path}`, described(facts), async () => values);
  }
  app.get("/fileTrigger/mappings", OPTIONS.mappings, (request) => context.mappersOf(callerOf(request).accountId));
  app.get("/fileTrigger/generateToken", OPTIONS.token, async (_request, reply) =>
    reply.type("application/json; charset=utf-8").send(JSON.stringify(randomUUID())),
  );
  readRoutes(app, context);
  changeRoutes(app, context);
  app.post("/fileTrigger/test", OPTIONS.test, (request) => tested(context, request));
}

function readRoutes(app: FastifyInstance, context: HubContext): void {
  const { fileTriggers } = context.store;
  app.get("/fileTrigger", OPTIONS.list, async (request, reply) => {
    const { accountId } = callerOf(request);
    const query = parsed(fileTriggersQuery, request.query);
    const mappers = await context.mappersOf(accountId);
    return sendList(request, reply, pagingOf(query), {
      rows: (page) => fileTriggers.list(accountId, filterOf(query), page),
      shown: (rows) => rows.map((row) => shown(row, mappers)),
      keyOf: ({ id }) => id,
    });
  });
  app.get("/fileTrigger/count", OPTIONS.count, async (request) => {
    const { accountId } = callerOf(request);
    const filter = filterOf(parsed(fileTriggerCountQuery, request.query));
    return (await fileTriggers.list(accountId, filter, ONE)).total;
  });
  app.get<WithId>("/fileTrigger/:id", OPTIONS.one, async (request) => {
    const { accountId } = callerOf(request);
    return shown(await existing(context, accountId, request.params.id), await context.mappersOf(accountId));
  });
  app.get<WithId>("/fileTrigger/:id/history", OPTIONS.history, async (request, reply) => {
    const { accountId } = callerOf(request);
    const query = parsed(fileTriggerHistoryQuery, request.query);
    const { id } = await existing(context, accountId, request.params.id);
    return sendList(request, reply, pagingOf(query), {
      rows: (page) => fileTriggers.history(accountId, id, page),
      shown: (rows) => rows,
      keyOf: null,
    });
  });
}

function changeRoutes(app: FastifyInstance, context: HubContext): void {
  const { fileTriggers } = context.store;
  app.post("/fileTrigger", OPTIONS.create, async (request, reply) => {
    const { accountId } = callerOf(request);
    const mappers = await context.mappersOf(accountId);
    const fields = createdFields(parsed(fileTriggerBody, request.body), mappers);
    const most = limitOf(context.options, accountId, "file_trigger");
    const id = await fileTriggers.create(accountId, fields, editOf(context, request), most);
    if (id === "taken") throw takenToken();
    warnOfMapping(reply, fields, mappers);
    return id;
  });
  app.put("/fileTrigger", OPTIONS.update, async (request, reply) => {
    const { accountId } = callerOf(request);
    const mappers = await context.mappersOf(accountId);
    const { id, ...body } = parsed(fileTriggerUpdate, request.body);
    const edit = editOf(context, request);
    const changed = await fileTriggers.change(accountId, id, (now) => changedFields(now, body, mappers), edit);
    if (changed === "missing") throw notFound("file trigger", String(id));
    if (changed === "taken") throw takenToken();
    warnOfMapping(reply, changed, mappers);
    return shown(changed, mappers);
  });
  app.delete("/fileTrigger", OPTIONS.remove, async (request) => {
    const { accountId } = callerOf(request);
    const ids = [...new Set(parsed(fileTriggerIdsQuery, request.query).ids)];
    const { missing, removed } = await fileTriggers.remove(accountId, ids, editOf(context, request));
    const words = `no ${missing.length === 1 ? "file trigger" : "file triggers"} ${missing.join(", ")} in this account`;
    if (missing.length > 0) throw invalidField("ids", words);
    return { removed: { fileTriggers: removed } };
  });
}

async function tested({ store }: HubContext, request: FastifyRequest) {
  const { Filename, IngestionType, Token, Entry = [] } = parsed(fileTriggerTestQuery, request.query);
  if ((IngestionType === "SendViaHttp") !== (Token !== undefined))
    throw invalidField("Token", "is given with IngestionType=SendViaHttp, and with no other");
  if (Entry.length > 0 && (Token !== undefined || !isZipName(Filename)))
    throw invalidField(
      "Entry",
      "is given with a Filename that ends with .zip, whose files are offered by their own names, and not with Token, " +
        "which decides for all of them",
    );
  const filter = { states: LISTED };
  const { rows } = await store.fileTriggers.list(callerOf(request).accountId, filter, { offset: 0, limit: null });
  return judged(rows, { fileName: Filename, ingestionType: IngestionType, token: Token, entries: Entry });
}

async function existing({ store }: HubContext, accountId: number, id: string): Promise<StoredFileTrigger> {
  const { rows } = await store.fileTriggers.list(accountId, { ids: [pathId(id)] }, ONE);
  if (rows[0] === undefined) throw notFound("file trigger", id);
  return rows[0];
}

const LISTED = ["Active", "Updated", "Inactive"] as const;

interface Filters {
  readonly State?: FileTriggerFields["state"][] | undefined;
  readonly IngestionType?: IngestionType[] | undefined;
}

function filterOf({ State, IngestionType }: Filters): FileTriggersFilter {
  return { states: State ?? LISTED, ingestionTypes: IngestionType };
}

interface Paging {
  readonly ItemsPerPage?: number | undefined;
  readonly Page?: number | undefined;
  readonly "Paging.ItemsPerPage"?: number | undefined;
  readonly "Paging.PageNumber"?: number | undefined;
  readonly IncludeItemsCount?: boolean | undefined;
}

/** The specification names `ItemsPerPage` here, and `Paging.ItemsPerPage` at other addresses. */
function pagingOf(query: Paging) {
  return {
    "Paging.ItemsPerPage": query.ItemsPerPage ?? query["Paging.ItemsPerPage"],
    "Paging.PageNumber": query.Page ?? query["Paging.PageNumber"],
    IncludeItemsCount: query.IncludeItemsCount,
  };
}

function shown(trigger: StoredFileTrigger, mappers: readonly Mapping[]): ShownFileTrigger {
  return { ...trigger, mappingKnown: isKnown(trigger, mappers) };
}

function editOf({ clock }: HubContext, request: FastifyRequest): Edit {
  return { by: callerOf(request).user.username, atMs: clock.now().epochMilliseconds };
}

function warnOfMapping(reply: FastifyReply, trigger: FileTriggerFields, mappers: readonly Mapping[]): void {
  if (trigger.mapping === null || trigger.state === "Deleted" || isKnown(trigger, mappers)) return;
  warn(reply, `this hub has no mapper ${trigger.mapping}: files that the trigger claims here fail to convert`);
}

/** Of another account's trigger no more is disclosed. */
function takenToken(): HttpProblem {
  const path = "token";
  const message = "is taken: GET /fileTrigger/generateToken returns another";
  return new HttpProblem(409, "conflict", `${path}: ${message}`, [{ path, message }]);
}

// Which trigger of an account claims a file, and why the others do not.

interface OfferedFile {
  /** Folders before it do not count. */
  readonly fileName: string;
  readonly ingestionType: IngestionType;
  /** Of the custom push route: it decides in place of the name. */
  readonly token?: string | undefined;
  /** Names of files in it, when it is a ZIP. */
  readonly entries: readonly string[];
}

type Triggers = readonly StoredFileTrigger[];

/** Triggers claim the entries of a container, and not the container itself (`runs/claims.ts`). */
function judged(triggers: Triggers, file: OfferedFile): FileTriggerTest {
  const { fileName, ingestionType, token } = file;
  if (token !== undefined || !isContainerName(basename(fileName)))
    return { ...judgedByName(triggers, fileName, file), ingestionType, container: null };
  const names = isZipName(fileName) ? file.entries : [gzipEntryName(fileName)];
  const entries = names.map((name) =>
    isContainerName(basename(name))
      ? { fileName: name, claimedBy: null, triggers: [], refused: NESTED }
      : { ...judgedByName(triggers, name, file), refused: null },
  );
  const reason = isZipName(fileName) ? `${OPENED}${entries.length === 0 ? NAME_ENTRIES : ""}` : UNPACKED;
  return { fileName, ingestionType, claimedBy: null, triggers: [], container: { reason, entries } };
}

/** The first that matches claims, in the order of ids, in which `triggers` come. */
function judgedByName(
  triggers: Triggers,
  path: string,
  { ingestionType, token }: Pick<OfferedFile, "ingestionType" | "token">,
): FileTriggerJudgement {
  const fileName = basename(path);
  const verdicts = triggers.map((trigger) => {
    const byName = matchTrigger(trigger, fileName, ingestionType);
    const { matches, words } = token === undefined ? byName : matchToken(trigger, token);
    return { id: trigger.id, name: trigger.name, matches, reason: words, patterns: [...byName.patterns] };
  });
  const claimedBy = verdicts.find(({ matches }) => matches)?.id ?? null;
  return {
    fileName: path,
    claimedBy,
    triggers: verdicts.map((verdict) =>
      verdict.matches && verdict.id !== claimedBy
        ? { ...verdict, reason: `it matches, and the trigger ${claimedBy}, which comes before it, claims the file` }
        : verdict,
    ),
  };
}

// From the body of a request to the fields of a trigger, with what the specification leaves open as defaults.

function createdFields(body: FileTriggerBody, mappers: readonly Mapping[]): FileTriggerFields {
  if (body.state === "Deleted") throw invalidField("state", "a new trigger is Active or Inactive");
  const fields: FileTriggerFields = {
    name: body.name ?? null,
    fileType: body.fileType ?? "CustomFormat",
    ingestionType: body.ingestionType ?? "SendViaFtp",
    triggerType: body.triggerType ?? "Added",
    fileNamePatternMatches: body.fileNamePatternMatches ?? [],
    fileTriggerCombination: body.fileTriggerCombination ?? "And",
    state: body.state === "Inactive" ? "Inactive" : "Active",
    token: body.token ?? randomUUID(),
    mapping: body.mapping ?? null,
    metadata: body.metadata ?? {},
  };
  const made = withMapping(fields);
  requirePatterns(made);
  requireSettings(made, mappers);
  return made;
}

/** Fields that the body leaves out stay; only what changes is checked. */
function changedFields(
  current: StoredFileTrigger,
  body: FileTriggerBody,
  mappers: readonly Mapping[],
): FileTriggerFields {
  if (current.state === "Deleted")
    throw new HttpProblem(
      409,
      "conflict",
      `the file trigger ${current.id} was deleted, which is for good: create another (POST /fileTrigger)`,
    );
  const given = Object.entries(body).filter(([, value]) => value !== undefined);
  const { state } = current;
  const changed = withMapping({ ...current, ...Object.fromEntries(given), state });
  const fields = { ...changed, state: stateAfter(current, changed, body.state ?? state) };
  requirePatterns(fields);
  if (body.metadata !== undefined || fields.mapping !== current.mapping) requireSettings(fields, mappers);
  return fields;
}

/** A trigger that fires and whose other fields change is Updated from then on, and fires as before. */
function stateAfter(
  current: FileTriggerFields,
  changed: FileTriggerFields,
  wanted: FileTriggerFields["state"],
): FileTriggerFields["state"] {
  if (wanted === "Inactive" || wanted === "Deleted") return wanted;
  if (current.state === "Inactive") return "Active";
  return isSame(current, changed) ? current.state : "Updated";
}

function isSame(one: FileTriggerFields, other: FileTriggerFields): boolean {
  return isDeepStrictEqual(fileTriggerFields.parse(one), fileTriggerFields.parse(other));
}

function withMapping(fields: FileTriggerFields): FileTriggerFields {
  const own = MAPPERS_OF_TYPES[fields.fileType];
  if (fields.fileType === MASTER_DATA && fields.mapping !== null)
    throw invalidField("mapping", `is left out for ${MASTER_DATA}, which the hub applies itself`);
  if (fields.mapping !== null) return fields;
  if (own !== undefined) return { ...fields, mapping: own };
  if (fields.fileType !== "CustomFormat") return fields;
  throw invalidField("mapping", "names the mapper of the CustomFormat (GET /fileTrigger/mappings)");
}

function requirePatterns({ fileNamePatternMatches, ingestionType }: FileTriggerFields): void {
  for (const [at, pattern] of fileNamePatternMatches.entries()) {
    const why = constantWords(pattern);
    if (why !== null)
      throw invalidField(`fileNamePatternMatches.${at}.value`, `${why}. Leave the folders out, or the condition.`);
  }
  // The token of the request decides there, and not the name.
  if (ingestionType === "SendViaHttp" || fileNamePatternMatches.length > 0) return;
  throw invalidField(
    "fileNamePatternMatches",
    'without a pattern the trigger claims no file; one is { "filterType": "EndsWith", "value": ".csv" }',
  );
}
