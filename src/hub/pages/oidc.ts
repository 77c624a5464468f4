/** Sign-in by a provider of OpenID Connect: the way there, and back. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { wordsOf } from "#core/errors.ts";
import { localPath } from "#core/pages/browser.ts";
import { ATTEMPT_MS, createAttemptCookie } from "#core/sign-on/attempt.ts";
import {
  createProviderClient,
  type ProviderClient,
  redirectUriOf,
  type SignedOn,
  SignOnFault,
  type SignOnFaultKind,
} from "#core/sign-on/provider.ts";
import { type Content, html } from "#pages/kit/index.ts";
import type { HubContext } from "../context.ts";
import { described, type RouteFacts } from "../http/route.ts";
import { newLinkSecret } from "../mail/mail.ts";
import { confirmationMessage } from "../mail/messages.ts";
import { nextPath } from "../sessions/sessions.ts";
import type { OidcProvider } from "../sign-on/options.ts";
import { personOf } from "../sign-on/person.ts";
import type { UserRecord } from "../store/people/records.ts";
import { CONFIRM_PATH } from "./confirm-address.ts";
import type { Page } from "./frame.ts";
import type { Pages } from "./page.ts";

interface WithProvider {
  Params: { provider: string };
  Querystring: Readonly<Record<string, unknown>>;
}

const WORDS: Readonly<Record<SignOnPage["kind"], Words>> = {
  provider: {
    status: 503,
    title: "The sign-in service does not answer",
    words:
      "The service that signs you in cannot be reached at the moment. Try again in a few minutes. If it lasts, ask " +
      "the operator of this hub, whose log says why.",
    again: "same",
  },
  settings: {
    status: 502,
    title: "The sign-in service is not set up correctly",
    words:
      "This hub and the service that signs you in do not understand each other, and to try again will not help. Ask " +
      "the operator of this hub, whose log says why.",
    again: null,
  },
  declined: {
    status: 403,
    title: "You were not signed in",
    words: "The sign-in was cancelled, or the service does not let you use this hub. Try again, or ask who runs it.",
    again: "same",
  },
  expired: {
    status: 400,
    title: "This sign-in has lapsed",
    words:
      "It took too long, was finished already, or began in another browser or tab. Nothing is wrong with your user: " +
      "sign in again.",
    again: "same",
  },
  "unknown-user": {
    status: 403,
    title: "This hub does not know you",
    words:
      "The service knows who you are, but you are no user of this hub. Ask a manager of your account for an " +
      "invitation, or sign in as another person.",
    again: "another",
  },
  "name-taken": {
    status: 409,
    title: "Your user name is taken",
    words: "Another user of this hub has your name. Ask the operator of this hub.",
    again: "another",
  },
  inactive: {
    status: 403,
    title: "Your user is deactivated",
    words: "A manager of your account, or the operator of this hub, can activate it again.",
    again: "another",
  },
  "no-account": {
    status: 403,
    title: "You may enter no account",
    words:
      "The service knows who you are, but gives you no account of this hub. Ask the one who manages your groups " +
      "there, or a manager of your account.",
    again: "another",
  },
  "confirm-address": {
    status: 403,
    title: "Confirm your address",
    words:
      "A user of this hub has your e-mail address, and has not confirmed it yet. A mail with a link was sent there: " +
      "open it, and sign in again. Links that came before no longer work. No more than five are sent in an hour.",
    again: "same",
  },
  "unproven-address": {
    status: 403,
    title: "Your address is not confirmed",
    words:
      "A user of this hub has your e-mail address, and has not confirmed it. This hub sends no mails by which you " +
      "could do that: ask the operator of this hub.",
    again: "another",
  },
  "no-provider": {
    status: 404,
    title: "There is no such sign-in service",
    words: "The address names a service that this hub does not have.",
    again: null,
  },
};

const FACTS = { access: "visitor", tag: "Pages", hidden: true } as const;
const BEGIN: RouteFacts = { ...FACTS, summary: "Leads to a provider of single sign-on" };
const CALLBACK: RouteFacts = { ...FACTS, summary: "Takes the answer of a provider of single sign-on" };
const FAILED = "a sign-in by a provider of single sign-on failed";

export function oidcPages(app: FastifyInstance, pages: Pages, context: HubContext): void {
  const { options, sessions, clock, log } = context;
  const clients = new Map(options.signIn.oidc.map((settings) => [settings.name, createProviderClient(settings)]));
  const cookie = createAttemptCookie("headgate-sign-on", options.publicUrl?.startsWith("https:") === true);
  const nowMs = () => clock.now().epochMilliseconds;
  const redirectUri = (request: FastifyRequest, { settings }: ProviderClient<OidcProvider>) =>
    redirectUriOf(settings, options.publicUrl ?? `${request.protocol}://${request.host}`);
  const page = (request: FastifyRequest, reply: FastifyReply, what: SignOnPage) =>
    pages.send(
      request,
      reply,
      signOnFaultPage(what, (path) => sessions.browser.base + path),
    );
  const handled = async (
    request: FastifyRequest<WithProvider>,
    reply: FastifyReply,
    work: (client: ProviderClient<OidcProvider>) => Promise<FastifyReply>,
  ): Promise<FastifyReply> => {
    const client = clients.get(request.params.provider);
    if (client === undefined) return page(request, reply, { kind: "no-provider", label: "", name: "" });
    try {
      return await work(client);
    } catch (thrown) {
      if (!(thrown instanceof SignOnFault)) throw thrown;
      const { name, label } = client.settings;
      const facts = { provider: name, why: thrown.kind, cause: wordsOf(thrown), from: request.ip };
      log.warn(facts, FAILED);
      return page(request, reply, { kind: thrown.kind, name, label });
    }
  };
  app.get<WithProvider>("/sign-in/oidc/:provider", described(BEGIN), (request, reply) =>
    handled(request, reply, async (client) => {
      const isOther = request.query["as"] === "another";
      const { url, checks } = await client.begin(redirectUri(request, client), isOther);
      const to = localPath(request.query["next"]);
      cookie.write(reply, { provider: client.settings.name, checks, to, expiresMs: nowMs() + ATTEMPT_MS });
      return reply.redirect(url, 303);
    }),
  );
  app.get<WithProvider>("/sign-in/oidc/:provider/callback", described(CALLBACK), (request, reply) =>
    handled(request, reply, async (client) => {
      const attempt = cookie.read(request, nowMs());
      cookie.clear(reply);
      // A page that was loaded again, or reached by the way back.
      if (attempt === null && request.session?.missing === null)
        return reply.redirect(`${sessions.browser.base}/me`, 303);
      if (attempt === null || attempt.provider !== client.settings.name)
        throw new SignOnFault("expired", "this browser has no attempt in progress at the provider");
      const asked = new URL(request.url, "http://hub.invalid");
      const callback = new URL(redirectUri(request, client) + asked.search);
      const found = await entered(context, client, await client.finish(callback, attempt.checks), request.ip);
      if (typeof found === "string") {
        const { name, label } = client.settings;
        log.warn({ provider: name, why: found, from: request.ip }, FAILED);
        return page(request, reply, { kind: found, name, label });
      }
      const user = found;
      const session = await sessions.open(request, reply, { user, secondFactor: true });
      if (session === null) throw new SignOnFault("no-account", `the user ${user.username} has no account`);
      return reply.redirect(sessions.browser.base + nextPath(session.missing, localPath(attempt.to)), 303);
    }),
  );
}

async function entered(
  { store, clock, mail }: HubContext,
  { settings }: ProviderClient<OidcProvider>,
  signedOn: SignedOn,
  address: string,
): Promise<UserRecord | "confirm-address" | "unproven-address"> {
  const actor = { id: null, name: `single sign-on by ${settings.name}`, impersonator: null, address };
  const atMs = clock.now().epochMilliseconds;
  const { token, hash } = newLinkSecret();
  const expiresMs = atMs + mail.validity.reset;
  const facts = { provider: settings.label, link: mail.linkTo(CONFIRM_PATH, token), expiresMs };
  const confirmation = { hash, expiresMs, message: (username: string) => confirmationMessage({ username, ...facts }) };
  const occasion = { atMs, actor, confirmation: mail.isSetUp ? confirmation : null };
  const found = await store.externalIdentities.enter(personOf(settings, signedOn), occasion);
  mail.wake();
  if (found.kind === "user") return found.user;
  if (found.kind === "confirm-address" || found.kind === "unproven-address") return found.kind;
  throw new SignOnFault(found.kind, `the subject ${signedOn.subject} of ${signedOn.issuer}`);
}

/** Links of the sign-in page, one for each provider. */
export function SignOnLinks(
  { options, sessions }: Pick<HubContext, "options" | "sessions">,
  next: string | null,
): Content {
  const { oidc } = options.signIn;
  if (oidc.length === 0) return null;
  const query = next === null ? "" : `?next=${encodeURIComponent(next)}`;
  const links = oidc.map(({ name, label }) => {
    const href = `${sessions.browser.base}/sign-in/oidc/${name}${query}`;
    return html`<a class="button plain" href=${href}>${label}</a>`;
  });
  return html`<nav class="actions" aria-label="Single sign-on">${links}</nav>`;
}

// Pages that say why a sign-in by a provider failed, and what to do.

interface SignOnPage {
  readonly kind: SignOnFaultKind | "no-provider" | "confirm-address" | "unproven-address";
  /** Of the provider. */
  readonly name: string;
  readonly label: string;
}

interface Words {
  readonly status: number;
  readonly title: string;
  readonly words: string;
  /** The person who may succeed with a further attempt. */
  readonly again: "same" | "another" | null;
}

function signOnFaultPage({ kind, name, label }: SignOnPage, href: (path: string) => string): Page {
  const { status, title, words, again } = WORDS[kind];
  const begin = href(`/sign-in/oidc/${name}${again === "another" ? "?as=another" : ""}`);
  const button = again === "another" ? `${label} as another person` : label;
  const children = [
    html`<p>${words}</p>`,
    again === null ? null : html`<p><a class="button" href=${begin}>${button}</a></p>`,
    html`<p><a href=${href("/sign-in")}>Back to the sign-in</a></p>`,
  ];
  return { title, status, isNarrow: true, children };
}
