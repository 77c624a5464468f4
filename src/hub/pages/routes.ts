/** Pages for people: sign-in, and what is their own. */
import type { FastifyInstance } from "fastify";
import {
  Button,
  Card,
  type Content,
  type Element,
  Facts,
  type Faults,
  Field,
  Form,
  html,
  Moment,
  Notice,
  STYLESHEET,
} from "#pages/kit/index.ts";
import { HttpProblem } from "#wire/http-problem.ts";
import { rolesBody, userNameFault } from "#wire/index.ts";
import type { HubContext } from "../context.ts";
import { explorerPages } from "../explorer/pages.ts";
import { parsed } from "../http/problems.ts";
import { described } from "../http/route.ts";
import { type Accepted, accept, invitationOfLink } from "../invitations/accept.ts";
import { actingOf } from "../invitations/actor.ts";
import { makePasswordLink } from "../invitations/password-link.ts";
import { changeOwnPassword, passwordFault } from "../sessions/own-password.ts";
import { RESET_PATH, resetPassword, sendResetLink, userOfLink } from "../sessions/reset.ts";
import { nextPath } from "../sessions/sessions.ts";
import type { UserRecord } from "../store/people/records.ts";
import { notFound, ONE } from "../structure/pages.ts";
import { attemptOf } from "../token/guard.ts";
import { isAdmin, mayManage, mayManagePerson, rolesIn } from "../token/rights.ts";
import { activateMember, deactivateMember, removeMember } from "../users/departure.ts";
import { giveRoles } from "../users/edit.ts";
import { changeMember } from "../users/member-change.ts";
import { confirmAddressPages } from "./confirm-address.ts";
import { type Page, STYLESHEET_PATH } from "./frame.ts";
import { mePages } from "./me.ts";
import { oidcPages } from "./oidc.ts";
import { type Answer, type MemberVisit, notAsAnother, openPages, type Pages, type Visit } from "./page.ts";
import { faultsIn, idOf, nameOf, peoplePages, RoleChecks, stateOf } from "./people.ts";
import { secondFactorPages } from "./second-factor.ts";
import { carried, signInPages, statusOf, tooManyPage, waitFault } from "./sign-in.ts";
import { tokenPages } from "./tokens.ts";

const DONE = {
  roles: "The roles are changed.",
  deactivated: "The user is deactivated. All sessions and tokens of the user have ended.",
  activated: "The user may sign in again.",
};

const ACT_AS: Deed = {
  name: "act-as",
  words: "Act as this user",
  about: "See and do what this user can. It is recorded under both names, and signing out ends it.",
};
const PASSWORD_LINK: Deed = {
  name: "password-link",
  words: "Make a link",
  about: "A link at which this user sets a new password, for you to pass on.",
};
const ACTIVATE: Deed = { name: "activate", words: "Activate", about: "The user can sign in again." };
const DEACTIVATE: Deed = {
  name: "deactivate",
  words: "Deactivate",
  kind: "danger",
  about: "The user can no longer sign in. All sessions and tokens end, personal tokens for good.",
};
const REMOVE: Deed = {
  name: "remove",
  words: "Remove from the account",
  kind: "danger",
  about: "The user can no longer enter this account. One who belongs to no other account is deactivated.",
};

const NAME_CHARACTERS_MAX = 100;
const INACTIVE =
  "A user with this e-mail address exists and is deactivated. Ask the one who invited you to activate it.";

const TITLE = "Change your password";
const HINT = "8 characters at least. A few words in a row are easy to keep in mind and hard to guess.";
const FORGOTTEN_PATH = "/password/forgot";
const FORGOTTEN = "Forgot your password?";

const NO_MAIL_PAGE: Page = {
  title: FORGOTTEN,
  isNarrow: true,
  children: html`<p>This hub sends no mails. Ask a manager of your account for a new password.</p>`,
};

export async function pageRoutes(app: FastifyInstance, context: HubContext): Promise<void> {
  const facts = { access: "open", tag: "Pages", summary: "The stylesheet of all pages", hidden: true } as const;
  app.get(STYLESHEET_PATH, described(facts), (_request, reply) => {
    void reply.header("cache-control", "public, max-age=31536000, immutable");
    return reply.type("text/css; charset=utf-8").send(STYLESHEET);
  });
  await app.register(async (scope) => {
    const pages = await openPages(scope, context);
    signInPages(pages, context);
    passwordPages(pages, context);
    forgottenPages(pages, context);
    confirmAddressPages(pages, context);
    invitationPages(pages, context);
    peoplePages(pages, context);
    personPages(pages, context);
    mePages(pages, context);
    secondFactorPages(pages, context);
    tokenPages(pages, context);
    oidcPages(scope, pages, context);
    explorerPages(app, scope, pages, context);
  });
}

/** A new password by a link in a mail. No page says whether a user exists. */
function forgottenPages(pages: Pages, context: HubContext): void {
  const { throttle, mail, log } = context;
  pages.get(FORGOTTEN_PATH, "visitor", "Asks for the name of a user without a password", async (visit) =>
    mail.isSetUp ? askPage(visit) : NO_MAIL_PAGE,
  );
  pages.post(FORGOTTEN_PATH, "visitor", "Sends a link to set a new password", async (visit) => {
    if (!mail.isSetUp) return NO_MAIL_PAGE;
    const name = visit.text("username").trim();
    if (name === "") return askPage(visit, { username: "Write your user name or e-mail address." });
    const { ip } = visit.request;
    const attempt = { address: ip, name: `forgotten ${name.normalize("NFC").toLowerCase()}` };
    const seconds = throttle.begin(attempt);
    if (seconds > 0) return tooManyPage(askPage(visit, waitFault(seconds)), seconds);
    throttle.failed(attempt);
    // Only after the answer: its time says nothing about the user.
    visit.reply.raw.once("close", () => {
      sendResetLink(context, name, ip).catch((thrown: unknown) => {
        log.error({ err: thrown }, "the link to set a new password could not be queued; the user has to ask again");
      });
    });
    return sentPage(visit, mail.validity.reset);
  });
  pages.get(RESET_PATH, "visitor", "Asks for a new password, by a link", async (visit) =>
    (await userOfLink(context, visit.text("token"))) === null ? oldLinkPage(visit) : resetPage(visit),
  );
  pages.post(RESET_PATH, "visitor", "Sets a new password, by a link", async (visit) => {
    const user = await userOfLink(context, visit.text("token"));
    if (user === null) return oldLinkPage(visit);
    const faults = newPasswordFaults(visit, user);
    if (Object.keys(faults).length > 0) return resetPage(visit, faults);
    const [token, password] = [visit.text("token"), visit.text("password")];
    const isDone = await resetPassword(context, token, user, { password, request: visit.request });
    return isDone ? { leadTo: "/sign-in?done=password" } : oldLinkPage(visit);
  });
}

function askPage(visit: Visit, faults: Faults = {}): Page {
  const field = { name: "username", label: "User name or e-mail", value: visit.text("username"), faults } as const;
  const children = [
    html`<p>You get a mail with a link, by which you choose a new password.</p>`,
    Form({
      action: visit.href(FORGOTTEN_PATH),
      csrf: visit.csrf,
      faults,
      children: [
        Field({ ...field, autocomplete: "username", focused: true }),
        html`<div class="actions">${Button({ words: "Send the link" })}
          <a href=${visit.href("/sign-in")}>Cancel</a></div>`,
      ],
    }),
  ];
  return { title: FORGOTTEN, isNarrow: true, children, ...statusOf(faults) };
}

function sentPage(visit: Visit, validityMs: number): Page {
  const minutes = Math.round(validityMs / 60_000);
  const time = minutes < 120 ? `${minutes} minutes` : `${Math.round(minutes / 60)} hours`;
  const children = [
    Notice({
      kind: "success",
      children: html`<p>If this is a user with an e-mail address, a link is sent to it. It works
        once, for ${time}.</p>`,
    }),
    html`<p>If nothing comes, ask a manager of your account: without an e-mail address, or where another service signs
      you in, there is no link.</p>
      <p><a href=${visit.href("/sign-in")}>Back to the sign-in</a></p>`,
  ];
  return { title: FORGOTTEN, isNarrow: true, children };
}

function oldLinkPage(visit: Visit): Page {
  const words = html`<p>This link was used already, has lapsed, or a later one was sent.</p>
    <p><a class="button" href=${visit.href(FORGOTTEN_PATH)}>Ask for another link</a></p>`;
  return { title: "This link no longer works", isNarrow: true, status: 410, children: words };
}

function resetPage(visit: Visit, faults: Faults = {}): Page {
  const children = Form({
    action: visit.href(RESET_PATH),
    csrf: visit.csrf,
    faults,
    carried: { token: visit.text("token") },
    children: [
      newPasswordFields(faults),
      html`<div class="actions">${Button({ words: "Set the new password" })}</div>`,
    ],
  });
  return { title: "Set a new password", isNarrow: true, children, ...statusOf(faults) };
}

// The change of one's own password, also the one that a temporary password asks for.

function passwordPages(pages: Pages, context: HubContext): void {
  const { passwords, sessions } = context;
  pages.get("/password/change", "entering", "Change of one's own password", async (visit) => {
    const refused = notAsAnother(visit, TITLE);
    if (refused !== null) return refused;
    if (visit.session.missing === "code") return { leadTo: nextPath("code", visit.next()) };
    return visit.session.user.passwordHash === null ? { leadTo: "/me" } : changePage(visit);
  });
  pages.post("/password/change", "entering", "Changes one's own password", async (visit) => {
    const { session } = visit;
    const refused = notAsAnother(visit, TITLE);
    if (refused !== null) return refused;
    if (session.missing === "code") return { leadTo: nextPath("code", visit.next()) };
    const [current, password] = [visit.text("current"), visit.text("password")];
    const faults = newPasswordFaults(visit, session.user);
    if (!isForced(visit) && current === "") return changePage(visit, { current: "Write your password.", ...faults });
    if (Object.keys(faults).length > 0) return changePage(visit, faults);
    const attempt = attemptOf(session.user.username, visit.request.ip);
    if (!isForced(visit)) {
      const verdict = await passwords.check(attempt, current, session.user.passwordHash);
      if (verdict.kind === "later") return tooManyPage(changePage(visit, waitFault(verdict.seconds)), verdict.seconds);
      if (verdict.kind === "wrong") return changePage(visit, { current: "This is not your password." });
    }
    const same = await passwords.check(attempt, password, session.user.passwordHash);
    if (same.kind === "right") return changePage(visit, { password: "Choose another password than the current one." });
    await changeOwnPassword(context, session, visit.request, password);
    await sessions.renew(visit.request, visit.reply, {});
    return { leadTo: visit.next() ?? "/me?done=password" };
  });
}

/** Faults of a new password that was written twice. */
function newPasswordFaults(visit: Pick<MemberVisit, "text">, user: Parameters<typeof passwordFault>[1]): Faults {
  const password = visit.text("password");
  const fault = passwordFault(password, user);
  if (fault !== null) return { password: fault };
  return password === visit.text("again") ? {} : { again: "This is not the password that you wrote above." };
}

function newPasswordFields(faults: Faults) {
  const facts = { type: "password", autocomplete: "new-password", faults } as const;
  return [
    Field({ ...facts, name: "password", label: "New password", hint: HINT }),
    Field({ ...facts, name: "again", label: "New password once more" }),
  ];
}

function isForced({ session }: MemberVisit): boolean {
  return session.missing === "password";
}

function changePage(visit: MemberVisit, faults: Faults = {}): Page {
  const { user } = visit.session;
  const why = html`<p>Your password is a temporary one. Choose one of your own, which only you know.</p>`;
  const children = [
    isForced(visit) ? Notice({ children: why }) : null,
    Form({
      action: visit.href("/password/change"),
      csrf: visit.csrf,
      faults,
      carried: carried(visit),
      children: [
        // Password managers keep the new password under this name.
        html`<input class="hidden" type="text" name="username" value=${user.username} autocomplete="username"
          tabindex="-1" aria-hidden="true" readonly />`,
        isForced(visit)
          ? null
          : Field({
              name: "current",
              label: "Current password",
              type: "password",
              autocomplete: "current-password",
              faults,
            }),
        newPasswordFields(faults),
        html`<div class="actions">${Button({ words: "Change the password" })}${
          isForced(visit) ? null : html`<a href=${visit.href("/me")}>Cancel</a>`
        }</div>`,
      ],
    }),
  ];
  return { title: TITLE, isNarrow: true, children, ...statusOf(faults) };
}

/** The page of an invitation, at the end of the link in its mail. */
function invitationPages(pages: Pages, context: HubContext): void {
  // Programs that examine mails open their links: only the form uses one.
  pages.get("/invitation", "visitor", "An invitation", async (visit) => {
    const shown = await invitationOfLink(context, visit.text("token"));
    return shown === null ? gonePage() : formPage(visit, shown);
  });
  pages.post("/invitation", "visitor", "Accepts an invitation", async (visit) => {
    const token = visit.text("token");
    const shown = await invitationOfLink(context, token);
    if (shown === null) return gonePage();
    const [username, firstName, lastName] = [visit.text("username"), visit.text("firstName"), visit.text("lastName")];
    const entered = { username: username.trim(), firstName: firstName.trim(), lastName: lastName.trim() };
    const faults = shown.known === null ? faultsOf(entered) : {};
    if (Object.keys(faults).length > 0) return formPage(visit, shown, faults);
    const accepted = await accept(context, {
      token,
      username: entered.username,
      firstName: entered.firstName === "" ? null : entered.firstName,
      lastName: entered.lastName === "" ? null : entered.lastName,
      address: visit.request.ip,
      signedInId: signedInId(visit),
    });
    if (accepted.kind === "sign-in") return formPage(visit, shown);
    if (accepted.kind !== "username-taken") return outcomePage(visit, accepted);
    return formPage(visit, shown, { username: "Another user has this name. Choose another one." });
  });
}

/** The user who has signed in himself. */
function signedInId({ session }: Visit): number | null {
  return session !== null && session.missing === null && session.impersonator === null ? session.user.id : null;
}

type Shown = NonNullable<Awaited<ReturnType<typeof invitationOfLink>>>;

function faultsOf(entered: Readonly<Record<"username" | "firstName" | "lastName", string>>): Faults {
  const tooLong = Object.entries(entered).filter(([, text]) => text.length > NAME_CHARACTERS_MAX);
  const fault = userNameFault(entered.username);
  return {
    ...(fault === null ? {} : { username: `This name ${fault}.` }),
    ...(entered.username === "" ? { username: "Write a user name." } : {}),
    ...(/\p{Cc}/u.test(Object.values(entered).join("")) ? { "": "A name holds a control character." } : {}),
    ...Object.fromEntries(tooLong.map(([name]) => [name, `At most ${NAME_CHARACTERS_MAX} characters.`])),
  };
}

function formPage(visit: Visit, shown: Shown, faults: Faults = {}): Page {
  const { invitation, account, known, getsPassword } = shown;
  const isSent = visit.request.method === "POST";
  const nameIn = (name: "firstName" | "lastName") => (isSent ? visit.text(name) : (invitation[name] ?? ""));
  const username = isSent ? visit.text("username") : invitation.email;
  const facts = [
    ["Account", account],
    ["Invited by", invitation.inviterName],
    ["E-mail", invitation.email],
    [invitation.roles.length === 1 ? "Role" : "Roles", invitation.roles.join(", ")],
    ["Valid until", Moment({ ms: invitation.expiresMs })],
  ] as const;
  const nameHint = "You sign in with it. Your e-mail address will do.";
  const fields = [
    Field({ name: "username", label: "User name", hint: nameHint, value: username, autocomplete: "username", faults }),
    Field({
      ...{ name: "firstName", label: "First name", value: nameIn("firstName") },
      ...{ autocomplete: "given-name", required: false, faults },
    }),
    Field({
      ...{ name: "lastName", label: "Last name", value: nameIn("lastName") },
      ...{ autocomplete: "family-name", required: false, faults },
    }),
  ];
  const joining = html`<p>You are the user <strong>${known?.username}</strong> of this hub. If you accept, you may enter
    this account${getsPassword ? " with a new password" : ", too, with your password as before"}.</p>`;
  const second = html`<p class="hint">A temporary password then comes by a second mail to ${invitation.email}.</p>`;
  const form = Form({
    action: visit.href("/invitation"),
    csrf: visit.csrf,
    faults,
    carried: { token: visit.text("token") },
    children: [
      known === null ? fields : joining,
      getsPassword ? second : null,
      html`<div class="actions">${Button({ words: "Accept" })}</div>`,
    ],
  });
  const mustSignIn = known !== null && known.state !== "Inactive" && signedInId(visit) !== known.id;
  const children = [Facts({ facts }), mustSignIn ? signInFirst(visit, known.username) : form];
  return { title: `Invitation to ${account}`, isNarrow: true, children, ...statusOf(faults) };
}

function signInFirst(visit: Visit, username: string): Content {
  const own = `/invitation?token=${encodeURIComponent(visit.text("token"))}`;
  const isOther = visit.session?.missing === null;
  const path = isOther ? "/sign-out" : `/sign-in?next=${encodeURIComponent(own)}`;
  const words = isOther
    ? html`<p>This address belongs to the user <strong>${username}</strong>. You have signed in as
        <strong> ${visit.session?.user.username}</strong>: sign out, and open the link of the mail again.</p>`
    : html`<p>This address belongs to the user <strong>${username}</strong> of this hub. Sign in first, then accept. If
        you do not know that user, do not accept, and ask the one who invited you.</p>`;
  const button = html`<a class="button" href=${visit.href(path)}>${isOther ? "Sign out" : "Sign in"}</a>`;
  return [words, html`<div class="actions">${button}</div>`];
}

function outcomePage(visit: Visit, accepted: Exclude<Accepted, { kind: "username-taken" | "sign-in" }>): Page {
  const signIn = html`<div class="actions"><a class="button" href=${visit.href("/sign-in")}>Sign in</a></div>`;
  switch (accepted.kind) {
    case "created": {
      const words = html`<p>A temporary password is on its way to <strong>${accepted.email}</strong>. Sign in with it as
        <strong> ${accepted.username}</strong>; then you choose a password of your own.</p>`;
      const title = "You have accepted the invitation";
      return { title, isNarrow: true, children: [Notice({ kind: "success", children: words }), signIn] };
    }
    case "joined": {
      const words = html`<p>You may now enter the account <strong>${accepted.account}</strong>. Sign in as
        <strong> ${accepted.username}</strong>, with your password as before.</p>`;
      const title = "You have accepted the invitation";
      return { title, isNarrow: true, children: [Notice({ kind: "success", children: words }), signIn] };
    }
    case "void": {
      const words = `The one who invited you may no longer do that for ${accepted.account}. Ask there for another one.`;
      return refusalPage("This invitation no longer holds", words);
    }
    case "full": {
      const words = `${accepted.account} has as many users as it may have. Ask there to remove one, and try again.`;
      return refusalPage("The account is full", words);
    }
    case "inactive":
      return refusalPage("Your user is deactivated", INACTIVE);
    case "gone":
      return gonePage();
  }
}

function gonePage(): Page {
  const words =
    "It was used already, has expired, was withdrawn, or was replaced by a newer one. If you have accepted it, sign " +
    "in: a new user's temporary password came by a second mail. Otherwise ask the one who invited you to send it " +
    "again.";
  return refusalPage("This invitation cannot be used", words);
}

function refusalPage(title: string, words: string): Page {
  return { title, status: 410, isNarrow: true, children: Notice({ kind: "warning", children: html`<p>${words}</p>` }) };
}

/** One user of the account, for its managers: roles, a new password, deactivation, and acting as the user. */
function personPages(pages: Pages, context: HubContext): void {
  pages.get("/people/:id", "peoplePage", "One user of the account", (visit) => personPage(context, visit));
  const change = (name: string, summary: string, work: (visit: MemberVisit) => Promise<Answer>) =>
    pages.post(`/people/:id/${name}`, "peoplePage", summary, async (visit) => {
      try {
        return await work(visit);
      } catch (thrown) {
        return personPage(context, visit, faultsIn(thrown));
      }
    });
  const back = (visit: MemberVisit, done: keyof typeof DONE) => ({ leadTo: `/people/${idOf(visit)}?done=${done}` });
  change("roles", "Changes the roles of a user", async (visit) => {
    const roles = parsed(rolesBody, [...visit.texts("roles")]);
    // An Admin of the account stays one: the page does not give that role, and does not take it.
    const { user, accountId } = { user: await memberOf(context, visit), accountId: visit.session.accountId };
    const kept = user.memberships.find((one) => one.accountId === accountId)?.roles.includes("Admin") ? ["Admin"] : [];
    const wanted = parsed(rolesBody, [...roles, ...kept]);
    await changeMember(context, visit.request, user.id, (held) => giveRoles(held, wanted));
    return back(visit, "roles");
  });
  change("deactivate", "Deactivates a user", async (visit) => {
    await deactivateMember(context, visit.request, idOf(visit));
    return back(visit, "deactivated");
  });
  change("activate", "Activates a user", async (visit) => {
    await activateMember(context, visit.request, idOf(visit));
    return back(visit, "activated");
  });
  change("remove", "Removes a user from the account", async (visit) => {
    await removeMember(context, visit.request, idOf(visit));
    return { leadTo: "/people?done=removed" };
  });
  change("password-link", "Makes a link to a new password", async (visit) => {
    const { link, expiresMs } = await makePasswordLink(context, actingOf(visit.request), idOf(visit));
    const user = await memberOf(context, visit);
    return linkPage(visit, user, link, expiresMs);
  });
  change("act-as", "Acts as a user", async (visit) => {
    const user = await memberOf(context, visit);
    const why = impersonationFault(visit, user);
    if (why !== null) throw new HttpProblem(403, "missing-right", why);
    await context.sessions.impersonate(visit.request, visit.reply, user, visit.session.accountId);
    return { leadTo: "/me" };
  });
}

/** Why the visitor may not act as this user; null when he may. */
function impersonationFault({ session }: MemberVisit, user: UserRecord): string | null {
  if (session.impersonator !== null) return "you act as another user already: sign out first";
  if (user.id === session.user.id) return "you cannot act as yourself";
  if (user.state === "Inactive") return `the user ${user.username} is deactivated`;
  if (isAdmin(user)) return "no user acts as an Admin";
  return mayManage(session.user, session.accountId, user)
    ? null
    : `the user ${user.username} has a higher role than you`;
}

async function memberOf({ store }: HubContext, visit: MemberVisit): Promise<UserRecord> {
  const id = idOf(visit);
  const { rows } = await store.people.members(visit.session.accountId, { ids: [id] }, ONE);
  if (rows[0] === undefined) throw notFound("user", String(id));
  return rows[0];
}

async function personPage(context: HubContext, visit: MemberVisit, faults: Faults = {}): Promise<Page> {
  const user = await memberOf(context, visit);
  const { user: own, accountId } = visit.session;
  const facts = [
    ["Name", nameOf(user) || "not given"],
    ["E-mail", user.email ?? "not given"],
    ["Roles", rolesIn(user, accountId).join(", ") || "none"],
    ["State", stateOf(user)],
    ...(user.temporaryUntilMs === null ? [] : [["Temporary password until", Moment({ ms: user.temporaryUntilMs })]]),
    ["Second factor", user.totp === null || user.totp.confirmedMs === null ? "no" : "yes"],
  ] as const;
  const isManaged = mayManage(own, accountId, user);
  const children = [
    html`<p><a href=${visit.href("/people")}>All people</a></p>`,
    visit.done(DONE),
    faults[""] === undefined ? null : Notice({ kind: "danger", children: html`<p>${faults[""]}</p>` }),
    Facts({ facts: facts as Parameters<typeof Facts>[0]["facts"] }),
    isManaged ? rolesCard(visit, user, faults) : null,
    isManaged ? accessCard(visit, user) : html`<p>This user has a higher role than you: you cannot change it.</p>`,
  ];
  return { title: user.username, children, ...statusOf(faults) };
}

function rolesCard(visit: MemberVisit, user: UserRecord, { "": _, ...faults }: Faults): Element {
  const form = Form({
    action: visit.href(`/people/${user.id}/roles`),
    csrf: visit.csrf,
    faults,
    children: [
      RoleChecks({ visit, values: rolesIn(user, visit.session.accountId), faults }),
      html`<div class="actions">${Button({ words: "Change the roles" })}</div>`,
    ],
  });
  return Card({ id: "roles-of-user", title: "Roles", children: form });
}

interface Deed {
  readonly name: string;
  readonly words: string;
  readonly about: string;
  readonly kind?: "plain" | "danger";
}

function accessCard(visit: MemberVisit, user: UserRecord): Element {
  const { user: own, accountId } = visit.session;
  const isPersons = mayManagePerson(own, accountId, user);
  const isOwn = own.id === user.id;
  const deeds: readonly Deed[] = [
    ...(impersonationFault(visit, user) === null ? [ACT_AS] : []),
    ...(isPersons && user.state !== "Inactive" && user.passwordHash !== null && !isOwn ? [PASSWORD_LINK] : []),
    ...(isPersons && user.state === "Inactive" ? [ACTIVATE] : []),
    ...(isPersons && user.state !== "Inactive" && !isOwn ? [DEACTIVATE] : []),
    ...(isOwn ? [] : [REMOVE]),
  ];
  const shared = "This user belongs to other accounts, too: a new password and deactivation are up to the user.";
  const items = deeds.map(
    ({ name, words, about, kind = "plain" }) =>
      html`<div class="deed"><p>${about}</p>${Form({
        action: visit.href(`/people/${user.id}/${name}`),
        csrf: visit.csrf,
        children: Button({ words, kind, small: true }),
      })}</div>`,
  );
  const children = [isPersons ? null : html`<p class="muted">${shared}</p>`, items];
  const none = html`<p class="muted">This is you. Password and second factor are under My account.</p>`;
  return Card({ id: "access", title: "Access", children: deeds.length === 0 ? none : children });
}

function linkPage(visit: MemberVisit, user: UserRecord, link: string, expiresMs: number): Page {
  const children = [
    html`<p>Pass this link on to ${nameOf(user) || user.username}, on a way that no other person reads. It works once,
      until ${Moment({ ms: expiresMs })}, and is shown only now.</p>`,
    html`<code class="secret">${link}</code>`,
    html`<div class="actions"><a class="button plain" href=${visit.href(`/people/${user.id}`)}>Back</a></div>`,
  ];
  return { title: `A new password for ${user.username}`, children };
}
