/** One's own profile, and the sessions of one's browsers. */
import { Button, Card, Facts, type Faults, Field, Form, html, Moment, Select, Table } from "#pages/kit/index.ts";
import type { HubContext } from "../context.ts";
import { ownFact } from "../sessions/sessions.ts";
import { recordAboutPerson } from "../store/people/audit.ts";
import { changeUser } from "../store/people/users.ts";
import { isAdmin, mayAccess, rolesIn } from "../token/rights.ts";
import { type Answer, type MemberVisit, notAsAnother, ownPage, type Pages } from "./page.ts";
import { statusOf } from "./sign-in.ts";

const NAME_CHARACTERS_MAX = 200;

export function mePages(pages: Pages, context: HubContext): void {
  const { store, sessions, clock } = context;
  pages.get("/me", "member", "One's own account", (visit) => profilePage(context, visit));
  pages.post("/me", "member", "Changes one's own name", async (visit) => {
    const { session } = visit;
    const refused = notAsAnother(visit, "My account");
    if (refused !== null) return refused;
    const [firstName, lastName] = [nameOf(visit.text("firstName")), nameOf(visit.text("lastName"))];
    const faults = Object.fromEntries(
      Object.entries({ firstName, lastName }).flatMap(([name, text]) =>
        (text?.length ?? 0) > NAME_CHARACTERS_MAX ? [[name, `At most ${NAME_CHARACTERS_MAX} characters.`]] : [],
      ),
    );
    if (Object.keys(faults).length > 0) return profilePage(context, visit, faults);
    const atMs = clock.now().epochMilliseconds;
    await store.people.change(function* () {
      yield* changeUser(session.user.id, { firstName, lastName });
      const facts = { fields: ["firstName", "lastName"] };
      const fact = ownFact(session, visit.request, { action: "user.changed", atMs, facts });
      yield* recordAboutPerson(session.user.id, fact);
    });
    return { leadTo: "/me?done=profile" };
  });
  pages.post("/me/account", "member", "Enters another account", async (visit) => {
    const { session } = visit;
    const accountId = Number(visit.text("account"));
    const mayEnter = mayAccess(session.user, accountId) && (await store.identity.account(accountId)) !== null;
    if (session.impersonator !== null || !mayEnter)
      return profilePage(context, visit, { account: "You may not enter this account." });
    await store.sessions.enterAccount(session.id, accountId);
    await store.people.touchAccount(session.user.id, accountId);
    return { leadTo: "/me?done=account" };
  });
  pages.get("/me/sessions", "member", "The sessions of one's browsers", async (visit) => {
    return notAsAnother(visit, "Sessions") ?? sessionsPage(context, visit);
  });
  pages.post("/me/sessions", "member", "Ends other sessions", async (visit) => {
    const refused = notAsAnother(visit, "Sessions");
    if (refused !== null) return refused;
    const { session } = visit;
    const only = Number(visit.text("session"));
    if (only === session.id) {
      await sessions.end(visit.request, visit.reply);
      return { leadTo: "/sign-in?done=signed-out" };
    }
    const which = Number.isSafeInteger(only) && only > 0 ? { only } : { except: session.id };
    const fact = ownFact(session, visit.request, { action: "sessions.ended", atMs: clock.now().epochMilliseconds });
    await store.sessions.endOpenedBy(session.user.id, which, { accountId: session.accountId, fact });
    return { leadTo: "/me/sessions?done=ended" };
  });
}

function nameOf(text: string): string | null {
  return text.trim() === "" ? null : text.trim();
}

const DONE = {
  profile: "Your name is changed.",
  account: "You have entered this account.",
  password: "Your password is changed. All your other sessions have ended.",
};

async function profilePage(context: HubContext, visit: MemberVisit, faults: Faults = {}): Promise<Answer> {
  const { session, csrf } = visit;
  const { user, accountId } = session;
  const roles = rolesIn(user, accountId);
  const accounts = await enteredBy(context, visit);
  const here = accounts.find(({ id }) => id === accountId)?.name ?? `${accountId}`;
  const facts = Facts({
    facts: [
      ["User name", user.username],
      ["E-mail", user.email ?? html`<span class="muted">none; a manager of your account can add one</span>`],
      ["Account", `${here} (${accountId})`],
      [roles.length === 1 ? "Role" : "Roles", roles.join(", ")],
    ],
  });
  const name = (field: "firstName" | "lastName", label: string, autocomplete: string) =>
    Field({
      name: field,
      label,
      value: visit.request.method === "POST" ? visit.text(field) : (user[field] ?? ""),
      required: false,
      autocomplete,
      faults,
    });
  const children = [
    visit.done(DONE),
    Card({ id: "profile", title: "Profile", children: [facts, session.impersonator === null ? nameForm() : null] }),
    accounts.length > 1 && session.impersonator === null
      ? Card({ id: "account-switch", title: "Accounts", children: accountForm() })
      : null,
    session.impersonator === null ? Card({ id: "password-card", title: "Password", children: password() }) : null,
  ];
  function nameForm() {
    const fields = [
      name("firstName", "First name", "given-name"),
      name("lastName", "Last name", "family-name"),
      Button({ words: "Save", kind: "plain" }),
    ];
    return Form({
      action: visit.href("/me"),
      csrf,
      faults: faults["account"] === undefined ? faults : {},
      children: fields,
    });
  }
  function accountForm() {
    const options = accounts.map(({ id, name: words }) => ({ value: `${id}`, words: `${words} (${id})` }));
    const select = { name: "account", label: "Account that you work in", options, value: `${accountId}`, faults };
    const fields = [Select(select), Button({ words: "Enter", kind: "plain" })];
    return Form({ action: visit.href("/me/account"), csrf, children: fields });
  }
  function password() {
    if (user.passwordHash === null) return html`<p>You have no password here: another service signs you in.</p>`;
    return html`<p><a class="button plain" href=${visit.href("/password/change")}>Change the password</a></p>`;
  }
  return { ...ownPage(visit, "My account", children), ...statusOf(faults) };
}

/** Accounts to choose from: those of the memberships, and all for an Admin. */
async function enteredBy({ store }: HubContext, { session }: MemberVisit) {
  const own = session.user.memberships.map((one) => one.accountId);
  const ids = isAdmin(session.user) ? await store.identity.accountIds() : [...new Set([...own, session.accountId])];
  const found = await Promise.all(ids.map((id) => store.identity.account(id)));
  return found.flatMap((account) => (account === null ? [] : [account]));
}

const ENDED = { ended: "The other sessions have ended." };

async function sessionsPage({ store, options, clock }: HubContext, visit: MemberVisit): Promise<Answer> {
  const { session, csrf } = visit;
  const nowMs = clock.now().epochMilliseconds;
  const open = (await store.sessions.openedBy(session.user.id)).filter(
    ({ expiresMs, seenMs }) => expiresMs > nowMs && seenMs + options.sessions.idle > nowMs,
  );
  const action = visit.href("/me/sessions");
  const rows = open.map((one) => {
    const isThis = one.id === session.id;
    const words = browserOf(one.agent);
    const ending = Button({ words: "Sign out", kind: "plain", small: true, about: `of ${words} from ${one.address}` });
    const form = Form({ action, csrf, carried: { session: `${one.id}` }, children: ending });
    return [
      words,
      one.address,
      Moment({ ms: one.createdMs }),
      isThis ? "now" : Moment({ ms: one.seenMs }),
      isThis ? html`<strong>This browser</strong>` : form,
    ];
  });
  const columns = ["Browser", "Address", "Signed in", "Last used", ""];
  const table = Table({ caption: "Browsers in which you have signed in", columns, rows, empty: "None." });
  const others = Form({ action, csrf, children: Button({ words: "Sign out everywhere else", kind: "danger" }) });
  const title = "Sessions";
  const children = [visit.done(ENDED), table, open.length > 1 ? html`<div class="actions">${others}</div>` : null];
  return ownPage(visit, title, children);
}

/** `Firefox on Linux`, as far as a User-Agent says so. */
function browserOf(agent: string): string {
  const found = (names: readonly (readonly [RegExp, string])[]) => names.find(([pattern]) => pattern.test(agent))?.[1];
  const browser = found([
    [/Edg/, "Edge"],
    [/OPR|Opera/, "Opera"],
    [/Firefox|FxiOS/, "Firefox"],
    [/Chrome|Chromium|CriOS/, "Chrome"],
    [/Safari/, "Safari"],
  ]);
  const system = found([
    [/Android/, "Android"],
    [/iPhone|iPad/, "iOS"],
    [/Windows/, "Windows"],
    [/Mac OS X/, "macOS"],
    [/Linux/, "Linux"],
  ]);
  if (browser === undefined) return "Another browser";
  return system === undefined ? browser : `${browser} on ${system}`;
}
