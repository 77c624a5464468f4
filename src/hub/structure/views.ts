/** Views: named selections that `ViewId` uses again (an extension of Headgate, `docs/hub/structure.md`, *Views*). */
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { z } from "zod";
import { view, viewBody, viewsQuery } from "#wire/index.ts";
import { limitOf } from "../account-limits.ts";
import type { HubContext } from "../context.ts";
import { formsFor } from "../filter/forms.ts";
import { parseFilter } from "../filter/parse.ts";
import { callerOf } from "../http/access.ts";
import { parsed } from "../http/problems.ts";
import { described } from "../http/route.ts";
import type { HubStore } from "../store/store.ts";
import { sendList } from "./lists.ts";
import { notFound, pathId, rowOfPath, type WithId } from "./pages.ts";
import { entityOf } from "./view-filter.ts";

const OPTIONS = {
  list: described({
    access: "read",
    tag: "Views",
    summary: "Views of the account",
    query: viewsQuery,
    answer: z.array(view),
    example: { query: { EntityType: "Site" } },
  }),
  one: described({ access: "read", tag: "Views", summary: "One view", answer: view }),
  create: described({
    access: "manage",
    tag: "Views",
    summary: "Adds a view",
    description: "The answer is the id, to be given as ViewId.",
    body: viewBody,
    answer: z.int(),
    example: { body: { name: "Schools", entityType: "Site", customFilter: "TypeId = 3" } },
  }),
  remove: described({ access: "manage", tag: "Views", summary: "Removes a view", status: 204 }),
};

export async function viewRoutes(app: FastifyInstance, { store, options }: HubContext): Promise<void> {
  app.get("/views", OPTIONS.list, async (request, reply) => {
    const { accountId } = callerOf(request);
    const query = parsed(viewsQuery, request.query);
    const entityTypes = query.EntityType === undefined ? undefined : [query.EntityType];
    return sendList(request, reply, query, {
      rows: (page) => store.views.list(accountId, { entityTypes }, page),
      shown: (rows) => rows,
      keyOf: ({ id }) => id,
    });
  });
  app.get<WithId>("/views/:id", OPTIONS.one, (request) => rowOfPath(store.views.list, request, "view"));
  app.post("/views", OPTIONS.create, async (request) => {
    const { accountId } = callerOf(request);
    const body = parsed(viewBody, request.body);
    const forms = await formsFor(store, accountId, [body.customFilter], 0);
    parseFilter("customFilter", body.customFilter, entityOf(body.entityType), forms);
    return store.views.create(accountId, body, limitOf(options, accountId, "view"));
  });
  app.delete<WithId>("/views/:id", OPTIONS.remove, (request, reply) => remove(store, request, reply));
}

async function remove(store: HubStore, request: FastifyRequest<WithId>, reply: FastifyReply) {
  const { accountId } = callerOf(request);
  const { id } = request.params;
  if (!(await store.views.remove(accountId, pathId(id)))) throw notFound("view", id);
  return reply.code(204).send();
}
