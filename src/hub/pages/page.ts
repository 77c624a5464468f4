/** Routes of pages: what a handler is given of a visit, and what becomes of its answer. */
import formbody from "@fastify/formbody";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { protectPage } from "#core/pages/assets.ts";
import { csrfTokenOf, isCsrfToken, localPath, newCookieValue } from "#core/pages/browser.ts";
import { type Content, type Element, html, Notice, type PageLink, Tabs } from "#pages/kit/index.ts";
import { HttpProblem, TITLES } from "#wire/http-problem.ts";
import type { HubContext } from "../context.ts";
import { type Access, described } from "../http/route.ts";
import type { BrowserSession } from "../sessions/sessions.ts";
import { hasRight, type Right } from "../token/rights.ts";
import { type Page, textOfPage } from "./frame.ts";

const TABS = [
  { path: "/me", words: "Profile" },
  { path: "/me/second-factor", words: "Second factor" },
  { path: "/me/tokens", words: "Tokens" },
  { path: "/me/sessions", words: "Sessions" },
];

const LINKS: readonly { readonly path: string; readonly words: string; readonly right?: Right }[] = [
  { path: "/", words: "Explorer" },
  { path: "/me", words: "My account" },
  { path: "/people", words: "People", right: "people" },
  { path: "/docs/", words: "API" },
];

const FORM_BYTES_MAX = 65_536;
/** Characters of a field; longer values are cut. */
const FIELD_CHARACTERS_MAX = 2_000;

/** A page, or the path of another one, to which the browser is led. */
export type Answer = Page | { readonly leadTo: string };

export interface Visit {
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  /** Null where no user has signed in, on pages for visitors alone. */
  readonly session: BrowserSession | null;
  /** For the forms of the page. */
  readonly csrf: string;
  /** The address of a path of this hub, for links and forms. */
  href(path: string): string;
  /** A field of the form that was sent, or a parameter of the address; `""` without one. */
  text(name: string): string;
  /** All values of a field. */
  texts(name: string): readonly string[];
  /** The path `next` of the form or the address, to which a sign-in leads; null without a valid one. */
  next(): string | null;
  /** The notice for the word `done` of the address. */
  done(words: Readonly<Record<string, string>>): Element | null;
}

/** A visit of one who has signed in. */
export interface MemberVisit extends Visit {
  readonly session: BrowserSession;
}

type Handler<Kind extends Visit> = (visit: Kind) => Promise<Answer>;

export interface Pages {
  /** Shows something, and changes nothing. */
  get(path: string, access: "visitor", summary: string, handler: Handler<Visit>): void;
  get(path: string, access: PageWithSession, summary: string, handler: Handler<MemberVisit>): void;
  /** Takes a form, whose token was checked. */
  post(path: string, access: "visitor", summary: string, handler: Handler<Visit>): void;
  post(path: string, access: PageWithSession, summary: string, handler: Handler<MemberVisit>): void;
  /** Sends a page outside of these routes' handlers. */
  send(request: FastifyRequest, reply: FastifyReply, page: Page): Promise<FastifyReply>;
}

type PageWithSession = Exclude<PageAccessKey, "visitor">;
type PageAccessKey = Extract<Access, "visitor" | "entering" | "member" | "peoplePage">;

/** For a scope of its own: faults of its routes are shown as pages. */
export async function openPages(app: FastifyInstance, context: HubContext): Promise<Pages> {
  await app.register(formbody, { bodyLimit: FORM_BYTES_MAX });
  app.addHook("onRequest", async (_request, reply) => protectPage(reply));
  const send = (request: FastifyRequest, reply: FastifyReply, page: Page) => sendPage(context, request, reply, page);
  app.setErrorHandler(async (thrown: Error & { statusCode?: number }, request, reply) => {
    protectPage(reply);
    return send(request, reply, faultPage(context, thrown, request));
  });
  const add = (method: "GET" | "POST", url: string, access: Access, summary: string, handler: Handler<never>) => {
    app.route({
      method,
      url,
      ...described({ access, tag: "Pages", summary, hidden: true }),
      handler: async (request, reply) => {
        const visit = visitOf(context, request, reply);
        if (method === "POST" && !isCsrfToken(context.sessions.browser.cookieOf(request), fieldOf(request, "csrf")[0]))
          return send(request, reply, OLD_FORM);
        const answer = await handler(visit as never);
        if (!("leadTo" in answer)) return send(request, reply, answer);
        return reply.redirect(visit.href(localPath(answer.leadTo) ?? "/me"), 303);
      },
    });
  };
  return {
    get: (path: string, access: Access, summary: string, handler: Handler<never>) =>
      add("GET", path, access, summary, handler),
    post: (path: string, access: Access, summary: string, handler: Handler<never>) =>
      add("POST", path, access, summary, handler),
    send,
  };
}

const OLD_FORM: Page = {
  title: "This form is too old",
  status: 403,
  isNarrow: true,
  children: html`<p>The page that it stands on was opened in another session, or this browser refuses cookies, or the
    hub was reached by another address than its public one. Nothing was done. Go back, load the page again, and send
    the form once more.</p>`,
};

function visitOf(context: HubContext, request: FastifyRequest, reply: FastifyReply): Visit {
  const { browser } = context.sessions;
  const texts = (name: string) => fieldOf(request, name).map((text) => text.slice(0, FIELD_CHARACTERS_MAX));
  const text = (name: string) => texts(name)[0] ?? "";
  return {
    request,
    reply,
    session: request.session,
    get csrf() {
      return csrfOf(context, request, reply);
    },
    href: (path) => browser.base + path,
    text,
    texts,
    next: () => localPath(text("next")),
    done(words) {
      const found = Object.hasOwn(words, text("done")) ? words[text("done")] : undefined;
      return found === undefined ? null : Notice({ kind: "success", children: html`<p>${found}</p>` });
    },
  };
}

/** A visitor without a session has a cookie, too, to which the token of the forms belongs. */
function csrfOf({ sessions: { browser } }: HubContext, request: FastifyRequest, reply: FastifyReply): string {
  // A cookie that this very answer sets is the one that the form comes back with.
  const known = request.newCookie ?? browser.cookieOf(request);
  if (known !== null) return csrfTokenOf(known);
  const value = newCookieValue();
  browser.setCookie(reply, value);
  return csrfTokenOf(value);
}

function fieldOf({ method, body, query }: FastifyRequest, name: string): readonly string[] {
  const fields = Object(method === "POST" ? body : query) as Readonly<Record<string, unknown>>;
  const value = Object.hasOwn(fields, name) ? fields[name] : undefined;
  return [value].flat().filter((one) => typeof one === "string" && !one.includes("\0")) as string[];
}

async function sendPage(
  context: HubContext,
  request: FastifyRequest,
  reply: FastifyReply,
  page: Page,
): Promise<FastifyReply> {
  const { session } = request;
  const { base } = context.sessions.browser;
  const account = session === null ? null : await context.store.identity.account(session.accountId);
  const links: readonly PageLink[] =
    session?.missing === null ? linksFor(session, (path) => base + path, request.url) : [];
  const csrf = csrfOf(context, request, reply);
  if (page.retryAfterSec !== undefined) void reply.header("retry-after", page.retryAfterSec);
  const text = textOfPage(page, { base, csrf, session, accountName: account?.name ?? "", links });
  return reply
    .code(page.status ?? 200)
    .type("text/html; charset=utf-8")
    .send(text);
}

function faultPage(context: HubContext, thrown: Error & { statusCode?: number }, request: FastifyRequest): Page {
  const isProblem = thrown instanceof HttpProblem;
  const status = isProblem ? thrown.status : (thrown.statusCode ?? 500);
  const facts = { title: TITLES[status] ?? "This did not work", status, isNarrow: true };
  if (status < 500) {
    const words = isProblem ? thrown.message : "The hub cannot read what the browser sent.";
    const retryAfterSec = isProblem ? thrown.retryAfterSec : undefined;
    return { ...facts, retryAfterSec, children: html`<p>${words}</p>` };
  }
  const url = request.url.split("?")[0];
  context.log.error({ err: thrown, method: request.method, url }, "page failed");
  const words = "The hub failed to answer; its log says why. Try again later.";
  return { ...facts, title: "This did not work", children: html`<p>${words}</p>` };
}

/** Links in the bar on top of every page. */
function linksFor(
  { user, accountId }: BrowserSession,
  href: (path: string) => string,
  current: string,
): readonly PageLink[] {
  return LINKS.filter(({ right }) => right === undefined || hasRight(user, accountId, right)).map(
    ({ path, words }) => ({
      href: href(path),
      words,
      isCurrent: current.split("?")[0] === path || current.startsWith(`${path}/`),
    }),
  );
}

// The frame of the pages about one's own account.

export function ownPage(visit: MemberVisit, title: string, children: Content): Page {
  const current = visit.request.url.split("?")[0];
  const links = TABS.map(({ path, words }) => ({ href: visit.href(path), words, isCurrent: isWithin(current, path) }));
  return { title, children: [Tabs({ label: "My account", links }), children] };
}

/** The profile is above all the others. */
function isWithin(current: string | undefined, path: string): boolean {
  return current === path || (path !== "/me" && current?.startsWith(`${path}/`) === true);
}

/** Null when the user acts for himself: what is his own stays out of the reach of those who act as him. */
export function notAsAnother(visit: MemberVisit, title: string): Page | null {
  const { impersonator, user } = visit.session;
  if (impersonator === null) return null;
  const words = html`<p>You act as ${user.username}. Only ${user.username} can see and change this.</p>`;
  return { ...ownPage(visit, title, Notice({ kind: "warning", children: words })), status: 403 };
}
