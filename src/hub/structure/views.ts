/** Views: named selections that `ViewId` uses again (an extension of Headgate, `docs/hub-choices.md`, *Views*). */
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { z } from "zod";
import { type View, view, viewBody, viewsQuery } from "#wire/index.ts";
import { limitOf } from "../account-limits.ts";
import type { HubContext } from "../context.ts";
import { type FilterForms, formsFor } from "../filter/forms.ts";
import { parseFilter } from "../filter/parse.ts";
import { fieldsIn } from "../forms/named-by-views.ts";
import { named } from "../forms/names.ts";
import { callerOf } from "../http/access.ts";
import { invalidField, parsed } from "../http/problems.ts";
import { described } from "../http/route.ts";
import type { FilterNode } from "../store/filter.ts";
import type { HubStore } from "../store/store.ts";
import { sendList } from "./lists.ts";
import { notFound, ONE, pathId, rowOfPath, type WithId } from "./pages.ts";

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

function entityOf(type: View["entityType"]): "site" | "source" {
  return type === "Site" ? "site" : "source";
}

/**
 * The selection of a `ViewId`, at a moment. Throws a 400 when the account has no such view, since an unfiltered list
 * would look like the view.
 */
export async function viewNodes(
  store: HubStore,
  accountId: number,
  viewId: number | undefined,
  type: View["entityType"],
  atMs: number,
): Promise<readonly FilterNode[]> {
  if (viewId === undefined) return [];
  const { rows } = await store.views.list(accountId, { ids: [viewId] }, ONE);
  const [found] = rows;
  if (found === undefined) throw invalidField("ViewId", `no view ${viewId} in this account (GET /views)`);
  if (found.entityType !== type)
    throw invalidField("ViewId", `the view ${viewId} selects by ${found.entityType}, not by ${type}`);
  const forms = await formsFor(store, accountId, [found.customFilter], atMs);
  await requireNamed(store, accountId, found, forms);
  return [parseFilter("ViewId", found.customFilter, entityOf(type), forms)];
}

/** Throws a 400 where the view names a form that is not there, and there are no values under its name either. */
async function requireNamed(
  { structure }: HubStore,
  accountId: number,
  { id, customFilter }: View,
  forms: FilterForms,
): Promise<void> {
  for (const { entity, path } of fieldsIn(customFilter)) {
    if (named(forms.forms, path[0]) !== undefined) continue;
    const field = path.map((level) => `"${level}"`).join(".");
    const where = [parseFilter("ViewId", `${entity}.${field} is not empty`, entity, forms)];
    const list = entity === "site" ? structure.sites : structure.sources;
    if ((await list(accountId, { where }, ONE)).total > 0) continue;
    throw invalidField("ViewId", `the view ${id} names ${field}, which no form and no ${entity} of this account has`);
  }
}
