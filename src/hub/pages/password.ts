/** The change of one's own password, also the one that a temporary password asks for. */
import { Button, type Faults, Field, Form, html, Notice } from "#pages/kit/index.ts";
import type { HubContext } from "../context.ts";
import { changeOwnPassword, passwordFault } from "../sessions/own-password.ts";
import { nextPath } from "../sessions/page-access.ts";
import { attemptOf } from "../token/password-sign-in.ts";
import type { Page } from "./frame.ts";
import { notAsAnother } from "./own.ts";
import type { MemberVisit, Pages } from "./page.ts";
import { carried, statusOf, tooManyPage, waitFault } from "./sign-in.ts";

const TITLE = "Change your password";
const HINT = "8 characters at least. A few words in a row are easy to keep in mind and hard to guess.";

export function passwordPages(pages: Pages, context: HubContext): void {
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
export function newPasswordFaults(visit: Pick<MemberVisit, "text">, user: Parameters<typeof passwordFault>[1]): Faults {
  const password = visit.text("password");
  const fault = passwordFault(password, user);
  if (fault !== null) return { password: fault };
  return password === visit.text("again") ? {} : { again: "This is not the password that you wrote above." };
}

export function newPasswordFields(faults: Faults) {
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
