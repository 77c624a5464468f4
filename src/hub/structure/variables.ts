import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { variableBody, variablesQuery } from "../../wire/index.ts";
import type { HubContext } from "../context.ts";
import { invalidField, notSupported, parsed } from "../http/problems.ts";
import { requireRight } from "../token/guard.ts";
import { both, displayLevel, pageOf, sendCount, wantsCount } from "./paging.ts";
import { notFound, pathId } from "./sites.ts";

const LEVELS = ["Normal", "Verbose"] as const;
const ONE = { offset: 0, limit: 1 };

export async function variableRoutes(app: FastifyInstance, context: HubContext): Promise<void> {
  const { store, guard } = context;
  const ofSource = "/variables/source/:sourceId";

  app.get("/variables", (request, reply) => list(context, request, reply, undefined));

  app.get<{ Params: { sourceId: string } }>(ofSource, async (request, reply) => {
    const { accountId } = await guard.authenticate(request, ["datahub-api"]);
    const sourceId = pathId(request.params.sourceId);
    const { rows } = await store.structure.sources(accountId, { ids: [sourceId] }, ONE);
    if (rows.length === 0) throw notFound("source", request.params.sourceId);
    return list(context, request, reply, sourceId);
  });

  app.get<{ Params: { id: string } }>("/variables/:id", async (request) => {
    const { accountId } = await guard.authenticate(request, ["datahub-api"]);
    const ids = [pathId(request.params.id)];
    const { rows } = await store.structure.variables(accountId, { ids }, ONE);
    if (rows[0] === undefined) throw notFound("variable", request.params.id);
    return rows[0];
  });

  app.post("/variables", (request) => create(context, request, {}));
  app.post<{ Params: { sourceId: string } }>(ofSource, (request) =>
    create(context, request, { sourceId: pathId(request.params.sourceId) }),
  );
}

async function list(
  { store, guard }: HubContext,
  request: FastifyRequest,
  reply: FastifyReply,
  sourceId: number | undefined,
) {
  const { accountId } = await guard.authenticate(request, ["datahub-api"]);
  const query = parsed(variablesQuery, request.query);
  if (query["CalculatedFilter.ImpactingVariableId"] !== undefined)
    throw notSupported("CalculatedFilter.ImpactingVariableId", "it has no calculated variables yet");
  displayLevel(query.DisplayLevel, LEVELS, "Normal");
  const filter = {
    ids: both(query.Id, query.Ids),
    sourceIds: sourceId === undefined ? both(query.SourceId, query.SourceIds) : [sourceId],
    tags: query.Tags,
  };
  const { rows, total } = await store.structure.variables(accountId, filter, pageOf(query));
  if (wantsCount(request, query)) sendCount(reply, total);
  return rows;
}

/** The source of the path, when there is one, goes before that of the body. */
async function create({ store, guard }: HubContext, request: FastifyRequest, fixed: object): Promise<number> {
  const principal = await guard.authenticate(request, ["datahub-api"]);
  requireRight(principal, "structure", "Manager");
  const given = typeof request.body === "object" && request.body !== null ? Object.entries(request.body) : [];
  if (given.some(([field, value]) => field.toLowerCase() === "calculated" && value !== null))
    throw notSupported("calculated", "it has no calculated variables yet");
  const names = Object.keys(fixed).map((name) => name.toLowerCase());
  const kept = given.filter(([field]) => !names.includes(field.toLowerCase()));
  const body = parsed(variableBody, { ...Object.fromEntries(kept), ...fixed });
  const id = await store.structure.createVariable(principal.accountId, body);
  if (id === null) throw invalidField("sourceId", `no source ${body.sourceId} in this account`);
  return id;
}
