/** The people of an account, for its managers: users, invitations, and who is invited next. */

import {
  Button,
  Card,
  Checks,
  type Content,
  type Element,
  type Faults,
  Field,
  Form,
  html,
  Moment,
  Table,
} from "#pages/kit/index.ts";
import { HttpProblem } from "#wire/http-problem.ts";
import { ACCOUNT_ROLES, invitationBody } from "#wire/index.ts";
import type { HubContext } from "../context.ts";
import { parsed } from "../http/problems.ts";
import { actingOf } from "../invitations/actor.ts";
import { invite, sendAgain, withdraw } from "../invitations/invite.ts";
import { NO_MAIL } from "../mail/mail.ts";
import type { InvitationRecord } from "../store/mail/invitations.ts";
import type { UserRecord } from "../store/people/records.ts";
import { pathId } from "../structure/pages.ts";
import { mayGive, rolesIn } from "../token/rights.ts";
import type { Page } from "./frame.ts";
import type { MemberVisit, Pages } from "./page.ts";
import { statusOf } from "./sign-in.ts";

const ITEMS_PER_PAGE = 50;
const INVITATIONS_SHOWN = 100;
const DONE = {
  invited: "The invitation is on its way.",
  sent: "The mail is on its way again, with a new link. The link before no longer works.",
  withdrawn: "The invitation is withdrawn. Its link no longer works.",
  removed: "The user no longer belongs to this account.",
};
const ROLE_HINTS: Readonly<Record<string, string>> = {
  User: "reads",
  Datapusher: "reads and pushes data",
  Manager: "does everything in this account, people included",
};

export function peoplePages(pages: Pages, context: HubContext): void {
  pages.get("/people", "peoplePage", "People of the account", (visit) => listPage(context, visit));
  pages.post("/people/invitations", "peoplePage", "Invites a person", async (visit) => {
    try {
      const sent = { email: visit.text("email").trim(), roles: [...visit.texts("roles")] };
      await invite(context, actingOf(visit.request), parsed(invitationBody, sent));
    } catch (thrown) {
      return listPage(context, visit, faultsIn(thrown));
    }
    return { leadTo: "/people?done=invited" };
  });
  pages.post("/people/invitations/:id/send", "peoplePage", "Sends an invitation again", async (visit) => {
    try {
      await sendAgain(context, actingOf(visit.request), idOf(visit));
    } catch (thrown) {
      return listPage(context, visit, faultsIn(thrown));
    }
    return { leadTo: "/people?done=sent" };
  });
  pages.post("/people/invitations/:id/withdraw", "peoplePage", "Withdraws an invitation", async (visit) => {
    await withdraw(context, actingOf(visit.request), idOf(visit));
    return { leadTo: "/people?done=withdrawn" };
  });
}

export function idOf({ request }: MemberVisit): number {
  return pathId((request.params as { readonly id: string }).id);
}

/** For a form: the faults that a problem names, or the problem itself. Throws anything else. */
export function faultsIn(thrown: unknown): Faults {
  if (!(thrown instanceof HttpProblem)) throw thrown;
  const { errors, message } = thrown;
  if (errors === undefined) return { "": `${message[0]?.toUpperCase()}${message.slice(1)}.` };
  return Object.fromEntries(errors.map((error) => [error.path.split(".")[0] ?? "", `This ${error.message}.`]));
}

async function listPage(context: HubContext, visit: MemberVisit, faults: Faults = {}): Promise<Page> {
  const { accountId } = visit.session;
  const { store, clock } = context;
  const number = Math.max(1, Math.trunc(Number(visit.text("page"))) || 1);
  const users = await store.people.members(
    accountId,
    {},
    { offset: (number - 1) * ITEMS_PER_PAGE, limit: ITEMS_PER_PAGE },
  );
  const nowMs = clock.now().epochMilliseconds;
  const shown = { offset: 0, limit: INVITATIONS_SHOWN };
  const [open, expired] = await Promise.all([
    store.invitations.list(accountId, { state: "Open" }, nowMs, shown),
    store.invitations.list(accountId, { state: "Expired" }, nowMs, shown),
  ]);
  const inviting = context.mail.isSetUp
    ? inviteCard(visit, faults)
    : Card({ id: "invite", title: "Invite a person", children: html`<p>${NO_MAIL}</p>` });
  const lists = [
    usersCard(visit, users.rows, users.total, number),
    invitationsCard(visit, [...open.rows, ...expired.rows]),
  ];
  // A form with faults stands where the visitor sees it.
  const isRefused = Object.keys(faults).length > 0;
  const children = [visit.done(DONE), isRefused ? inviting : null, lists, isRefused ? null : inviting];
  return { title: "People", children, ...statusOf(faults) };
}

function usersCard(visit: MemberVisit, users: readonly UserRecord[], total: number, number: number): Element {
  const { accountId, user: own } = visit.session;
  const rows = users.map((user) => [
    html`<a href=${visit.href(`/people/${user.id}`)}>${user.username}</a>${user.id === own.id ? " (you)" : null}`,
    nameOf(user) || "–",
    user.email ?? "–",
    rolesIn(user, accountId).join(", ") || "none",
    stateOf(user),
  ]);
  const pages = Math.ceil(total / ITEMS_PER_PAGE);
  const link = (to: number, words: string) =>
    to < 1 || to > pages ? null : html`<a href=${visit.href(`/people?page=${to}`)}>${words}</a>`;
  const paging =
    pages < 2
      ? null
      : html`<p class="actions">${link(number - 1, "Previous")} Page ${number} of ${pages}
    ${link(number + 1, "Next")}</p>`;
  const columns = ["User name", "Name", "E-mail", "Roles", "State"];
  const caption = total === 1 ? "One user may enter this account." : `${total} users may enter this account.`;
  const table = Table({ caption, columns, rows, empty: "There are no users on this page." });
  return Card({ id: "users", title: "Users", children: [table, paging] });
}

/** Names of a person; empty where none were given. */
export function nameOf({ firstName, lastName }: UserRecord): string {
  return [firstName, lastName].filter((name) => name !== null).join(" ");
}

export function stateOf({ state }: UserRecord): string {
  if (state === "Invited") return "Invited, has not signed in yet";
  return state === "Inactive" ? "Deactivated" : "Active";
}

function invitationsCard(visit: MemberVisit, invitations: readonly InvitationRecord[]): Element {
  const button = (id: number, action: string, words: string, about: string) =>
    Form({
      action: visit.href(`/people/invitations/${id}/${action}`),
      csrf: visit.csrf,
      children: Button({ words, kind: action === "withdraw" ? "danger" : "plain", small: true, about }),
    });
  const rows = invitations.map((one) => [
    one.email,
    one.roles.join(", "),
    one.inviterName,
    mailWords(one),
    html`${one.state === "Expired" ? "Expired " : null}${Moment({ ms: one.expiresMs })}`,
    html`<div class="buttons">${button(one.id, "send", "Send again", `to ${one.email}`)}
      ${button(one.id, "withdraw", "Withdraw", `the invitation of ${one.email}`)}</div>`,
  ]);
  const columns = ["E-mail", "Roles", "Invited by", "Mail", "Valid until", ""];
  const caption = "Invitations that were not accepted yet.";
  const table = Table({ caption, columns, rows, empty: "No invitation is open." });
  return Card({ id: "invitations", title: "Invitations", children: table });
}

function mailWords({ mail, sentMs }: InvitationRecord): Content {
  if (mail === null || mail.state === "sent") return html`Sent ${Moment({ ms: sentMs })}`;
  const why = mail.failure === null ? "" : ` (${mail.failure})`;
  return mail.state === "failed" ? `Could not be sent${why}` : `Is being sent${why}`;
}

function inviteCard(visit: MemberVisit, faults: Faults): Element {
  const isSent = visit.request.method === "POST" && visit.text("email") !== "";
  const form = Form({
    action: visit.href("/people/invitations"),
    csrf: visit.csrf,
    faults,
    children: [
      Field({
        ...{ name: "email", label: "E-mail address", type: "email", inputmode: "email", faults },
        value: visit.text("email"),
      }),
      RoleChecks({ visit, values: isSent ? visit.texts("roles") : ["User"], faults }),
      html`<div class="actions">${Button({ words: "Send the invitation" })}</div>`,
    ],
  });
  const words = html`<p>The person gets a mail with a link. Who accepts there chooses a user name, and gets a second
    mail with a temporary password; the first sign-in asks for a password of one's own. A person who is a user of this
    hub already signs in instead, with user name and password as before.</p>`;
  return Card({ id: "invite", title: "Invite a person", children: [words, form] });
}

interface RoleChecksProps {
  readonly visit: MemberVisit;
  readonly values: readonly string[];
  readonly faults: Faults;
}

/** Only roles that the visitor may give. */
export function RoleChecks({ visit, values, faults }: RoleChecksProps): Element {
  const { user, accountId } = visit.session;
  const options = ACCOUNT_ROLES.filter((role) => mayGive(user, accountId, [role])).map((role) => ({
    value: role,
    words: role,
    hint: ROLE_HINTS[role] ?? "",
  }));
  return Checks({ name: "roles", legend: "Roles in this account", options, values, faults });
}
