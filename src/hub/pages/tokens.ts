/** One's own personal tokens, with which programs call the hub. */
import {
  Button,
  Card,
  Checks,
  type Faults,
  Field,
  Form,
  html,
  Moment,
  Notice,
  Select,
  Table,
} from "#pages/kit/index.ts";
import type { HubContext } from "../context.ts";
import { actorIn } from "../sessions/sessions.ts";
import type { ApiTokenRecord } from "../store/people/api-tokens.ts";
import { endToken, makeToken } from "../users/caller.ts";
import { type Answer, type MemberVisit, notAsAnother, ownPage, type Pages } from "./page.ts";
import { statusOf } from "./sign-in.ts";

const TITLE = "Personal tokens";
const PATH = "/me/tokens";
const DAY_MS = 86_400_000;
const NAME_CHARACTERS_MAX = 100;
/** Tokens of a user in an account; a page of more is no help. */
const TOKENS_MAX = 50;

const SCOPES = [
  { value: "datahub-api", words: "Read and manage", hint: "datahub-api: sites, sources, variables, data, files" },
  { value: "push-data", words: "Send measurements", hint: "push-data: the push interface" },
];
const LIFETIMES = [
  { value: "30", words: "30 days" },
  { value: "90", words: "90 days" },
  { value: "365", words: "1 year" },
];

export function tokenPages(pages: Pages, context: HubContext): void {
  pages.get(PATH, "member", "One's own personal tokens", async (visit) => {
    return notAsAnother(visit, TITLE) ?? tokensPage(context, visit);
  });
  pages.post(PATH, "member", "Makes or ends a personal token", async (visit) => {
    const refused = notAsAnother(visit, TITLE);
    if (refused !== null) return refused;
    const { user, accountId } = visit.session;
    const owner = { user, accountId, actor: actorIn(visit.session, visit.request) };
    if (visit.text("end") !== "") {
      await endToken(context, owner, Number(visit.text("end")) || 0);
      return { leadTo: `${PATH}?done=ended` };
    }
    const faults = await faultsOf(context, visit);
    if (Object.keys(faults).length > 0) return tokensPage(context, visit, faults);
    const lifetimeMs = Number(visit.text("days")) * DAY_MS;
    const token = { name: visit.text("name").trim(), scopes: visit.texts("scopes"), lifetimeMs };
    return madePage(visit, token.name, (await makeToken(context, owner, token)).value);
  });
}

async function faultsOf({ store }: HubContext, visit: MemberVisit): Promise<Faults> {
  const { user, accountId } = visit.session;
  const name = visit.text("name").trim();
  const scopes = visit.texts("scopes");
  const isKnown = (options: readonly { readonly value: string }[], text: string) =>
    options.some(({ value }) => value === text);
  const isFull = (await store.people.apiTokens(user.id, accountId)).length >= TOKENS_MAX;
  return {
    ...(isFull ? { "": `You have ${TOKENS_MAX} tokens in this account. End some first.` } : {}),
    ...(name === "" ? { name: "Write a name." } : {}),
    ...(name.length > NAME_CHARACTERS_MAX ? { name: `At most ${NAME_CHARACTERS_MAX} characters.` } : {}),
    ...(scopes.length === 0 || !scopes.every((one) => isKnown(SCOPES, one)) ? { scopes: "Choose one at least." } : {}),
    ...(isKnown(LIFETIMES, visit.text("days")) ? {} : { days: "Choose how long it works." }),
  };
}

async function tokensPage(context: HubContext, visit: MemberVisit, faults: Faults = {}): Promise<Answer> {
  const { user, accountId } = visit.session;
  const [tokens, account] = await Promise.all([
    context.store.people.apiTokens(user.id, accountId),
    context.store.identity.account(accountId),
  ]);
  const nowMs = context.clock.now().epochMilliseconds;
  const children = [
    visit.done({ ended: "The token is ended." }),
    html`<p>A program signs in with a personal token instead of your password. It works in the
      account ${account?.name}, with the rights that you have there.</p>`,
    Table({
      caption: "Your tokens in this account",
      columns: ["Name", "Scopes", "Works until", "Last used", ""],
      rows: tokens.map((token) => rowOf(visit, token, nowMs)),
      empty: "You have no token in this account.",
    }),
    Card({ id: "new", title: "New token", children: newTokenForm(visit, faults) }),
  ];
  return { ...ownPage(visit, TITLE, children), ...statusOf(faults) };
}

function rowOf(visit: MemberVisit, { id, name, scopes, expiresMs, lastUsedMs }: ApiTokenRecord, nowMs: number) {
  const button = Button({ words: "End", kind: "danger", small: true, about: `the token ${name}` });
  const lapsed = html`<span class="muted">has lapsed</span>`;
  return [
    name,
    scopes.join(", "),
    expiresMs <= nowMs ? lapsed : Moment({ ms: expiresMs }),
    lastUsedMs === null ? "never" : Moment({ ms: lastUsedMs }),
    Form({ action: visit.href(PATH), csrf: visit.csrf, carried: { end: `${id}` }, children: button }),
  ];
}

function newTokenForm(visit: MemberVisit, faults: Faults) {
  const isSent = visit.request.method === "POST";
  return Form({
    action: visit.href(PATH),
    csrf: visit.csrf,
    faults,
    children: [
      Field({
        name: "name",
        label: "Name",
        value: visit.text("name"),
        hint: "What it is for, such as “weekly report”.",
        faults,
      }),
      Checks({
        name: "scopes",
        legend: "What it may do",
        options: SCOPES,
        values: isSent ? visit.texts("scopes") : ["datahub-api"],
        faults,
      }),
      Select({
        name: "days",
        label: "It works for",
        options: LIFETIMES,
        value: visit.text("days") === "" ? "90" : visit.text("days"),
        faults,
      }),
      Button({ words: "Make a token" }),
    ],
  });
}

function madePage(visit: MemberVisit, name: string, value: string): Answer {
  const children = [
    Notice({ kind: "success", children: html`<p>The token “${name}” is made.</p>` }),
    html`<p>Copy it into the program now. <strong>It is not shown again.</strong></p>
      <code class="secret">${value}</code>
      <p>The program sends it as <code>Authorization: Bearer …</code></p>
      <p><a class="button" href=${visit.href(PATH)}>I have copied it</a></p>`,
  ];
  return ownPage(visit, "Your new token", children);
}
