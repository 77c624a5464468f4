/** The addresses of the console for browsers: its page, its files, sign-in and sign-out. */

import { hash } from "node:crypto";
import formbody from "@fastify/formbody";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { wordsOf } from "#core/errors.ts";
import type { Logger } from "#core/log.ts";
import { protectPage, sendAsset } from "#core/pages/assets.ts";
import { csrfTokenOf, isCsrfToken, localPath, newCookieValue } from "#core/pages/browser.ts";
import { bundleOf } from "#core/pages/bundle.ts";
import type { Passwords } from "#core/sign-in/passwords.ts";
import { ATTEMPT_MS, createAttemptCookie } from "#core/sign-on/attempt.ts";
import {
  type Claims,
  createProviderClient,
  fits,
  nameOf,
  type ProviderClient,
  redirectUriOf,
  SignOnFault,
  type SignOnFaultKind,
} from "#core/sign-on/provider.ts";
import {
  Button,
  type Content,
  type Element,
  type Faults,
  Field,
  Form,
  html,
  Layout,
  STYLESHEET,
} from "#pages/kit/index.ts";
import { documentOf } from "#pages/kit/render.ts";
import { type Person, ROLES } from "../api/endpoint.ts";
import { sendProblem } from "../problems.ts";
import type { Console } from "./console.ts";
import { type ConsoleProvider, nameKey } from "./options.ts";

const PRODUCT = "Headgate console";
/** Browsers keep the stylesheet until it changes. */
const STYLESHEET_NAME = `kit-${hash("sha256", STYLESHEET, "hex").slice(0, 12)}.css`;

/** Options of a route that is there for all. */
const OPEN = { config: { need: "nothing" } } as const;
const ENTRY = "/console";
const SIGN_IN = "/console/sign-in";

const FAULTS: Readonly<Record<FaultKind, { readonly status: number; readonly title: string; readonly words: string }>> =
  {
    provider: {
      status: 503,
      title: "The sign-in service does not answer",
      words: "Try again in a few minutes. If it lasts, the log of the gateway says why.",
    },
    settings: {
      status: 502,
      title: "The sign-in service is not set up correctly",
      words: "The gateway and the service do not understand each other; the log of the gateway says why.",
    },
    declined: {
      status: 403,
      title: "You were not signed in",
      words: "The sign-in was cancelled, or the service does not let you use this gateway.",
    },
    expired: {
      status: 400,
      title: "This sign-in has lapsed",
      words: "It took too long, was finished already, or began in another browser. Sign in again.",
    },
    "unknown-user": {
      status: 403,
      title: "You have no role here",
      words: "The service knows who you are, but nothing that it says gives you a role at this gateway.",
    },
    "no-provider": {
      status: 404,
      title: "There is no such sign-in service",
      words: "The address names a service that this gateway does not have.",
    },
  };

/** Says the same of a wrong password and an unknown name. */
const WRONG = "No user has this name and this password.";
/** Characters of a field; longer values are cut. */
const FIELD_CHARACTERS_MAX = 1_000;

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

/** Sign-in by name and password; the pages work without a script. */
function addSignIn(app: FastifyInstance, parts: PageParts): void {
  const { people, log } = parts;
  app.get(SIGN_IN, OPEN, (request, reply) => {
    const visit = visitOf(parts, request, reply);
    if (isFromElsewhere(request)) return sendPassage(reply, visit.base, localPath(request.url) ?? SIGN_IN);
    if (people.sessions.personOf(request) !== null) return reply.redirect(visit.base + visit.next, 303);
    return visit.send({ title: "Sign in", children: entriesOf(people, visit) });
  });
  const { passwords } = people;
  if (passwords === null) return;
  app.post(SIGN_IN, OPEN, async (request, reply) => {
    const visit = visitOf(parts, request, reply);
    if (!isOwnForm(people, request)) return sendOldForm(visit);
    const name = fieldOf(request.body, "name").trim();
    const password = fieldOf(request.body, "password");
    const verdict = await verdictOf({ people, passwords, log }, { name, password, address: request.ip });
    if ("fault" in verdict) {
      if (verdict.retryAfterSec !== undefined) void reply.header("retry-after", verdict.retryAfterSec);
      const children = [PasswordForm(visit, name, { "": verdict.fault }), SignOnLinks(people, visit)];
      return visit.send({ title: "Sign in", status: verdict.retryAfterSec === undefined ? 422 : 429, children });
    }
    people.signIn(request, reply, verdict);
    return reply.redirect(visit.base + visit.next, 303);
  });
}

interface Given {
  readonly name: string;
  readonly password: string;
  readonly address: string;
}

interface SignInParts {
  readonly people: Console;
  readonly passwords: () => Promise<Passwords>;
  readonly log: Logger;
}

async function verdictOf({ people, passwords, log }: SignInParts, { name, password, address }: Given) {
  if (name === "" || password === "") return { fault: "Write your name and your password." };
  const key = nameKey(name);
  const user = people.options.users.find((one) => nameKey(one.name) === key);
  const attempt = { address, name: `user ${key}` };
  const verdict = await (await passwords()).check(attempt, password, user?.password ?? null);
  if (verdict.kind === "right" && user !== undefined) return { name: user.name, role: user.role };
  if (verdict.kind === "later") {
    const { seconds } = verdict;
    const wait = seconds < 90 ? `${seconds} seconds` : `${Math.ceil(seconds / 60)} minutes`;
    return { fault: `Too many attempts. Try again in ${wait}.`, retryAfterSec: seconds };
  }
  log.warn({ person: name, from: address }, "a sign-in to the console failed");
  return { fault: WRONG };
}

function fieldOf(body: unknown, name: string): string {
  const fields = Object(body) as Readonly<Record<string, unknown>>;
  const value = Object.hasOwn(fields, name) ? fields[name] : "";
  return typeof value === "string" ? value.slice(0, FIELD_CHARACTERS_MAX) : "";
}

function entriesOf(people: Console, visit: Visit): Content {
  const { refusal, links, passwords } = people;
  if (refusal !== null) return html`<p>The console is not available here: ${refusal}.</p>`;
  if (links !== null)
    return html`<p>This gateway has no users. On its machine, this command prints a link that signs in:</p>
      <p><code>headgate console link -c FILE</code></p>`;
  return [passwords === null ? null : PasswordForm(visit, "", {}), SignOnLinks(people, visit)];
}

function PasswordForm({ base, csrf, next }: Visit, name: string, faults: Faults): Content {
  return Form({
    ...{ action: base + SIGN_IN, csrf, faults, carried: { next } },
    children: [
      Field({ name: "name", label: "Name", value: name, autocomplete: "username", focused: true, faults }),
      Field({ name: "password", label: "Password", type: "password", autocomplete: "current-password", faults }),
      html`<div class="actions">${Button({ words: "Sign in" })}</div>`,
    ],
  });
}

// Sign-in by a provider of OpenID Connect: the way there, and back.

interface WithProvider {
  Params: { provider: string };
  Querystring: Readonly<Record<string, unknown>>;
}

type Client = ProviderClient<ConsoleProvider>;

function addSignOn(app: FastifyInstance, parts: PageParts): void {
  const { people, log } = parts;
  const { browser, clock, options } = people;
  const clients = new Map(options.oidc.map((settings) => [settings.name, createProviderClient(settings)]));
  const cookie = createAttemptCookie("headgate-console-sign-on", browser.isSecure);
  const nowMs = () => clock.now().epochMilliseconds;
  const redirectUri = ({ protocol, host }: FastifyRequest, { settings }: Client) =>
    redirectUriOf(settings, options.publicUrl ?? `${protocol}://${host}`, SIGN_IN);
  const handled = async (
    request: FastifyRequest<WithProvider>,
    reply: FastifyReply,
    work: (client: Client) => Promise<FastifyReply>,
  ): Promise<FastifyReply> => {
    const visit = visitOf(parts, request, reply);
    const client = clients.get(request.params.provider);
    if (client === undefined) return sendFault(visit, "no-provider", null);
    try {
      return await work(client);
    } catch (thrown) {
      if (!(thrown instanceof SignOnFault)) throw thrown;
      const facts = { provider: client.settings.name, why: thrown.kind, cause: wordsOf(thrown), from: request.ip };
      log.warn(facts, "a sign-in to the console by a provider failed");
      return sendFault(visit, thrown.kind, client.settings);
    }
  };
  app.get<WithProvider>(`${SIGN_IN}/oidc/:provider`, OPEN, (request, reply) =>
    handled(request, reply, async (client) => {
      const { url, checks } = await client.begin(redirectUri(request, client), request.query["as"] === "another");
      const to = localPath(request.query["next"]);
      cookie.write(reply, { provider: client.settings.name, checks, to, expiresMs: nowMs() + ATTEMPT_MS });
      return reply.redirect(url, 303);
    }),
  );
  app.get<WithProvider>(`${SIGN_IN}/oidc/:provider/callback`, OPEN, (request, reply) =>
    handled(request, reply, async (client) => {
      const attempt = cookie.read(request, nowMs());
      cookie.clear(reply);
      if (attempt === null || attempt.provider !== client.settings.name)
        throw new SignOnFault("expired", "this browser has no attempt in progress at the provider");
      const asked = new URL(request.url, "http://server.invalid");
      const callback = new URL(redirectUri(request, client) + asked.search);
      const { subject, claims } = await client.finish(callback, attempt.checks);
      people.signIn(request, reply, personOf(client.settings, subject, claims));
      return sendPassage(reply, browser.base, localPath(attempt.to) ?? ENTRY);
    }),
  );
}

/** The highest role that the claims give. */
function personOf({ name, nameClaim, roles }: ConsoleProvider, subject: string, claims: Claims): Person {
  const given = roles.filter((rule) => fits(rule, claims)).map(({ role }) => role);
  const role = ROLES.findLast((one) => given.includes(one));
  if (role === undefined) throw new SignOnFault("unknown-user", `the subject ${subject} of ${name} has no role here`);
  // An address that the provider did not verify may be that of another person, and so may a name that people choose.
  const email = claims["email_verified"] === true ? nameOf(claims, "email") : null;
  const named = nameClaim === undefined ? null : nameOf(claims, nameClaim);
  return { name: named ?? email ?? subject, role };
}

type FaultKind = Exclude<SignOnFaultKind, "name-taken" | "inactive" | "no-account"> | "no-provider";

function sendFault(visit: Visit, kind: SignOnFaultKind | "no-provider", settings: ConsoleProvider | null) {
  const { status, title, words } = FAULTS[Object.hasOwn(FAULTS, kind) ? (kind as FaultKind) : "unknown-user"];
  const { base } = visit;
  // Otherwise the provider would bring the same person again.
  const again = settings === null ? null : `${base}${SIGN_IN}/oidc/${settings.name}?as=another`;
  const button = again === null ? null : html`<p><a class="button" href=${again}>${settings?.label}</a></p>`;
  const children = [html`<p>${words}</p>`, button, html`<p><a href=${base + SIGN_IN}>Back to the sign-in</a></p>`];
  return visit.send({ status, title, children });
}

/** Links of the sign-in page, one for each provider. */
function SignOnLinks({ options }: Console, { base, next }: Visit): Content {
  if (options.oidc.length === 0) return null;
  const links = options.oidc.map(({ name, label }) => {
    const href = `${base}${SIGN_IN}/oidc/${name}?next=${encodeURIComponent(next)}`;
    return html`<a class="button plain" href=${href}>${label}</a>`;
  });
  return html`<nav class="actions" aria-label="Single sign-on">${links}</nav>`;
}

// A visit of a browser to one of the console's pages that work without a script.

interface PageParts {
  readonly people: Console;
  readonly log: Logger;
}

/** A page of a visit, with the token that its forms bring back. */
interface Visit {
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  /** For a form; sets a cookie where there is none. */
  readonly csrf: string;
  readonly base: string;
  /** The page to which a sign-in leads. */
  readonly next: string;
  send(page: { readonly title: string; readonly status?: number; readonly children: Content }): FastifyReply;
}

function isOwnForm({ browser }: Console, request: FastifyRequest): boolean {
  const { csrf } = Object(request.body) as { readonly csrf?: unknown };
  return browser.isSameOrigin(request) && isCsrfToken(browser.cookieOf(request), csrf);
}

function sendOldForm(visit: Visit): FastifyReply {
  return visit.send({
    title: "This form is too old",
    status: 403,
    children: html`<p>Its page was opened in another session, or this browser refuses cookies. Nothing was done. Go
      back, load the page again, and send the form once more.</p>`,
  });
}

function visitOf({ people: { browser } }: PageParts, request: FastifyRequest, reply: FastifyReply): Visit {
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
function isFromElsewhere({ headers }: FastifyRequest): boolean {
  return headers["sec-fetch-site"] === "cross-site";
}

function sendPassage(reply: FastifyReply, base: string, path: string): FastifyReply {
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

// The frames of the console's pages: the live one, and those that work without a script.

interface LiveFrame {
  readonly base: string;
  readonly csrf: string;
  readonly script: string;
  readonly stylesheet: string;
}

/** The one page of the console; its script draws what its address says. */
function livePage({ base, csrf, script, stylesheet }: LiveFrame): string {
  const href = (name: string) => `${base}/console/assets/${name}`;
  return documentOf(
    html`<html lang="en"><head>
    <meta charset="utf-8" />
    <title>${PRODUCT}</title>
    <meta name="viewport" content="width=device-width, initial-scale=1" />
    <meta name="referrer" content="no-referrer" />
    <meta name="csrf-token" content=${csrf} />
    <link rel="icon" href="data:," />
    <link rel="stylesheet" href=${href(STYLESHEET_NAME)} />
    <link rel="stylesheet" href=${href(stylesheet)} />
    <script type="module" src=${href(script)}></script>
  </head><body>
    <div id="console" data-base=${base}><noscript>
      The console needs JavaScript; the commands of headgate work without.
    </noscript></div>
  </body></html>` as Element,
  );
}

interface StillFrame {
  readonly base: string;
  readonly title: string;
  readonly children: Content;
}

function stillPage({ base, title, children }: StillFrame): string {
  return documentOf(
    Layout({
      // Forms carry their token, and there is no script that would need it.
      ...{ title, csrf: "", children, product: PRODUCT, isNarrow: true, links: [], person: null },
      home: `${base}/console`,
      stylesheets: [`${base}/console/assets/${STYLESHEET_NAME}`],
    }),
  );
}

/**
 * Leads to another page of ours by a page instead of a redirect: a browser that comes from another site keeps back the
 * cookie on every redirect, and brings it with the address that this page names.
 */
function passagePage(base: string, path: string): string {
  const href = base + path;
  return documentOf(
    html`<html lang="en"><head>
    <meta charset="utf-8" />
    <title>${PRODUCT}</title>
    <meta http-equiv="refresh" content=${`0;url=${href}`} />
    <link rel="icon" href="data:," />
  </head><body><p><a href=${href}>Open the console</a></p></body></html>` as Element,
  );
}
