/**
 * Groups of sites, which `GroupId` of /storage selects by (an extension, `docs/hub/structure.md`, *Groups of sites*).
 */
import type { FastifyInstance } from "fastify";
import { z } from "zod";
import type { HttpProblem } from "#wire/http-problem.ts";
import { group, groupBody, groupSitesBody, groupsQuery } from "#wire/index.ts";
import { limitOf } from "../account-limits.ts";
import type { HubContext } from "../context.ts";
import { callerOf } from "../http/access.ts";
import { invalidField, parsed } from "../http/problems.ts";
import { described } from "../http/route.ts";
import type { HubStore } from "../store/store.ts";
import { sendList } from "./lists.ts";
import { notFound, pathId, rowOfPath, type WithId } from "./pages.ts";

const TAG = "Groups of sites";

const OPTIONS = {
  list: described({
    access: "read",
    tag: TAG,
    summary: "Groups of the account's sites",
    query: groupsQuery,
    answer: z.array(group),
    example: { query: { "Paging.ItemsPerPage": 20 } },
  }),
  one: described({ access: "read", tag: TAG, summary: "One group of sites", answer: group }),
  create: described({
    access: "manage",
    tag: TAG,
    summary: "Adds a group of sites",
    description: "The answer is the id, to be given as GroupId.",
    body: groupBody,
    answer: z.int(),
    example: { body: { name: "Schools", siteIds: [1] } },
  }),
  addSites: described({
    access: "manage",
    tag: TAG,
    summary: "Adds sites to a group",
    description: "The answer is the whole group.",
    body: groupSitesBody,
    answer: group,
  }),
  removeSite: described({ access: "manage", tag: TAG, summary: "Takes a site out of a group", status: 204 }),
  remove: described({ access: "manage", tag: TAG, summary: "Removes a group; its sites stay", status: 204 }),
};

export async function groupRoutes(app: FastifyInstance, { store, options }: HubContext): Promise<void> {
  const { groups } = store;
  app.get("/groups", OPTIONS.list, async (request, reply) => {
    const query = parsed(groupsQuery, request.query);
    const { accountId } = callerOf(request);
    return sendList(request, reply, query, {
      rows: (page) => groups.list(accountId, {}, page),
      shown: (rows) => rows,
      keyOf: ({ id }) => id,
    });
  });
  app.get<WithId>("/groups/:id", OPTIONS.one, (request) => rowOfPath(groups.list, request, "group"));
  app.post("/groups", OPTIONS.create, async (request) => {
    const { accountId } = callerOf(request);
    const most = limitOf(options, accountId, "site_group");
    const created = await groups.create(accountId, parsed(groupBody, request.body), most);
    if (typeof created !== "number") throw foreign(created);
    return created;
  });
  app.post<WithId>("/groups/:id/sites", OPTIONS.addSites, async (request) => {
    const { accountId } = callerOf(request);
    const { id } = request.params;
    const unknown = await groups.addSites(accountId, pathId(id), parsed(groupSitesBody, request.body).siteIds);
    if (unknown === "missing") throw notFound("group", id);
    if (unknown.length > 0) throw foreign(unknown);
    return rowOfPath(groups.list, request, "group");
  });
  app.delete<{ Params: { id: string; siteId: string } }>(
    "/groups/:id/sites/:siteId",
    OPTIONS.removeSite,
    async (request, reply) => {
      const { id, siteId } = request.params;
      const { accountId } = callerOf(request);
      const isRemoved = await groups.removeSite(accountId, pathId(id), pathId(siteId));
      if (!isRemoved) throw notFound(`site ${siteId} in a group`, id);
      return reply.code(204).send();
    },
  );
  app.delete<WithId>("/groups/:id", OPTIONS.remove, async (request, reply) => {
    const { id } = request.params;
    if (!(await groups.remove(callerOf(request).accountId, pathId(id)))) throw notFound("group", id);
    return reply.code(204).send();
  });
}

function foreign(siteIds: readonly number[]): HttpProblem {
  return invalidField("siteIds", `no ${siteIds.length === 1 ? "site" : "sites"} ${siteIds.join(", ")} in this account`);
}

/** Throws a 400 when the account has not all of these groups: a list of nothing would look like empty groups. */
export async function requireGroups(
  { groups }: HubStore,
  accountId: number,
  ids: readonly number[] | undefined,
): Promise<void> {
  if (ids === undefined) return;
  const { rows } = await groups.list(accountId, { ids }, { offset: 0, limit: null });
  const unknown = ids.find((id) => !rows.some((row) => row.id === id));
  if (unknown !== undefined) throw invalidField("GroupId", `no group ${unknown} in this account (GET /groups)`);
}
