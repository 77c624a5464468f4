/**
 * The access rules of the routes (`ACCESS`), checked before a byte of the body is read (specification,
 * *Authentication* 3 to 7, and *Errors*).
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { HttpProblem, unauthenticated } from "#wire/http-problem.ts";
import { admitToPage, type BrowserSession, type Sessions } from "../sessions/sessions.ts";
import { type AccessRule, callerBy, type Guard, type Principal } from "../token/guard.ts";
import { hasRight } from "../token/rights.ts";
import { ACCESS, type HubRoute, type RouteFacts } from "./route.ts";

/** A request that takes longer is admitted again. */
const LASTING_MS = 1_000;
/** Path of the documentation page. */
export const DOCUMENTATION_PATH = "/docs";
const PAGE_FILE: RouteFacts = { access: "open", tag: "Hub", summary: "A file of the page", hidden: true };

export function isPage({ access }: Pick<RouteFacts, "access">): boolean {
  const rule: AccessRule | null = ACCESS[access];
  return rule?.page !== undefined;
}

declare module "fastify" {
  interface FastifyRequest {
    principal: Principal | null;
    /** Of pages; null without one. */
    session: BrowserSession | null;
    begunMs: number;
  }
  interface FastifyContextConfig {
    facts?: RouteFacts;
  }
}

/**
 * Called before any route is added: from here on a route without facts fails the start. The list grows as routes are
 * added.
 */
export function installAccess(app: FastifyInstance, guard: Guard, sessions: Sessions): readonly HubRoute[] {
  const routes: HubRoute[] = [];
  app.decorateRequest("principal", null);
  app.decorateRequest("session", null);
  app.decorateRequest("begunMs", 0);
  app.decorateRequest("newCookie", null);
  app.addHook("onRoute", (route) => {
    const { method, url } = route;
    // The documentation plug-in adds routes of its own, without facts.
    if (url.startsWith(DOCUMENTATION_PATH)) route.config = { ...route.config, facts: PAGE_FILE };
    const facts = route.config?.facts;
    if (facts === undefined) throw new Error(`the route ${String(method)} ${url} declares no access rule`);
    for (const one of [method].flat()) routes.push({ method: one, url, facts });
  });
  const admit = async (request: FastifyRequest, reply: FastifyReply) => {
    const rule = ruleOf(request);
    if (rule === null) return;
    if (rule.page === undefined) {
      request.principal = await guard.admit(request, rule);
      return;
    }
    const session = await admitToPage(sessions, rule.page, request, reply);
    if (session === "led") return reply;
    request.session = session;
    if (session !== null && session.missing === null) request.principal = callerBy(session);
    if (rule.right !== null && (session === null || !hasRight(session.user, session.accountId, rule.right)))
      throw new HttpProblem(403, "missing-right", "your roles in this account do not permit this page");
  };
  app.addHook("onRequest", (request, reply) => {
    request.begunMs = performance.now();
    return admit(request, reply);
  });
  // The body may have taken long.
  app.addHook("preHandler", async (request, reply) => {
    if (performance.now() - request.begunMs <= LASTING_MS) return;
    return ruleOf(request)?.page === undefined ? admitAgain({ guard }, request) : admit(request, reply);
  });
  return routes;
}

/** Throws what a request that begins now would be answered: for those that last, since rights end meanwhile. */
export async function admitAgain({ guard }: { readonly guard: Guard }, request: FastifyRequest): Promise<void> {
  const rule = ruleOf(request);
  if (rule === null || rule.page !== undefined) return;
  const { accountId } = callerOf(request);
  request.principal = await guard.admit(request, rule);
  if (request.principal.accountId !== accountId)
    throw unauthenticated("the user left the account while the request lasted: send it again");
}

/** Null: open, or no route has this address, which every caller may learn. */
function ruleOf({ routeOptions }: FastifyRequest): AccessRule | null {
  const { facts } = routeOptions.config;
  return facts === undefined ? null : ACCESS[facts.access];
}

/** The caller of a route that is not open. */
export function callerOf(request: FastifyRequest): Principal {
  if (request.principal === null) throw new Error(`${request.url} is open: it has no caller`);
  return request.principal;
}
