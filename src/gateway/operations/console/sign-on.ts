/** Sign-in by a provider of OpenID Connect: the way there, and back. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { wordsOf } from "#core/errors.ts";
import { localPath } from "#core/pages/browser.ts";
import { ATTEMPT_MS, createAttemptCookie } from "#core/sign-on/attempt.ts";
import { type Claims, fits, nameOf } from "#core/sign-on/claims.ts";
import { SignOnFault, type SignOnFaultKind } from "#core/sign-on/faults.ts";
import { createProviderClient, type ProviderClient, redirectUriOf } from "#core/sign-on/provider.ts";
import { type Content, html } from "#pages/kit/index.ts";
import { type Person, ROLES } from "../api/endpoint.ts";
import type { Console } from "./console.ts";
import type { ConsoleProvider } from "./options.ts";
import { ENTRY, OPEN, type PageParts, SIGN_IN, sendPassage, type Visit, visitOf } from "./visit.ts";

interface WithProvider {
  Params: { provider: string };
  Querystring: Readonly<Record<string, unknown>>;
}

type Client = ProviderClient<ConsoleProvider>;

export function addSignOn(app: FastifyInstance, parts: PageParts): void {
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
export function SignOnLinks({ options }: Console, { base, next }: Visit): Content {
  if (options.oidc.length === 0) return null;
  const links = options.oidc.map(({ name, label }) => {
    const href = `${base}${SIGN_IN}/oidc/${name}?next=${encodeURIComponent(next)}`;
    return html`<a class="button plain" href=${href}>${label}</a>`;
  });
  return html`<nav class="actions" aria-label="Single sign-on">${links}</nav>`;
}
