/** The page of an invitation, at the end of the link in its mail. */
import { Button, type Content, Facts, type Faults, Field, Form, html, Moment, Notice } from "#pages/kit/index.ts";
import { userNameFault } from "#wire/index.ts";
import type { HubContext } from "../context.ts";
import { type Accepted, accept, invitationOfLink } from "../invitations/accept.ts";
import type { Page } from "./frame.ts";
import type { Pages, Visit } from "./page.ts";
import { statusOf } from "./sign-in.ts";

const NAME_CHARACTERS_MAX = 100;
const INACTIVE =
  "A user with this e-mail address exists and is deactivated. Ask the one who invited you to activate it.";

export function invitationPages(pages: Pages, context: HubContext): void {
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
