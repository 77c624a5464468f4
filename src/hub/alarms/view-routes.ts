/** Views of alarms and of their templates (specification, *Other endpoints*): named conditions of their lists. */
import type { FastifyInstance, FastifyRequest } from "fastify";
import { z } from "zod";
import {
  type AlarmFilter,
  type AlarmView,
  alarmView,
  alarmViewBody,
  alarmViewQuery,
  alarmViewsQuery,
} from "#wire/index.ts";
import { limitOf } from "../account-limits.ts";
import type { HubContext } from "../context.ts";
import { callerOf } from "../http/access.ts";
import { invalidField, parsed } from "../http/problems.ts";
import { described } from "../http/route.ts";
import type { HubStore } from "../store/store.ts";
import { sendList } from "../structure/lists.ts";
import { notFound, ONE, pathId, type WithId } from "../structure/pages.ts";

/** Heading of the documentation. */
export const ALARM_TAG = "Alarms";

const OPTIONS = {
  list: described({
    access: "read",
    tag: ALARM_TAG,
    summary: "Views of alarms, or of their templates",
    query: alarmViewsQuery,
    answer: z.array(alarmView),
    example: { query: { templateViews: true } },
  }),
  one: described({
    access: "read",
    tag: ALARM_TAG,
    summary: "One view of alarms, or of their templates",
    query: alarmViewQuery,
    answer: alarmView,
  }),
  create: described({
    access: "manage",
    tag: ALARM_TAG,
    summary: "Adds a view of alarms, or of their templates",
    description: "The answer is the id, to be given as viewId.",
    body: alarmViewBody,
    answer: z.int(),
    example: { body: { name: "Open and critical", filter: { states: ["Present"], severities: ["Critical"] } } },
  }),
  replace: described({
    access: "manage",
    tag: ALARM_TAG,
    summary: "Replaces name and conditions of a view",
    body: alarmViewBody,
    shown: alarmView,
    status: 204,
  }),
  remove: described({
    access: "manage",
    tag: ALARM_TAG,
    summary: "Removes a view of alarms, or of their templates",
    query: alarmViewQuery,
    status: 204,
  }),
};

export async function alarmViewRoutes(app: FastifyInstance, { store, options }: HubContext): Promise<void> {
  const { views } = store.alarms;
  app.get("/alarms/views", OPTIONS.list, async (request, reply) => {
    const { accountId } = callerOf(request);
    const query = parsed(alarmViewsQuery, request.query);
    return sendList(request, reply, query, {
      rows: (page) => views.list(accountId, query.templateViews === true, undefined, page),
      shown: (rows) => rows,
      keyOf: ({ id }) => id,
    });
  });
  app.get<WithId>("/alarms/view/:id", OPTIONS.one, async (request) => {
    const { accountId } = callerOf(request);
    const found = await viewNamed(store, accountId, pathId(request.params.id), isOfTemplates(request));
    if (found === undefined) throw notFound("view of alarms", request.params.id);
    return found;
  });
  app.post("/alarms/view", OPTIONS.create, async (request) => {
    const { accountId } = callerOf(request);
    return views.create(accountId, readView(request), limitOf(options, accountId, "alarm_view"));
  });
  app.put<WithId>("/alarms/view/:id", OPTIONS.replace, async (request, reply) => {
    const { id } = request.params;
    if (!(await views.replace(callerOf(request).accountId, pathId(id), readView(request))))
      throw notFound("view of alarms", id);
    return reply.code(204).send();
  });
  app.delete<WithId>("/alarms/view/:id", OPTIONS.remove, async (request, reply) => {
    const { id } = request.params;
    if (!(await views.remove(callerOf(request).accountId, pathId(id), isOfTemplates(request))))
      throw notFound(isOfTemplates(request) ? "view of alarm templates" : "view of alarms", id);
    return reply.code(204).send();
  });
}

function isOfTemplates(request: FastifyRequest): boolean {
  return parsed(alarmViewQuery, request.query).templateViews === true;
}

const OF_TEMPLATES = ["templateIds", "severities", "kinds", "name"];
const OF_ALARMS = ["states", "severities", "templateIds", "variableIds", "sourceIds", "siteIds"];

function readView(request: FastifyRequest) {
  const body = parsed(alarmViewBody, request.body);
  const known = body.templateViews === true ? OF_TEMPLATES : OF_ALARMS;
  for (const [name, value] of Object.entries(body.filter))
    if (value !== undefined && !known.includes(name))
      throw invalidField(`filter.${name}`, `is no condition of such a view; it takes ${known.join(", ")}`);
  return body;
}

async function viewNamed({ alarms }: HubStore, accountId: number, id: number, ofTemplates: boolean) {
  const [found] = (await alarms.views.list(accountId, ofTemplates, [id], ONE)).rows;
  return found as AlarmView | undefined;
}

/** The conditions of a `viewId`, none without one. Throws a 400 when the account has no such view of this kind. */
export async function filtersOfView(
  store: HubStore,
  accountId: number,
  viewId: number | undefined,
  ofTemplates: boolean,
): Promise<readonly AlarmFilter[]> {
  if (viewId === undefined) return [];
  const found = await viewNamed(store, accountId, viewId, ofTemplates);
  const kind = ofTemplates ? "templates (GET /alarms/views?templateViews=true)" : "alarms (GET /alarms/views)";
  if (found === undefined) throw invalidField("viewId", `no view ${viewId} of ${kind} in this account`);
  return [found.filter];
}
