/** Templates of alarms: when alarms are present, and at which variables (`docs/alarms.md`). */
import type { FastifyInstance, FastifyRequest } from "fastify";
import { z } from "zod";
import {
  type AlarmTemplate,
  type AlarmTemplateBody,
  alarmTemplate,
  alarmTemplateBody,
  alarmTemplatesQuery,
  alarmTest,
  alarmTestBody,
} from "#wire/index.ts";
import { limitOf } from "../account-limits.ts";
import type { HubContext } from "../context.ts";
import { callerOf } from "../http/access.ts";
import { parsed } from "../http/problems.ts";
import { described } from "../http/route.ts";
import type { ListedTemplate } from "../store/alarms/templates.ts";
import { sendList } from "../structure/lists.ts";
import { notFound, ONE, pathId, type WithId } from "../structure/pages.ts";
import { isoOfMs } from "../time.ts";
import { hasRight } from "../token/rights.ts";
import { requireRoomForAlarms, requireWorkable } from "./check-template.ts";
import { requireNoFeedback } from "./feedback.ts";
import { ALARM_TAG } from "./tag.ts";
import { tried } from "./trial.ts";
import { filtersOfView } from "./view-routes.ts";

const TEMPLATE = {
  name: "Load above 500",
  severity: "Critical",
  selection: { variableIds: [1] },
  condition: { kind: "Above", set: 500, reset: 480 },
};
const OPTIONS = {
  list: described({
    access: "read",
    tag: ALARM_TAG,
    summary: "Templates of alarms",
    query: alarmTemplatesQuery,
    answer: z.array(alarmTemplate),
    example: { query: { severities: ["Critical"] } },
  }),
  one: described({ access: "read", tag: ALARM_TAG, summary: "One template of alarms", answer: alarmTemplate }),
  create: described({
    access: "manage",
    tag: ALARM_TAG,
    summary: "Adds a template of alarms",
    description: "The answer is the id. Each variable that the template selects, now or later, gets an alarm.",
    body: alarmTemplateBody,
    answer: z.int(),
    example: { body: TEMPLATE },
  }),
  replace: described({
    access: "manage",
    tag: ALARM_TAG,
    summary: "Replaces a template; its alarms keep their state until the next evaluation",
    body: alarmTemplateBody,
    shown: alarmTemplate,
    answer: alarmTemplate,
  }),
  remove: described({
    access: "manage",
    tag: ALARM_TAG,
    summary: "Removes a template with its alarms, their history and comments",
    status: 204,
  }),
  test: described({
    access: "manage",
    tag: ALARM_TAG,
    summary: "What a template would have reported over a past period; changes nothing",
    body: alarmTestBody,
    answer: alarmTest,
    example: { body: { template: TEMPLATE, from: "2026-03-01", to: "2026-04-01" } },
  }),
};

export async function alarmTemplateRoutes(app: FastifyInstance, context: HubContext): Promise<void> {
  const { templates } = context.store.alarms;
  const nowMs = () => context.clock.now().epochMilliseconds;
  const readTemplate = async (request: FastifyRequest, id: number | null) => {
    const body = parsed(alarmTemplateBody, request.body);
    const { accountId } = callerOf(request);
    const selected = await requireWorkable(context, accountId, body);
    await requireNoFeedback(context.store, accountId, { id, body }, selected);
    await requireRoomForAlarms(context, accountId, id, body.selection.triggerIds ?? selected);
    return body;
  };
  const shown = async (request: FastifyRequest<WithId>): Promise<AlarmTemplate> => {
    const { id } = request.params;
    const [found] = (await templates.list(callerOf(request).accountId, [{ templateIds: [pathId(id)] }], ONE)).rows;
    if (found === undefined) throw notFound("alarm template", id);
    return shownTemplate(found, mayManage(request));
  };

  app.get("/alarms/template", OPTIONS.list, async (request, reply) => {
    const { accountId } = callerOf(request);
    const query = parsed(alarmTemplatesQuery, request.query);
    const ofView = await filtersOfView(context.store, accountId, query.viewId, true);
    return sendList(request, reply, query, {
      rows: (page) => templates.list(accountId, [query, ...ofView], page),
      shown: (rows) => rows.map((one) => shownTemplate(one, mayManage(request))),
      keyOf: ({ id }) => id,
    });
  });
  app.get<WithId>("/alarms/template/:id", OPTIONS.one, shown);
  app.post("/alarms/template", OPTIONS.create, async (request) => {
    const { accountId } = callerOf(request);
    const body = await readTemplate(request, null);
    const id = await templates.create(accountId, body, nowMs(), limitOf(context.options, accountId, "alarm_template"));
    await context.alarms.changed();
    return id;
  });
  app.put<WithId>("/alarms/template/:id", OPTIONS.replace, async (request) => {
    const { id } = request.params;
    const body = await readTemplate(request, pathId(id));
    if (!(await templates.replace(callerOf(request).accountId, pathId(id), body, nowMs())))
      throw notFound("alarm template", id);
    await context.alarms.changed();
    return shown(request);
  });
  app.delete<WithId>("/alarms/template/:id", OPTIONS.remove, async (request, reply) => {
    const { id } = request.params;
    if (!(await templates.remove(callerOf(request).accountId, pathId(id)))) throw notFound("alarm template", id);
    await context.alarms.changed();
    return reply.code(204).send();
  });
  app.post("/alarms/template/test", OPTIONS.test, async (request) => {
    const body = parsed(alarmTestBody, request.body);
    const { accountId } = callerOf(request);
    await requireWorkable(context, accountId, body.template);
    return tried(context, accountId, body);
  });
}

function mayManage(request: FastifyRequest): boolean {
  const { accountId, user } = callerOf(request);
  return hasRight(user, accountId, "structure");
}

/** The paths of webhooks are secrets at many receivers: only who may change them sees them, and the addresses. */
function receiversHidden(notifications: AlarmTemplateBody["notifications"]): AlarmTemplateBody["notifications"] {
  if (notifications === undefined) return undefined;
  const { emails: _, webhooks, ...others } = notifications;
  return { ...others, ...(webhooks === undefined ? {} : { webhooks: webhooks.map((url) => new URL(url).origin) }) };
}

function shownTemplate(
  { id, body, createdMs, changedMs, alarms, present, paused }: ListedTemplate,
  isManaged: boolean,
): AlarmTemplate {
  const notifications = isManaged ? body.notifications : receiversHidden(body.notifications);
  return {
    ...body,
    ...(notifications === undefined ? {} : { notifications }),
    id,
    enabled: body.enabled !== false,
    severity: body.severity ?? "Warning",
    creationDate: isoOfMs(createdMs),
    lastEditDate: isoOfMs(changedMs),
    alarms,
    present,
    paused,
  };
}
