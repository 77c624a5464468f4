import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { z } from "zod";
import { usualAggregate, variable, variableBody, variablesQuery, WITHOUT_QUANTITY } from "#wire/index.ts";
import { limitOf } from "../account-limits.ts";
import { DefinitionChange } from "../calculated/definition/change.ts";
import { shownVariables } from "../calculated/definition/shown.ts";
import type { HubContext } from "../context.ts";
import { callerOf } from "../http/access.ts";
import { invalidField, parsed } from "../http/problems.ts";
import { described } from "../http/route.ts";
import { warn } from "../http/warnings.ts";
import { requireKnown, requireSpacing } from "./changes.ts";
import { withDefaults } from "./defaults.ts";
import { sendList } from "./lists.ts";
import { both, notFound, ONE, pathId, rowOfPath, type WithId } from "./pages.ts";

const OF_SOURCE = "/variables/source/:sourceId";
const NEW_VARIABLE = {
  name: "Active energy",
  sourceId: 1,
  variableTypeId: 0,
  unitId: 8,
  granularity: 15,
  granularityTimeBase: 2,
  quantityType: 2,
  mappingConfig: "kWh",
};

const NEW_BODY = variableBody.out.partial({ name: true, variableTypeId: true });

const LIST = {
  access: "read",
  tag: "Variables",
  query: variablesQuery,
  answer: z.array(variable),
} as const;
const CREATE = {
  access: "manage",
  tag: "Variables",
  description:
    "The answer is the id, a bare integer. Without a name it has that of its type, or its mappingConfig; without " +
    "a type it is Generic.",
  body: NEW_BODY,
  shown: variable,
  answer: z.int(),
} as const;
const OPTIONS = {
  list: described({
    ...LIST,
    summary: "Variables of the account",
    example: { query: { SourceIds: [1], DisplayLevel: "Verbose" } },
  }),
  listOfSource: described({ ...LIST, summary: "Variables of one source" }),
  one: described({ access: "read", tag: "Variables", summary: "One variable", answer: variable }),
  create: described({ ...CREATE, summary: "Adds a variable", example: { body: NEW_VARIABLE } }),
  createOfSource: described({
    ...CREATE,
    summary: "Adds a variable to the source of the path",
    description: "The answer is an object with the id, as the clients of this address read it.",
    answer: z.object({ id: z.int() }),
    body: NEW_BODY.partial({ sourceId: true }),
    example: { body: NEW_VARIABLE },
  }),
};

export async function variableRoutes(app: FastifyInstance, context: HubContext): Promise<void> {
  const { store } = context;

  app.get("/variables", OPTIONS.list, (request, reply) => list(context, request, reply, undefined));

  app.get<{ Params: { sourceId: string } }>(OF_SOURCE, OPTIONS.listOfSource, async (request, reply) => {
    const { accountId } = callerOf(request);
    const sourceId = pathId(request.params.sourceId);
    const { rows } = await store.structure.sources(accountId, { ids: [sourceId] }, ONE);
    if (rows.length === 0) throw notFound("source", request.params.sourceId);
    return list(context, request, reply, sourceId);
  });

  app.get<WithId>("/variables/:id", OPTIONS.one, async (request) => {
    const found = await rowOfPath(store.structure.variables, request, "variable");
    const [shown] = await shownVariables(store, callerOf(request).accountId, [found]);
    return shown;
  });

  app.post("/variables", OPTIONS.create, (request, reply) => create(context, request, reply, {}));
  app.post<{ Params: { sourceId: string } }>(OF_SOURCE, OPTIONS.createOfSource, async (request, reply) => ({
    id: await create(context, request, reply, { sourceId: pathId(request.params.sourceId) }),
  }));
}

async function list({ store }: HubContext, request: FastifyRequest, reply: FastifyReply, sourceId: number | undefined) {
  const { accountId } = callerOf(request);
  const query = parsed(variablesQuery, request.query);
  const impacting = query["CalculatedFilter.ImpactingVariableId"];
  const filter = {
    ids: both(query.Id, query.Ids),
    inputIds: impacting === undefined ? undefined : [impacting],
    sourceIds: sourceId === undefined ? both(query.SourceId, query.SourceIds) : [sourceId],
    variableTypeIds: both(query.VariableTypeId, query.VariableTypeIds),
    tags: query.Tags,
  };
  return sendList(request, reply, query, {
    rows: (page) => store.structure.variables(accountId, filter, page),
    // Formulas are long, and few clients of a list read them.
    shown: (rows) =>
      query.DisplayLevel === "Verbose"
        ? shownVariables(store, accountId, rows)
        : rows.map(({ calculated: _, ...plain }) => plain),
    keyOf: ({ id }) => id,
  });
}

/** The source of the path, when there is one, overrides that of the body. */
async function create(
  context: HubContext,
  request: FastifyRequest,
  reply: FastifyReply,
  fixed: object,
): Promise<number> {
  const given = typeof request.body === "object" && request.body !== null ? Object.entries(request.body) : [];
  const names = Object.keys(fixed).map((name) => name.toLowerCase());
  const kept = given.filter(([field]) => !names.includes(field.toLowerCase()));
  const body = parsed(variableBody, withDefaults("variable", { ...Object.fromEntries(kept), ...fixed }));
  requireKnown(body);
  requireSpacing(body);
  const { accountId } = callerOf(request);
  const definition = new DefinitionChange(context, accountId);
  await definition.check(body.calculated, null);
  const most = limitOf(context.options, accountId, "variable");
  const id = await context.store.structure.createVariable(accountId, body, definition.judge, most);
  if (id === null) throw invalidField("sourceId", `no source ${body.sourceId} in this account`);
  if (usualAggregate(body) === null) warn(reply, `the variable ${id} has ${WITHOUT_QUANTITY}`);
  return id;
}
