/** The addresses of the console for browsers: its page, its files, sign-in and sign-out. */
import formbody from "@fastify/formbody";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { Logger } from "../../support/log.ts";
import { protectPage, sendAsset } from "../../support/pages/assets.ts";
import { csrfTokenOf, isCsrfToken, localPath, newCookieValue } from "../../support/pages/browser.ts";
import { bundleOf } from "../../support/pages/bundle.ts";
import { Button, type Content, Form, html, STYLESHEET } from "../../web/kit/index.ts";
import { sendProblem } from "../problems.ts";
import type { Console } from "./console.ts";
import { livePage, passagePage, STYLESHEET_NAME, stillPage } from "./frame.ts";

const FORM_BYTES_MAX = 65_536;
const OPEN = { config: { need: "nothing" } } as const;
const ENTRY = "/console";
export const SIGN_IN = "/console/sign-in";

export interface PageParts {
  readonly people: Console;
  readonly log: Logger;
}

/** A page of a visit, with the token that its forms bring back. */
export interface Visit {
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  readonly csrf: string;
  readonly base: string;
  /** The page to which a sign-in leads. */
  readonly next: string;
  send(page: { readonly title: string; readonly status?: number; readonly children: Content }): FastifyReply;
}

export function addPages(app: FastifyInstance, parts: PageParts): void {
  void app.register(async (scope) => {
    await scope.register(formbody, { bodyLimit: FORM_BYTES_MAX });
    scope.addHook("onRequest", async (request, reply) => {
      protectPage(reply);
      if (!parts.people.isKnownHost(request)) return refuseHost(reply);
    });
    addConsolePage(scope, parts);
    addEntries(scope, parts);
    addFiles(scope, parts);
  });
}

function refuseHost(reply: FastifyReply): FastifyReply {
  const detail = "the console is not known by this name; operations.console.publicUrl says which one browsers use";
  return sendProblem(reply, 421, { detail });
}

function addConsolePage(app: FastifyInstance, { people }: PageParts): void {
  const bundle = bundleOf("console");
  const { browser, sessions } = people;
  const { base } = browser;
  const show = async (request: FastifyRequest, reply: FastifyReply) => {
    const cookie = browser.cookieOf(request);
    void reply.type("text/html; charset=utf-8");
    if (cookie === null || people.callerOf(request) === null || sessions.personOf(request) === null) {
      const path = localPath(request.url) ?? ENTRY;
      // A link of another site brings no cookie at first, whether or not the browser has one.
      if (request.headers["sec-fetch-site"] === "cross-site") return reply.send(passagePage(base, path));
      return reply.redirect(`${base}${SIGN_IN}?next=${encodeURIComponent(path)}`, 303);
    }
    const { script, stylesheet } = await bundle();
    protectPage(reply, "live");
    return reply.send(livePage({ base, script, stylesheet, csrf: csrfTokenOf(cookie) }));
  };
  app.get(ENTRY, OPEN, show);
  app.get(`${ENTRY}/*`, OPEN, show);
  app.get("/", OPEN, (_request, reply) => reply.redirect(base + ENTRY, 303));
}

function addEntries(app: FastifyInstance, parts: PageParts): void {
  const { people, log } = parts;
  const { browser, sessions, links } = people;
  app.get<{ Querystring: { code?: unknown } }>(`${ENTRY}/enter`, OPEN, (request, reply) => {
    const { code } = request.query;
    const person = links !== null && typeof code === "string" ? links.use(code) : null;
    if (person !== null) people.signIn(request, reply, person);
    // The same link opened again by the browser that used it.
    if (person !== null || sessions.personOf(request) !== null)
      return reply.type("text/html; charset=utf-8").send(passagePage(browser.base, ENTRY));
    log.warn({ from: request.ip }, "a link to the console was refused: it was used before, or is too old");
    return visitOf(parts, request, reply).send({
      title: "This link does not work",
      status: 403,
      children: html`<p>It was used before, is too old, or the gateway was restarted since. This prints a new
        one:</p><p><code>headgate console link -c FILE</code></p>`,
    });
  });
  app.get(SIGN_IN, OPEN, (request, reply) => {
    const visit = visitOf(parts, request, reply);
    if (people.refusal === null && sessions.personOf(request) !== null)
      return reply.redirect(browser.base + visit.next, 303);
    return visit.send({ title: "Sign in", children: signInWords(people) });
  });
  app.get(`${ENTRY}/sign-out`, OPEN, (request, reply) => {
    const visit = visitOf(parts, request, reply);
    const { base, csrf } = visit;
    const children = Form({ action: `${base}${ENTRY}/sign-out`, csrf, children: Button({ words: "Sign out" }) });
    return visit.send({ title: "Sign out", children });
  });
  app.post(`${ENTRY}/sign-out`, OPEN, (request, reply) => {
    if (!isOwnForm(people, request)) return sendOldForm(visitOf(parts, request, reply));
    sessions.end(request, reply);
    return reply.redirect(`${browser.base}${SIGN_IN}`, 303);
  });
}

function signInWords({ refusal }: Console): Content {
  if (refusal !== null) return html`<p>The console is not available here: ${refusal}.</p>`;
  return html`<p>This gateway has no users. On its machine, this command prints a link that signs in:</p>
    <p><code>headgate console link -c FILE</code></p>`;
}

function addFiles(app: FastifyInstance, { log }: PageParts): void {
  const bundle = bundleOf("console");
  app.get(`${ENTRY}/assets/${STYLESHEET_NAME}`, OPEN, (_request, reply) =>
    reply
      .header("cache-control", "public, max-age=31536000, immutable")
      .type("text/css; charset=utf-8")
      .send(STYLESHEET),
  );
  app.get<{ Params: { file: string } }>(`${ENTRY}/assets/:file`, OPEN, async (request, reply) => {
    if (await sendAsset(bundle, request.params.file, { request, reply, log })) return reply;
    return sendProblem(reply, 404, { detail: "the console has no such file; load its page again" });
  });
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
  const csrf = formToken(browser, request, reply);
  return {
    ...{ request, reply, csrf, base, next: localPath(fields.next) ?? ENTRY },
    send: ({ title, status = 200, children }) =>
      reply.code(status).type("text/html; charset=utf-8").send(stillPage({ base, csrf, title, children })),
  };
}

/** A visitor without a session has a cookie, too, to which the token of the forms belongs. */
function formToken(browser: Console["browser"], request: FastifyRequest, reply: FastifyReply): string {
  const known = browser.cookieOf(request);
  if (known !== null) return csrfTokenOf(known);
  const value = newCookieValue();
  browser.setCookie(reply, value);
  return csrfTokenOf(value);
}
