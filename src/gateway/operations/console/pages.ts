/** The addresses of the console for browsers: its page, its files, sign-in and sign-out. */
import formbody from "@fastify/formbody";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { protectPage, sendAsset } from "#core/pages/assets.ts";
import { csrfTokenOf, localPath } from "#core/pages/browser.ts";
import { bundleOf } from "#core/pages/bundle.ts";
import { Button, Form, html, STYLESHEET } from "#pages/kit/index.ts";
import { sendProblem } from "../problems.ts";
import { livePage, STYLESHEET_NAME } from "./frame.ts";
import { addSignIn } from "./sign-in.ts";
import { addSignOn } from "./sign-on.ts";
import {
  ENTRY,
  isFromElsewhere,
  isOwnForm,
  OPEN,
  type PageParts,
  SIGN_IN,
  sendOldForm,
  sendPassage,
  visitOf,
} from "./visit.ts";

const FORM_BYTES_MAX = 65_536;

export function addPages(app: FastifyInstance, parts: PageParts): void {
  void app.register(async (scope) => {
    await scope.register(formbody, { bodyLimit: FORM_BYTES_MAX });
    scope.addHook("onRequest", async (request, reply) => {
      protectPage(reply);
      if (!parts.people.isKnownHost(request)) return refuseHost(reply);
    });
    addConsolePage(scope, parts);
    addEntries(scope, parts);
    addSignIn(scope, parts);
    if (parts.people.refusal === null) addSignOn(scope, parts);
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
      if (isFromElsewhere(request)) return sendPassage(reply, base, path);
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
    // Programs that check links in messages ask in this way; the person comes after them.
    if (request.method === "HEAD") return reply.send();
    const { code } = request.query;
    const person = links !== null && typeof code === "string" ? links.use(code) : null;
    if (person !== null) people.signIn(request, reply, person);
    // The same link opened again by the browser that used it.
    if (person !== null || sessions.personOf(request) !== null) return sendPassage(reply, browser.base, ENTRY);
    log.warn({ from: request.ip }, "a link to the console was refused: it was used before, or is too old");
    return visitOf(parts, request, reply).send({
      title: "This link does not work",
      status: 403,
      children: html`<p>It was used before, or is too old. This prints a new one:</p>
        <p><code>headgate console link -c FILE</code></p>`,
    });
  });
  app.get(`${ENTRY}/sign-out`, OPEN, (request, reply) => {
    if (isFromElsewhere(request)) return sendPassage(reply, browser.base, `${ENTRY}/sign-out`);
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
