/** One user of the account, for its managers: roles, a new password, deactivation, and acting as the user. */

import { Button, Card, type Element, Facts, type Faults, Form, html, Moment, Notice } from "#pages/kit/index.ts";
import { HttpProblem } from "#wire/http-problem.ts";
import { rolesBody } from "#wire/index.ts";
import type { HubContext } from "../context.ts";
import { parsed } from "../http/problems.ts";
import { actingOf } from "../invitations/actor.ts";
import { makePasswordLink } from "../invitations/password-link.ts";
import type { UserRecord } from "../store/store.ts";
import { notFound, ONE } from "../structure/pages.ts";
import { isAdmin, mayManage, mayManagePerson, rolesIn } from "../token/rights.ts";
import { activateMember, deactivateMember, removeMember } from "../users/departure.ts";
import { giveRoles } from "../users/edit.ts";
import { changeMember } from "../users/member-change.ts";
import type { Page } from "./frame.ts";
import type { Answer, MemberVisit, Pages } from "./page.ts";
import { faultsIn, idOf, nameOf, RoleChecks, stateOf } from "./people.ts";
import { statusOf } from "./sign-in.ts";

const DONE = {
  roles: "The roles are changed.",
  deactivated: "The user is deactivated. All sessions and tokens of the user have ended.",
  activated: "The user may sign in again.",
};

export function personPages(pages: Pages, context: HubContext): void {
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

function linkPage(visit: MemberVisit, user: UserRecord, link: string, expiresMs: number): Page {
  const children = [
    html`<p>Pass this link on to ${nameOf(user) || user.username}, on a way that no other person reads. It works once,
      until ${Moment({ ms: expiresMs })}, and is shown only now.</p>`,
    html`<code class="secret">${link}</code>`,
    html`<div class="actions"><a class="button plain" href=${visit.href(`/people/${user.id}`)}>Back</a></div>`,
  ];
  return { title: `A new password for ${user.username}`, children };
}
