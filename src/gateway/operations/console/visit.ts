/** A visit of a browser to one of the console's pages that work without a script. */
import type { FastifyReply, FastifyRequest } from "fastify";
import type { Logger } from "#core/log.ts";
import { csrfTokenOf, isCsrfToken, localPath, newCookieValue } from "#core/pages/browser.ts";
import { type Content, html } from "#pages/kit/index.ts";
import type { Console } from "./console.ts";
import { passagePage, stillPage } from "./frame.ts";

/** Options of a route that is there for all. */
export const OPEN = { config: { need: "nothing" } } as const;
export const ENTRY = "/console";
export const SIGN_IN = "/console/sign-in";

export interface PageParts {
  readonly people: Console;
  readonly log: Logger;
}

/** A page of a visit, with the token that its forms bring back. */
export interface Visit {
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  /** For a form; sets a cookie where there is none. */
  readonly csrf: string;
  readonly base: string;
  /** The page to which a sign-in leads. */
  readonly next: string;
  send(page: { readonly title: string; readonly status?: number; readonly children: Content }): FastifyReply;
}

export function isOwnForm({ browser }: Console, request: FastifyRequest): boolean {
  const { csrf } = Object(request.body) as { readonly csrf?: unknown };
  return browser.isSameOrigin(request) && isCsrfToken(browser.cookieOf(request), csrf);
}

export function sendOldForm(visit: Visit): FastifyReply {
  return visit.send({
    title: "This form is too old",
    status: 403,
    children: html`<p>Its page was opened in another session, or this browser refuses cookies. Nothing was done. Go
      back, load the page again, and send the form once more.</p>`,
  });
}

export function visitOf({ people: { browser } }: PageParts, request: FastifyRequest, reply: FastifyReply): Visit {
  const fields = Object(request.method === "POST" ? request.body : request.query) as { readonly next?: unknown };
  const { base } = browser;
  return {
    ...{ request, reply, base, next: localPath(fields.next) ?? ENTRY },
    get csrf() {
      return formToken(browser, request, reply);
    },
    send: ({ title, status = 200, children }) =>
      reply.code(status).type("text/html; charset=utf-8").send(stillPage({ base, title, children })),
  };
}

/**
 * A link of another site brings no cookie at first, whether or not the browser has one. Such a visit is led to the same
 * page by a page of ours, and no cookie is set, which would take the place of a session.
 */
export function isFromElsewhere({ headers }: FastifyRequest): boolean {
  return headers["sec-fetch-site"] === "cross-site";
}

export function sendPassage(reply: FastifyReply, base: string, path: string): FastifyReply {
  return reply.type("text/html; charset=utf-8").send(passagePage(base, path));
}

/** A visitor without a session has a cookie, too, to which the token of the forms belongs. */
function formToken(browser: Console["browser"], request: FastifyRequest, reply: FastifyReply): string {
  const known = request.newCookie ?? browser.cookieOf(request);
  if (known !== null) return csrfTokenOf(known);
  const value = newCookieValue();
  browser.setCookie(reply, value);
  return csrfTokenOf(value);
}
