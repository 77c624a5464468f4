/** Templates of alarms: when alarms are present, and at which variables (`docs/alarms.md`). */
import type { FastifyInstance, FastifyRequest } from "fastify";
import { z } from "zod";
import { breath } from "#core/turns.ts";
import {
  type AlarmTemplate,
  type AlarmTemplateBody,
  type AlarmTest,
  alarmTemplate,
  alarmTemplateBody,
  alarmTemplatesQuery,
  alarmTest,
  alarmTestBody,
  ianaZone,
} from "#wire/index.ts";
import { AccountFull, limitOf } from "../account-limits.ts";
import type { HubContext } from "../context.ts";
import { boundMs } from "../data/query.ts";
import { reachOf } from "../deliveries/receivers.ts";
import { callerOf } from "../http/access.ts";
import { invalidField, parsed } from "../http/problems.ts";
import { described } from "../http/route.ts";
import type { ListedTemplate } from "../store/alarms/templates.ts";
import type { VariableFacts } from "../store/records.ts";
import { sendList } from "../structure/lists.ts";
import { notFound, ONE, pathId, type WithId } from "../structure/pages.ts";
import { isoOfMs } from "../time.ts";
import { hasRight } from "../token/rights.ts";
import type { AlarmPoint } from "./conditions.ts";
import { type Compiled, costOfPoint, expressionOf, requireExpression } from "./expression.ts";
import { requireNoFeedback } from "./feedback.ts";
import { shownUntil } from "./moments.ts";
import { progressed, type Rule, type Standing, type StateChange } from "./progress.ts";
import { nextCounted } from "./schedule.ts";
import { selectedVariables } from "./selection.ts";
import { ALARM_TAG, filtersOfView } from "./view-routes.ts";
import { isOfPoints, ruleOf } from "./watched.ts";

/** Limits of one test. */
const VARIABLES_MAX = 1_000;
const POINTS_MAX = 2_000_000;
const CHANGES_MAX = 10_000;
/** Points without an expression that are judged before the event loop serves others. */
const SLICE = 10_000;
const MINUTE_MS = 60_000;
const ALL = { offset: 0, limit: null };

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

// Whether a template can work in its account: what it names is there, and its receivers may be reached.

/** Returns the variables that it selects now. Throws a 400 that names the field. */
async function requireWorkable(
  context: HubContext,
  accountId: number,
  { selection, condition, notifications = {} }: AlarmTemplateBody,
): Promise<readonly VariableFacts[]> {
  const { store, clock, options } = context;
  let selected: readonly VariableFacts[] = [];
  if (condition.kind === "LateFile") await requireTriggers(context, accountId, selection.triggerIds);
  else {
    const { triggerIds: _, ...fields } = selection;
    if (Object.values(fields).every((field) => field === undefined))
      throw invalidField("selection", "selects nothing: give variableIds, sourceIds, siteIds, tags, customFilter …");
    selected = await selectedVariables(store, accountId, selection, clock.now().epochMilliseconds);
  }
  if (condition.zone !== undefined && ianaZone(condition.zone) === undefined)
    throw invalidField("condition.zone", `${condition.zone} is neither an IANA nor a Windows time zone`);
  if (condition.kind === "Expression") await requireExpression(condition.expression ?? "");
  for (const url of notifications.webhooks ?? [])
    if (reachOf(new URL(url), options.webhook.hosts) === "refused")
      throw invalidField(
        "notifications.webhooks",
        `${url} is not called: this hub calls public addresses at port 443 (https), and those of its webhook.hosts`,
      );
  await requireReceivers(context, accountId, notifications);
  return selected;
}

/** Throws `AccountFull` where a template, of the id or a new one, would have more alarms than the account may have. */
async function requireRoomForAlarms(
  { store: { alarms }, options }: HubContext,
  accountId: number,
  id: number | null,
  selected: readonly unknown[],
): Promise<void> {
  const most = limitOf(options, accountId, "alarm");
  const { total } = await alarms.alarms.list(accountId, [], ONE);
  const own = id === null ? [] : (await alarms.templates.list(accountId, [{ templateIds: [id] }], ONE)).rows;
  if (total - (own[0]?.alarms ?? 0) + selected.length > most) throw new AccountFull("alarm", most);
}

async function requireTriggers({ store }: HubContext, accountId: number, ids: readonly number[] | undefined) {
  if (ids === undefined || ids.length === 0)
    throw invalidField("selection.triggerIds", "is needed by the kind LateFile: the file triggers to watch");
  const { rows } = await store.fileTriggers.list(accountId, { ids }, ALL);
  const known = new Set(rows.map(({ id }) => id));
  const missing = ids.filter((id) => !known.has(id));
  if (missing.length > 0)
    throw invalidField("selection.triggerIds", `no file trigger ${missing.join(", ")} in this account`);
}

async function requireReceivers(
  { store }: HubContext,
  accountId: number,
  { variableId, userIds = [] }: NonNullable<AlarmTemplateBody["notifications"]>,
): Promise<void> {
  if (variableId !== undefined) {
    const { rows } = await store.structure.variables(accountId, { ids: [variableId] }, { offset: 0, limit: 1 });
    const field = "notifications.variableId";
    if (rows[0] === undefined) throw invalidField(field, `no variable ${variableId} in this account`);
    if (rows[0].calculated !== null)
      throw invalidField(field, `${variableId} is calculated: its points come from its formulas alone`);
  }
  if (userIds.length === 0) return;
  const users = await store.people.members(accountId, { ids: userIds }, ALL);
  const known = new Set(users.rows.filter(({ email }) => email !== null).map(({ id }) => id));
  const missing = userIds.filter((id) => !known.has(id));
  if (missing.length > 0)
    throw invalidField("notifications.userIds", `no user ${missing.join(", ")} with an e-mail in this account`);
}

interface Period {
  readonly fromMs: number;
  /** Excluded. */
  readonly toMs: number;
}

/** A template over a past period, without any effect: `POST /alarms/template/test`. */
async function tried(
  { store, clock }: HubContext,
  accountId: number,
  { template, from, to }: z.output<typeof alarmTestBody>,
): Promise<AlarmTest> {
  const { condition, selection } = template;
  if (condition.kind === "LateFile" || condition.kind === "CalculationFailed")
    throw invalidField("template.condition.kind", `${condition.kind} cannot be tested: it depends on no points`);
  const nowMs = clock.now().epochMilliseconds;
  const period = { fromMs: boundMs("from", from, "UTC") ?? 0, toMs: boundMs("to", to, "UTC") ?? nowMs };
  if (period.fromMs >= period.toMs) throw invalidField("from", "is not before to");
  const variables = await selectedVariables(store, accountId, selection, nowMs);
  const changes: AlarmTest["changes"] = [];
  const slice = Math.ceil(SLICE / costOfPoint(condition));
  let points = 0;
  let tested = 0;
  for (const variable of variables.slice(0, VARIABLES_MAX)) {
    if (points > POINTS_MAX || changes.length > CHANGES_MAX) break;
    const range = { order: "ASC", page: { offset: 0, limit: null }, view: { kind: "latest" }, labels: false } as const;
    const trial = new Trial(ruleOf(template), variable, period, await expressionOf(condition, variable));
    for await (const chunk of store.points.read(variable, {
      ...range,
      fromMs: period.fromMs,
      lastMs: period.toMs - 1,
    })) {
      for (let at = 0; at < chunk.length; at += slice) {
        trial.take(chunk.slice(at, at + slice));
        await breath();
      }
      points += chunk.length;
      if (points > POINTS_MAX) break;
    }
    for (const { state, atMs, value } of trial.finish())
      changes.push({ variableId: variable.id, state, date: isoOfMs(atMs), value });
    tested += 1;
  }
  const complete = tested === variables.length && points <= POINTS_MAX && changes.length <= CHANGES_MAX;
  return { variables: variables.length, tested, changes: changes.slice(0, CHANGES_MAX), complete };
}

/** One variable over the period. */
class Trial {
  readonly #rule: Rule;
  readonly #zone: string;
  readonly #period: Period;
  readonly #compiled: Compiled | null;
  readonly #changes: StateChange[] = [];
  #standing: Standing = { state: "NotPresent", memory: {} };
  /** NoData: date of the newest point. */
  #newestMs: number;

  constructor(rule: Rule, { siteZoneId }: VariableFacts, period: Period, compiled: Compiled | null) {
    this.#rule = rule;
    this.#zone = ianaZone(siteZoneId) ?? "UTC";
    this.#period = period;
    this.#compiled = compiled;
    this.#newestMs = period.fromMs;
  }

  take(points: readonly AlarmPoint[]): void {
    if (this.#rule.condition.kind === "Gap") {
      for (const point of points) {
        this.#endGap(point.atMs);
        this.#progress([point]);
      }
      return;
    }
    if (isOfPoints(this.#rule.condition)) {
      this.#progress(points);
      return;
    }
    for (const { atMs, value } of points) {
      if (this.#missedUntil(atMs)) this.#changes.push({ state: "NotPresent", atMs, value });
      this.#newestMs = atMs;
    }
  }

  #progress(all: readonly AlarmPoint[]): void {
    const points = all.map(({ atMs, value }) => ({ atMs, value }));
    const { last } = this.#standing.memory;
    const expression = this.#compiled?.([...(last === undefined ? [] : [last]), ...points]) ?? null;
    const next = progressed({ ...this.#rule, expression }, this.#zone, this.#standing, points);
    this.#standing = next;
    for (const change of next.changes) this.#changes.push(change);
  }

  /** A gap that is shown for its time by then ends. */
  #endGap(atMs: number): void {
    const { state, memory } = this.#standing;
    const endMs = shownUntil(this.#rule, memory);
    if (state === "NotPresent" || endMs > atMs) return;
    this.#changes.push({ state: "NotPresent", atMs: endMs, value: null });
    this.#standing = { state: "NotPresent", memory };
  }

  finish(): readonly StateChange[] {
    if (this.#rule.condition.kind === "Gap") this.#endGap(this.#period.toMs - 1);
    if (!isOfPoints(this.#rule.condition)) this.#missedUntil(this.#period.toMs);
    return this.#changes;
  }

  #missedUntil(atMs: number): boolean {
    const dueMs = this.#newestMs + (this.#rule.condition.minutes ?? 0) * MINUTE_MS;
    const since = nextCounted(this.#rule.schedule, this.#zone, dueMs);
    if (since >= atMs) return false;
    this.#changes.push({ state: "Present", atMs: since, value: null });
    return true;
  }
}
