/** Alarms: their lists, history, comments, and the acknowledgement of a person (`docs/alarms.md`). */
import type { FastifyInstance, FastifyRequest } from "fastify";
import { z } from "zod";
import { HttpProblem } from "#wire/http-problem.ts";
import {
  acknowledgeBody,
  alarm,
  alarmChange,
  alarmComment,
  alarmCommentBody,
  alarmDetails,
  alarmHistoryQuery,
  alarmsQuery,
} from "#wire/index.ts";
import type { HubContext } from "../context.ts";
import { boundMs } from "../data/query.ts";
import { callerOf } from "../http/access.ts";
import { parsed } from "../http/problems.ts";
import { described } from "../http/route.ts";
import { sendList } from "../structure/lists.ts";
import { notFound, ONE, pathId, type WithId } from "../structure/pages.ts";
import type { Principal } from "../token/guard.ts";
import { noticesOf, notifiedOf } from "./notices.ts";
import { alarmTemplateRoutes } from "./template-routes.ts";
import { ALARM_TAG, alarmViewRoutes, filtersOfView } from "./view-routes.ts";

/** Changes that an alarm is shown with. */
const SHOWN_CHANGES = 100;

const OPTIONS = {
  list: described({
    access: "read",
    tag: ALARM_TAG,
    summary: "Alarms of the account",
    query: alarmsQuery,
    answer: z.array(alarm),
    example: { query: { states: ["Present", "Acknowledged"], IncludeItemsCount: true } },
  }),
  one: described({
    access: "read",
    tag: ALARM_TAG,
    summary: "One alarm with its comments and its newest changes",
    answer: alarmDetails,
  }),
  history: described({
    access: "read",
    tag: ALARM_TAG,
    summary: "Changes of alarms, newest first",
    query: alarmHistoryQuery,
    answer: z.array(alarmChange),
    example: { query: { from: "2026-03-01", "Paging.ItemsPerPage": 50 } },
  }),
  acknowledge: described({
    access: "own",
    tag: ALARM_TAG,
    summary: "Acknowledges a present alarm, with a comment if there is one",
    description: "Under the name of the caller. The alarm stays acknowledged until it goes away.",
    body: acknowledgeBody,
    answer: alarm,
  }),
  comment: described({
    access: "own",
    tag: ALARM_TAG,
    summary: "Adds a comment to an alarm",
    description: "Under the name of the caller. The answer is the id.",
    body: alarmCommentBody,
    answer: z.int(),
  }),
  comments: described({
    access: "read",
    tag: ALARM_TAG,
    summary: "Comments of an alarm, oldest first",
    answer: z.array(alarmComment),
  }),
};

/** Comments that one alarm takes. */
const COMMENTS_MAX = 500;

export async function alarmRoutes(app: FastifyInstance, context: HubContext): Promise<void> {
  const { store } = context;
  const { alarms } = store.alarms;
  await alarmTemplateRoutes(app, context);
  await alarmViewRoutes(app, context);

  app.get("/alarms", OPTIONS.list, async (request, reply) => {
    const { accountId } = callerOf(request);
    const query = parsed(alarmsQuery, request.query);
    const ofView = await filtersOfView(store, accountId, query.viewId, false);
    return sendList(request, reply, query, {
      rows: (page) => alarms.list(accountId, [query, ...ofView], page),
      shown: (rows) => rows,
      keyOf: ({ id }) => id,
    });
  });
  app.get("/alarms/history", OPTIONS.history, async (request, reply) => {
    const query = parsed(alarmHistoryQuery, request.query);
    const bounds = { fromMs: boundMs("from", query.from, "UTC"), toMs: boundMs("to", query.to, "UTC") };
    const { accountId } = callerOf(request);
    return sendList(request, reply, query, {
      rows: (page) => alarms.changes(accountId, { ...query, ...bounds }, page),
      shown: (rows) => rows,
      keyOf: ({ id }) => id,
    });
  });
  app.get<WithId>("/alarms/:id", OPTIONS.one, async (request) => {
    const { accountId } = callerOf(request);
    const found = await alarmOfPath(context, request);
    const page = { offset: 0, limit: SHOWN_CHANGES };
    const { rows: history } = await alarms.changes(accountId, { alarmIds: [found.id] }, page);
    return { ...found, history, comments: await alarms.comments(accountId, found.id) };
  });
  app.get<WithId>("/alarms/:id/comments", OPTIONS.comments, async (request) =>
    alarms.comments(callerOf(request).accountId, (await alarmOfPath(context, request)).id),
  );
  app.post<WithId>("/alarms/:id/comments", OPTIONS.comment, async (request) => {
    const { text } = parsed(alarmCommentBody, request.body);
    const { id } = request.params;
    const caller = callerOf(request);
    const atMs = context.clock.now().epochMilliseconds;
    const comment = { userId: caller.user.id, author: nameOf(caller), text, atMs };
    const added = await alarms.comment(caller.accountId, pathId(id), comment, COMMENTS_MAX);
    if (added === null) throw notFound("alarm", id);
    if (added === "full")
      throw new HttpProblem(409, "quota-exceeded", `the alarm ${id} has ${COMMENTS_MAX} comments, and takes no more`);
    return added;
  });
  app.post<WithId>("/alarms/:id/acknowledge", OPTIONS.acknowledge, (request) => acknowledge(context, request));
}

async function acknowledge(context: HubContext, request: FastifyRequest<WithId>) {
  const { id } = request.params;
  const { comment } = parsed(acknowledgeBody, request.body ?? {});
  const caller = callerOf(request);
  const { accountId } = caller;
  const alarmId = pathId(id);
  const notified = (await notifiedOf(context.store, accountId, [alarmId])).get(alarmId);
  if (notified === undefined) throw notFound("alarm", id);
  const nowMs = context.clock.now().epochMilliseconds;
  const user = nameOf(caller);
  const written = comment === undefined ? null : { userId: caller.user.id, author: user, text: comment, atMs: nowMs };
  const verdict = await context.store.alarms.evaluation.acknowledge(
    accountId,
    alarmId,
    { user, nowMs, comment: written },
    noticesOf(notified, nowMs),
  );
  if (verdict === "missing") throw notFound("alarm", id);
  if (verdict !== "acknowledged")
    throw new HttpProblem(409, "conflict", `the alarm ${id} is ${verdict}; only one that is Present is acknowledged`);
  context.alarms.acknowledged();
  return alarmOfPath(context, request);
}

/** Throws a 404. */
async function alarmOfPath({ store }: HubContext, request: FastifyRequest<WithId>) {
  const { id } = request.params;
  const { rows } = await store.alarms.alarms.list(callerOf(request).accountId, [{ ids: [pathId(id)] }], ONE);
  if (rows[0] === undefined) throw notFound("alarm", id);
  return rows[0];
}

function nameOf({ user, impersonator }: Principal): string {
  return impersonator == null ? user.username : `${impersonator.username} as ${user.username}`;
}
