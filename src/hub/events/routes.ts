/** The feed of events (an extension of Headgate, `docs/events.md`). */
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { z } from "zod";
import { HttpProblem } from "#wire/http-problem.ts";
import { EVENT_TYPES, eventsPage, eventsQuery, misfitOf } from "#wire/index.ts";
import type { HubContext } from "../context.ts";
import { admitAgain, callerOf } from "../http/access.ts";
import { invalidField, parsed } from "../http/problems.ts";
import { described } from "../http/route.ts";
import type { EventFilter, EventPage } from "../store/events/events.ts";
import { ONE } from "../structure/pages.ts";
import { subscriptionRoutes } from "./subscriptions.ts";
import { createEventWatch } from "./watch.ts";

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
