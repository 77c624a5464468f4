/**
 * Changing and removing sites, sources and variables: the usual companions of the specification's `PUT /sources`
 * (`docs/hub/structure.md`, *Changing structure*).
 */
import type { Operation } from "fast-json-patch";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { z } from "zod";
import { caseless, queryBoolean } from "#wire/caseless.ts";
import { HttpProblem, invalidRequest } from "#wire/http-problem.ts";
import {
  ianaZone,
  REFERENTIAL_FIELDS,
  site,
  siteBody,
  source,
  sourceBody,
  spacingFault,
  type VariableBody,
  variable,
  variableBody,
} from "#wire/index.ts";
import { DefinitionChange } from "../calculated/definition/change.ts";
import { inUse } from "../calculated/definition/in-use.ts";
import { shownVariables } from "../calculated/definition/shown.ts";
import type { HubContext } from "../context.ts";
import { ChangedForms } from "../forms/changed.ts";
import { callerOf } from "../http/access.ts";
import { changedFixed, judgeFixed } from "../http/fixed-fields.ts";
import { takeJson } from "../http/json-bodies.ts";
import { invalidField, parsed } from "../http/problems.ts";
import { described, type RouteFacts } from "../http/route.ts";
import { warn } from "../http/warnings.ts";
import type { StoredVariable, StructureEntity } from "../store/records.ts";
import { withEan, withEanNumber } from "./ean-number.ts";
import { applyPatch, type Fields, mergedValues } from "./json-patch.ts";
import { notFound, ONE, pathId } from "./pages.ts";

/** A function from the current fields to the requested ones. */
type Edit = (current: Fields) => Fields;

const SCHEMAS = { site: siteBody, source: sourceBody, variable: variableBody } as const;
const SHOWN = { site, source, variable } as const;
const TAGS: Readonly<Record<StructureEntity, string>> = {
  site: "Sites",
  source: "Sources",
  variable: "Variables",
};

const removalQuery = caseless(
  z.object({
    WithData: queryBoolean.optional().describe("Removes the points below, too. It cannot be undone."),
  }),
);
const removed = z.object({
  removed: z.looseObject({ sources: z.int(), variables: z.int(), points: z.int() }),
});

const VARIABLE_OF_SOURCE: RouteFacts = {
  access: "manage",
  tag: "Variables",
  summary: "Changes a variable of a source",
  body: variableBody.out.partial(),
  shown: variable,
  status: 204,
  example: { body: { name: "Another name" } },
};

const PARENTS = { site: "site", source: "siteId", variable: "sourceId" } as const;

export async function changeRoutes(app: FastifyInstance, context: HubContext): Promise<void> {
  const bytesMax = context.options.limits.requestBody;
  for (const type of ["application/json-patch+json", "application/merge-patch+json"]) takeJson(app, type);

  for (const [entity, path] of [
    ["site", "/sites"],
    ["source", "/sources"],
    ["variable", "/variables"],
  ] as const) {
    const withId = `${path}/:id`;
    const options = changeFacts(entity);
    app.put(path, options.put, (request, reply) =>
      change(context, request, reply, entity, bodyId(request.body), given(request.body)),
    );
    app.put<WithId>(withId, options.putById, (request, reply) =>
      change(context, request, reply, entity, pathId(request.params.id), given(request.body)),
    );
    app.patch<WithId>(withId, options.patch, (request, reply) =>
      change(context, request, reply, entity, pathId(request.params.id), patch(request.body, entity, bytesMax)),
    );
    app.delete<WithId>(withId, options.remove, (request) =>
      remove(context, request, entity, pathId(request.params.id)),
    );
  }
  variableOfSourceRoutes(app, context);
}

function variableOfSourceRoutes(app: FastifyInstance, context: HubContext): void {
  const ofSource = "/sources/:sourceId/variables/:id";
  app.put<WithBoth>(ofSource, described(VARIABLE_OF_SOURCE), async (request, reply) => {
    const sourceId = pathId(request.params.sourceId);
    await requireVariable(context, request, sourceId);
    const edit: Edit = (current) => ({ ...given(request.body)(current), sourceId });
    await change(context, request, reply, "variable", pathId(request.params.id), edit);
    return reply.code(204).send();
  });
  app.patch<WithBoth>(ofSource, changeFacts("variable").patch, async (request, reply) => {
    const sourceId = pathId(request.params.sourceId);
    await requireVariable(context, request, sourceId);
    const wanted = patch(request.body, "variable", context.options.limits.requestBody);
    const edit: Edit = (current) => ({ ...wanted(current), sourceId });
    return change(context, request, reply, "variable", pathId(request.params.id), edit);
  });
  app.delete<WithBoth>(ofSource, changeFacts("variable").remove, async (request) => {
    await requireVariable(context, request, pathId(request.params.sourceId));
    return remove(context, request, "variable", pathId(request.params.id));
  });
}

interface WithId {
  Params: { id: string };
}
interface WithBoth {
  Params: { sourceId: string; id: string };
}

async function requireVariable({ store }: HubContext, request: FastifyRequest<WithBoth>, sourceId: number) {
  const { accountId } = callerOf(request);
  const filter = { ids: [pathId(request.params.id)], sourceIds: [sourceId] };
  const { rows } = await store.structure.variables(accountId, filter, ONE);
  if (rows.length === 0) throw notFound(`variable of source ${sourceId}`, request.params.id);
}

async function change(
  context: HubContext,
  request: FastifyRequest,
  reply: FastifyReply,
  entity: StructureEntity,
  id: number,
  edit: Edit,
): Promise<unknown> {
  const { accountId } = callerOf(request);
  const changed = <Schema extends z.ZodType>(schema: Schema, current: object): z.output<Schema> => {
    const wanted = edit(current as Fields);
    const body = parsed(schema, wanted);
    requireKnown(body as object, current);
    if (entity === "variable") requireSpacing(body as VariableBody);
    // A source that moves to another site has the name of that one.
    const names = wanted["siteId"] === Reflect.get(current, "siteId") ? ["state", "siteName"] : ["state"];
    if (entity === "source")
      judgeFixed(request, reply, context.options, changedFixed(wanted, current as Fields, names));
    return body;
  };
  const { structure } = context.store;
  const values = new ChangedForms(context, request, reply);
  const definition = new DefinitionChange(context, accountId);
  if (entity === "variable") {
    const { rows } = await structure.variables(accountId, { ids: [id] }, ONE);
    for (const current of rows)
      await definition.check(changed(variableBody, current).calculated, current.calculated ?? null);
  }
  const result =
    entity === "site"
      ? await structure.changeSite(accountId, id, (now, held) => values.of(now, held, (all) => changed(siteBody, all)))
      : entity === "source"
        ? await structure.changeSource(accountId, id, (now, held) =>
            values.of(now, held, (all) => changed(sourceBody, all)),
          )
        : await structure.changeVariable(
            accountId,
            id,
            (current, points) => {
              const body = changed(variableBody, current);
              const warning = settle(current, body, points);
              if (warning !== null) warn(reply, warning);
              return body;
            },
            definition.judge,
          );
  if (result === "missing") throw notFound(entity, String(id));
  if (result === "no-parent") throw invalidField(PARENTS[entity], "it is not one of this account");
  if ("unitId" in result) return (await shownVariables(context.store, accountId, [result]))[0];
  return entity === "variable" ? result : withEanNumber(await values.shown(entity, result));
}

/** Checks a change against the stored points; throws where they do not allow it. */
function settle(current: StoredVariable, body: z.output<typeof variableBody>, points: number): string | null {
  if (points === 0) return null;
  if ((body.isVersioned ?? false) !== current.isVersioned)
    throw new HttpProblem(
      409,
      "conflict",
      `the variable ${current.id} has ${points} points, and its history begins or ends with ` +
        "IsVersioned: remove its data first, or make another variable",
    );
  if (body.unitId === current.unitId) return null;
  return (
    `unitId of variable ${current.id} is ${body.unitId} now; the ${points} values stored so far were ` +
    `pushed in unit ${current.unitId} and are not converted`
  );
}

async function remove(
  { store }: HubContext,
  request: FastifyRequest,
  entity: StructureEntity,
  id: number,
): Promise<object> {
  const { accountId } = callerOf(request);
  const withPoints = parsed(removalQuery, request.query).WithData === true;
  let removal = await store.structure.remove(accountId, entity, id, false);
  let removedBefore = 0;
  if (removal.kind === "holds-points" && withPoints) {
    // Removes points first, in transactions of bounded size, so that neither pushes nor reads wait for a whole site.
    for (const variable of await variablesBelow(store, accountId, entity, id))
      removedBefore += (await store.points.remove(variable, null, null)).points;
    removal = await store.structure.remove(accountId, entity, id, true);
  }
  if (removal.kind === "in-use")
    throw inUse(`the ${entity} ${id}${entity === "variable" ? "" : " or what is below it"}`, removal.users);
  if (removal.kind === "missing") throw notFound(entity, String(id));
  if (removal.kind === "holds-points")
    throw new HttpProblem(
      409,
      "conflict",
      `the ${entity} ${id} holds ${removal.points} points in ${removal.variables} variables, and a ` +
        "removal cannot be undone: add WithData=true to remove them too",
    );
  const { sources, variables, points } = removal;
  return { removed: { [entity]: id, sources, variables, points: points + removedBefore } };
}

async function variablesBelow(
  { structure, points }: HubContext["store"],
  accountId: number,
  entity: StructureEntity,
  id: number,
): Promise<number[]> {
  if (entity === "variable") return [id];
  const all = { offset: 0, limit: null };
  const sourceIds =
    entity === "source"
      ? [id]
      : (await structure.sources(accountId, { siteIds: [id] }, all)).rows.map((source) => source.id);
  return (await points.select(accountId, { sourceIds })).map((variable) => variable.id);
}

function bodyId(body: unknown): number {
  const entry = isObject(body) ? Object.entries(body).find(([name]) => name.toLowerCase() === "id") : undefined;
  if (typeof entry?.[1] !== "number" || !Number.isSafeInteger(entry[1]))
    throw invalidField("id", "the body must name the entity to change by its id");
  return entry[1];
}

/** The fields of the body; absent and null fields stay as they are. */
function given(body: unknown): Edit {
  if (!isObject(body)) throw invalidRequest("the body must be a JSON object");
  return (current) =>
    merged(
      current,
      Object.entries(body).filter(([, value]) => value !== null),
    );
}

/** A list is a JSON Patch (RFC 6902), an object a merge patch (RFC 7396), in which null clears a field. */
function patch(body: unknown, entity: StructureEntity, bytesMax: number): Edit {
  if (isObject(body)) return (current) => merged(current, mergedValues(current, Object.entries(body)));
  if (!Array.isArray(body)) throw invalidRequest("the body must be a JSON Patch (a list) or an object of fields");
  const operations = body.map((operation) => respelled(operation, entity)) as Operation[];
  return (current) => applyPatch(current, operations, bytesMax);
}

/** Names of fields are matched without regard to case. */
function respelled(operation: unknown, entity: StructureEntity): unknown {
  if (!isObject(operation)) return operation;
  const spelled = (path: unknown) =>
    typeof path === "string" ? path.replace(/^\/([^/]*)/, (_, name: string) => `/${fieldName(entity, name)}`) : path;
  return {
    ...operation,
    ...("path" in operation ? { path: spelled(operation["path"]) } : {}),
    ...("from" in operation ? { from: spelled(operation["from"]) } : {}),
  };
}

function fieldName(entity: StructureEntity, name: string): string {
  const shape = SCHEMAS[entity].out.shape;
  if ("ean" in shape && name.toLowerCase() === "eannumber") return "ean";
  return Object.keys(shape).find((field) => field.toLowerCase() === name.toLowerCase()) ?? name;
}

function merged(current: Fields, entries: readonly (readonly [string, unknown])[]): Fields {
  const fields: Record<string, unknown> = { ...current };
  for (const [name, value] of withEan(current, entries)) {
    const own = Object.keys(fields).find((field) => field.toLowerCase() === name.toLowerCase()) ?? name;
    fields[own] = value;
  }
  return fields;
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

// Facts of the routes that change and remove sites, sources and variables.

function changeFacts(entity: StructureEntity) {
  const base = { access: "manage", tag: TAGS[entity], answer: SHOWN[entity] } as const;
  const fields = SCHEMAS[entity].out.partial();
  const example = { body: { name: "Another name" } };
  return {
    put: described({
      ...base,
      summary: `Changes a ${entity} that the body names by its id`,
      description: "Fields that the body leaves out stay as they are. The answer is the whole entity.",
      body: fields.extend({ id: z.int() }),
      example: { body: { id: 1, ...example.body } },
    }),
    putById: described({ ...base, summary: `Changes a ${entity}`, body: fields, example }),
    patch: described({
      ...base,
      summary: `Changes a ${entity} by a JSON Patch or by an object of fields, in which null clears`,
      body: z.union([z.array(z.looseObject({ op: z.string(), path: z.string() })), z.object(clearable(fields.shape))]),
      example: { body: [{ op: "replace", path: "/name", value: "Another name" }] },
    }),
    remove: described({
      ...base,
      summary: `Removes a ${entity} with everything below it`,
      query: removalQuery,
      answer: removed,
      example: { query: { WithData: true } },
    }),
  };
}

/** Null clears a field in a patch. */
function clearable(fields: z.ZodRawShape): z.ZodRawShape {
  return Object.fromEntries(Object.entries(fields).map(([name, type]) => [name, z.nullable(type)]));
}

// Checks ids of referentials in bodies: an unknown id would be stored silently without a meaning.

/**
 * Throws a 400 that names the field and the list of its values. Values that the entity already had (`current`) are not
 * checked.
 */
export function requireKnown(body: object, current: object = {}): void {
  const before = new Map(Object.entries(current));
  for (const [field, value] of Object.entries(body)) {
    if (value === undefined || value === before.get(field)) continue;
    if (field === "timeZoneId" && ianaZone(String(value)) === undefined)
      throw invalidField(field, `${value} is neither an IANA nor a Windows time zone (GET /timezones)`);
    const referential = REFERENTIAL_FIELDS[field];
    if (referential !== undefined && !referential.list.some(({ id }) => id === Number(value)))
      throw invalidField(field, `${value} is no id of GET ${referential.path}`);
  }
}

/** Throws a 400 where the points of a variable would be further apart than any calendar reaches. */
export function requireSpacing({ granularity, granularityTimeBase }: VariableBody): void {
  const fault = spacingFault(granularity, granularityTimeBase);
  if (fault !== null) throw invalidField("granularity", fault);
}
