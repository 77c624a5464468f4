/** The feed of events (an extension of Headgate, `docs/events.md`). */

import { randomBytes } from "node:crypto";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { z } from "zod";
import { HttpProblem } from "#wire/http-problem.ts";
import {
  EVENT_TYPES,
  type EventFilterBody,
  eventsPage,
  eventsQuery,
  misfitOf,
  newSubscription,
  type Subscription,
  type SubscriptionBody,
  subscription,
  subscriptionBody,
  subscriptionsQuery,
  subscriptionTest,
} from "#wire/index.ts";
import type { HubContext } from "../context.ts";
import { reachOf } from "../deliveries/receivers.ts";
import { admitAgain, callerOf } from "../http/access.ts";
import { invalidField, parsed } from "../http/problems.ts";
import { described } from "../http/route.ts";
import { actingOf } from "../invitations/actor.ts";
import type { EventFilter, EventPage } from "../store/events/events.ts";
import type { SubscriptionEdit, SubscriptionFields, SubscriptionRecord } from "../store/events/subscriptions.ts";
import { sendList } from "../structure/lists.ts";
import { notFound, ONE, pathId, type WithId } from "../structure/pages.ts";
import { isoOfMs } from "../time.ts";
import { answerWords } from "./delivery.ts";
import { createEventWatch } from "./watch.ts";

const TAG = "Events";
const EXAMPLE = {
  name: "Work orders",
  types: ["alarm.changed", "file.state"],
  filter: { onlyFailures: true },
  channel: "feed",
};
const OPTIONS = {
  list: described({
    access: "manage",
    tag: TAG,
    summary: "Subscriptions of the account",
    query: subscriptionsQuery,
    answer: z.array(subscription),
    example: { query: {} },
  }),
  one: described({ access: "manage", tag: TAG, summary: "One subscription", answer: subscription }),
  create: described({
    access: "manage",
    tag: TAG,
    summary: "Subscribes to events",
    description: "It gets the events that come from now on.",
    body: subscriptionBody,
    shown: subscription,
    answer: newSubscription,
    example: { body: EXAMPLE },
  }),
  change: described({
    access: "manage",
    tag: TAG,
    summary: "Changes a subscription",
    description: "Without `secret` the key of the signature stays.",
    body: subscriptionBody,
    shown: subscription,
    answer: subscription,
    example: { body: EXAMPLE },
  }),
  remove: described({ access: "manage", tag: TAG, summary: "Removes a subscription", status: 204 }),
  test: described({
    access: "manage",
    tag: TAG,
    summary: "Sends a test event to a subscription now",
    description: "Also where it is paused or inactive. The event is none of the account, and is not sent again.",
    answer: subscriptionTest,
  }),
  resume: described({
    access: "manage",
    tag: TAG,
    summary: "Resumes a paused subscription",
    description: "It continues where it stopped. One that fails is tried again at once.",
    answer: subscription,
  }),
};

const conflict = (words: string) => new HttpProblem(409, "conflict", words);
const dateOf = (ms: number | null): string | null => (ms === null ? null : isoOfMs(ms));

const FEED = described({
  access: "read",
  tag: "Events",
  summary: "Events of the account, the oldest first",
  description:
    "One who gives `next` of each answer as `after` of the next call gets every event once. Where events after " +
    "`after` are no longer kept, the answer is a 410 with the oldest one. Outcomes of pushes are recorded while a " +
    "subscription asks for them.",
  query: eventsQuery,
  refusesUnknown: "an unknown filter would leave all events",
  answer: eventsPage,
  example: { query: { after: 0, types: ["structure.changed"] } },
});

type Query = z.infer<typeof eventsQuery>;

export async function eventRoutes(app: FastifyInstance, context: HubContext): Promise<void> {
  const { store } = context;
  const watch = createEventWatch(store.events, context);
  app.addHook("preClose", () => watch.close());
  app.get("/events", FEED, async (request, reply) => {
    const { accountId } = callerOf(request);
    const query = parsed(eventsQuery, request.query);
    const filter = await filterOf(context, accountId, query);
    const ask = (after: number | undefined) => store.events.after(accountId, after ?? null, filter, query.limit);
    let found = shownPage(await ask(query.after));
    const ended = endOf(request, reply);
    const deadline = context.clock.monotonicMs() + query.waitSec * 1_000;
    while (found.events.length === 0 && !ended.aborted) {
      const leftMs = deadline - context.clock.monotonicMs();
      // Events that do not fit the filter are passed over without a wait.
      if (found.next === found.last && (leftMs <= 0 || !(await watch.wait(accountId, found.last, leftMs, ended))))
        break;
      await admitAgain(context, request);
      found = shownPage(await ask(found.next));
    }
    return found;
  });
  subscriptionRoutes(app, context);
}

/** Ends when the client has gone. */
function endOf({ raw }: FastifyRequest, reply: FastifyReply): AbortSignal {
  const gone = new AbortController();
  reply.raw.once("close", () => gone.abort());
  if (raw.socket.destroyed) gone.abort();
  return gone.signal;
}

const FILTERS = [
  "types",
  "subjects",
  "states",
  "severities",
  "siteIds",
  "sourceIds",
  "variableIds",
  "onlyFailures",
] as const;

async function filterOf({ store }: HubContext, accountId: number, query: Query): Promise<EventFilter> {
  const { subscriptionId, after: _after, limit: _limit, waitSec: _waitSec, ...filter } = query;
  if (subscriptionId === undefined) {
    const { types = EVENT_TYPES, ...rest } = filter;
    const misfit = misfitOf(types, rest, filter.types === undefined ? "some" : "each");
    if (misfit !== null) throw invalidField(misfit.field ?? "types", misfit.message);
    return filter;
  }
  const both = FILTERS.find((name) => filter[name] !== undefined);
  if (both !== undefined) throw invalidField(both, "stands beside subscriptionId, which has its own filter");
  const { rows } = await store.subscriptions.list(accountId, { ids: [subscriptionId] }, ONE);
  const [found] = rows;
  if (found === undefined) throw invalidField("subscriptionId", `no subscription ${subscriptionId} in this account`);
  return { ...found.filter, types: found.types };
}

function shownPage(page: EventPage): z.infer<typeof eventsPage> {
  if (page.kind === "page") return { events: [...page.events], next: page.next, last: page.last };
  if (page.kind === "ahead")
    throw invalidField("after", `is beyond the newest event of this account, ${page.last}: was it of another account?`);
  const why = `events before ${page.oldest} are no longer kept, and are lost: read on with after=${page.oldest - 1}`;
  throw new HttpProblem(410, "gone", why, [{ path: "after", message: `the oldest event is ${page.oldest}` }]);
}

/** Subscriptions to events (an extension of Headgate, `docs/events.md`). */
function subscriptionRoutes(app: FastifyInstance, context: HubContext): void {
  const { store, deliveries } = context;
  const { subscriptions } = store;
  const PATH = "/events/subscriptions";
  app.get(PATH, OPTIONS.list, async (request, reply) => {
    const query = parsed(subscriptionsQuery, request.query);
    const { accountId } = callerOf(request);
    return sendList(request, reply, query, {
      rows: (page) => subscriptions.list(accountId, {}, page),
      shown: (rows) => rows.map(shownOf),
      keyOf: ({ id }) => id,
    });
  });
  app.post(PATH, OPTIONS.create, (request, reply) => {
    void reply.header("cache-control", "no-store");
    return create(context, request);
  });
  app.get<WithId>(`${PATH}/:id`, OPTIONS.one, async (request) => shownOf(await found(context, request)));
  app.put<WithId>(`${PATH}/:id`, OPTIONS.change, async (request) => {
    const body = parsed(subscriptionBody, request.body);
    const { accountId } = callerOf(request);
    await requireFitting(context, accountId, body, (await found(context, request)).filter);
    const changed = await subscriptions.change(
      accountId,
      pathId(request.params.id),
      (current) => fieldsOf(context, body, current.channel === body.channel ? current.secret : null),
      editOf(context, request),
    );
    if (changed === "missing") throw notFound("subscription", request.params.id);
    deliveries.events.wake();
    return shownOf(changed);
  });
  app.delete<WithId>(`${PATH}/:id`, OPTIONS.remove, async (request, reply) => {
    const { id } = request.params;
    const removed = await subscriptions.remove(callerOf(request).accountId, pathId(id), editOf(context, request));
    if (!removed) throw notFound("subscription", id);
    return reply.code(204).send();
  });
  app.post<WithId>(`${PATH}/:id/test`, OPTIONS.test, async (request) => {
    const tested = await found(context, request);
    if (tested.channel === "feed") throw conflict("the subscription is read as a feed: nothing is sent");
    const answer = await deliveries.events.test(tested);
    const status = answer.kind === "unreached" ? null : answer.status;
    return { accepted: answer.kind === "accepted", status, words: answerWords(answer) };
  });
  app.post<WithId>(`${PATH}/:id/resume`, OPTIONS.resume, async (request) => {
    const { id } = request.params;
    const resumed = await subscriptions.resume(callerOf(request).accountId, pathId(id), editOf(context, request));
    if (resumed === "missing") throw notFound("subscription", id);
    deliveries.events.wake();
    return shownOf(resumed);
  });
}

async function create(context: HubContext, request: FastifyRequest): Promise<z.infer<typeof newSubscription>> {
  const body = parsed(subscriptionBody, request.body);
  const { accountId } = callerOf(request);
  await requireFitting(context, accountId, body, {});
  const secret = body.channel === "webhook" ? randomBytes(32).toString("base64url") : null;
  const fields = fieldsOf(context, body, secret);
  const most = context.options.events.subscriptions;
  const made = await context.store.subscriptions.create(accountId, fields, editOf(context, request), most);
  if (made === "full")
    throw conflict(`the account has ${most} subscriptions, and may not have more (events.subscriptions)`);
  const isOwn = secret !== null && body.secret === undefined;
  return { ...shownOf(made), ...(isOwn ? { secret } : {}) };
}

/** Ids that the filter had `before` may be of what is gone by now. */
async function requireFitting(
  { store: { structure } }: HubContext,
  accountId: number,
  { types, filter = {} }: SubscriptionBody,
  before: EventFilterBody,
): Promise<void> {
  const misfit = misfitOf(types, filter, "each");
  if (misfit !== null) throw invalidField(misfit.field === null ? "filter" : `filter.${misfit.field}`, misfit.message);
  for (const [field, list, what] of [
    ["siteIds", structure.sites, "site"],
    ["sourceIds", structure.sources, "source"],
    ["variableIds", structure.variables, "variable"],
  ] as const) {
    const ids = (filter[field] ?? []).filter((id) => before[field]?.includes(id) !== true);
    if (ids.length === 0) continue;
    const { rows } = await list(accountId, { ids }, { offset: 0, limit: ids.length });
    const missing = ids.find((id) => !rows.some((one) => one.id === id));
    if (missing !== undefined) throw invalidField(`filter.${field}`, `no ${what} ${missing} in this account`);
  }
}

/** `secret`: where the body has none. */
function fieldsOf({ options }: HubContext, body: SubscriptionBody, secret: string | null): SubscriptionFields {
  const { name, types, filter = {}, channel, url, batch, active } = body;
  const common = { name, types: [...new Set(types)], filter, channel, batch, active };
  if (channel === "feed") {
    for (const field of ["url", "secret"] as const)
      if (body[field] !== undefined) throw invalidField(field, "has no use where channel is feed");
    return { ...common, url: null, secret: null };
  }
  if (url === undefined) throw invalidField("url", "is missing: where events are sent");
  const target = URL.parse(url);
  if (target === null || !["http:", "https:"].includes(target.protocol))
    throw invalidField("url", "is an http or https URL");
  if (reachOf(target, options.webhook.hosts) === "refused")
    throw invalidField(
      "url",
      `${target.host} is neither public at port 443 (https) nor in webhook.hosts: this hub sends to no other receivers`,
    );
  return { ...common, url: target.href, secret: body.secret ?? secret ?? randomBytes(32).toString("base64url") };
}

async function found({ store }: HubContext, request: FastifyRequest<WithId>): Promise<SubscriptionRecord> {
  const { id } = request.params;
  const { rows } = await store.subscriptions.list(callerOf(request).accountId, { ids: [pathId(id)] }, ONE);
  if (rows[0] === undefined) throw notFound("subscription", id);
  return rows[0];
}

function editOf({ clock }: HubContext, request: FastifyRequest): SubscriptionEdit {
  return { actor: actingOf(request).actor, atMs: clock.now().epochMilliseconds };
}

function stateOf({ active, pausedMs, failingMs }: SubscriptionRecord): Subscription["state"] {
  if (!active) return "Inactive";
  if (pausedMs !== null) return "Paused";
  return failingMs === null ? "Active" : "Failing";
}

function shownOf(record: SubscriptionRecord): Subscription {
  const { id, name, types, filter, channel, url, batch, active, createdMs, createdBy, attempts, failure } = record;
  const state = stateOf(record);
  const isSent = channel === "webhook";
  return {
    ...{ id, name, types: [...types], filter, channel, url, batch, active },
    ...{ created: isoOfMs(createdMs), createdBy, state },
    since: state === "Paused" ? dateOf(record.pausedMs) : dateOf(state === "Failing" ? record.failingMs : null),
    ...{ failure, attempts },
    nextAttempt: state === "Failing" ? isoOfMs(record.nextMs) : null,
    delivered: dateOf(record.deliveredMs),
    position: isSent ? record.position : null,
    behind: isSent ? Math.max(0, record.last - record.position) : null,
    lostTo: record.lostTo,
  };
}
