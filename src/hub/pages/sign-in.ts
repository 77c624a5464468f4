/** Sign-in by name and password, then by a code where the user has a second factor, and sign-out. */
import { Button, type Faults, Field, Form, html } from "#pages/kit/index.ts";
import type { HubContext } from "../context.ts";
import { checkCode } from "../sessions/second-factor.ts";
import { nextPath } from "../sessions/sessions.ts";
import type { UserRecord } from "../store/people/records.ts";
import { attemptOf } from "../token/guard.ts";
import type { Page } from "./frame.ts";
import { SignOnLinks } from "./oidc.ts";
import type { MemberVisit, Pages, Visit } from "./page.ts";

const DONE = {
  "signed-out": "You have signed out.",
  ended: "Your session has ended. Sign in again; the form that you sent was not taken.",
  password: "Your password is changed. Sign in with the new one.",
};

/** Says the same of a wrong password, an unknown name and a user who was deactivated. */
const WRONG = "No user has this name and this password.";
const LAPSED = "This temporary password has lapsed. Ask for a new one, or choose one with “Forgot your password?”.";

export function signInPages(pages: Pages, context: HubContext): void {
  const { sessions } = context;
  pages.get("/sign-in", "visitor", "Sign-in", async (visit) => {
    if (visit.session?.missing === null) return { leadTo: visit.next() ?? "/me" };
    return signInPage(context, visit);
  });
  pages.post("/sign-in", "visitor", "Takes name and password", async (visit) => {
    const [username, password] = [visit.text("username").trim(), visit.text("password")];
    if (username === "") return signInPage(context, visit, { username: "Write your user name." });
    if (password === "") return signInPage(context, visit, { password: "Write your password." });
    const { user, hasLapsed } = await entrantOf(context, username);
    const attempt = attemptOf(username, visit.request.ip);
    const verdict = await context.passwords.check(attempt, password, user?.passwordHash ?? null);
    if (verdict.kind === "later")
      return tooManyPage(signInPage(context, visit, waitFault(verdict.seconds)), verdict.seconds);
    if (verdict.kind === "wrong" || user === null) return signInPage(context, visit, { "": WRONG });
    if (hasLapsed) return signInPage(context, visit, { "": LAPSED });
    const wait = context.rates.issuing(JSON.stringify(["/sign-in", user.username]));
    if (wait > 0) return tooManyPage(signInPage(context, visit, waitFault(wait)), wait);
    const session = await sessions.open(visit.request, visit.reply, { user, secondFactor: false });
    if (session === null)
      return signInPage(context, visit, { "": "You belong to no account. Ask the one who invited you." });
    return { leadTo: nextPath(session.missing, visit.next()) };
  });
  pages.get("/sign-out", "visitor", "Sign-out", async (visit) => {
    if (visit.session === null) return { leadTo: "/sign-in" };
    const { csrf } = visit;
    const button = Button({ words: "Sign out" });
    return {
      title: "Sign out",
      isNarrow: true,
      children: Form({ action: visit.href("/sign-out"), csrf, children: button }),
    };
  });
  pages.post("/sign-out", "visitor", "Ends the session", async ({ request, reply }) => {
    await sessions.end(request, reply);
    return { leadTo: "/sign-in?done=signed-out" };
  });
  pages.get("/sign-in/code", "entering", "Asks for the second factor", async (visit) =>
    visit.session.missing === "code" ? codePage(visit) : { leadTo: nextPath(visit.session.missing, visit.next()) },
  );
  pages.post("/sign-in/code", "entering", "Takes the second factor", async (visit) => {
    const { user, missing } = visit.session;
    if (missing !== "code") return { leadTo: nextPath(missing, visit.next()) };
    const code = visit.text("code").trim();
    if (code === "") return codePage(visit, { code: "Write the code." });
    const verdict = await checkCode(context, user, code);
    if (verdict.kind === "later") return tooManyPage(codePage(visit, waitFault(verdict.seconds)), verdict.seconds);
    if (verdict.kind === "wrong") return codePage(visit, { code: "This code is wrong, too old, or was used already." });
    await sessions.renew(visit.request, visit.reply, { secondFactor: true });
    return { leadTo: nextPath(user.mustChangePassword ? "password" : null, visit.next()) };
  });
}

/** By the user name, or else by the address of e-mail. */
async function entrantOf({ store, clock }: HubContext, name: string): Promise<Entrant> {
  const named = await store.people.entrantByName(name);
  const found = named ?? (name.includes("@") ? await store.people.userByEmail(name) : null);
  const user = found?.state === "Inactive" ? null : found;
  const until = user?.temporaryUntilMs ?? null;
  return { user, hasLapsed: until !== null && until <= clock.now().epochMilliseconds };
}

interface Entrant {
  readonly user: UserRecord | null;
  /** The password was a temporary one, and its time is over. */
  readonly hasLapsed: boolean;
}

function signInPage(context: HubContext, visit: Visit, faults: Faults = {}): Page {
  const children = [
    visit.done(DONE),
    Form({
      action: visit.href("/sign-in"),
      csrf: visit.csrf,
      faults,
      carried: carried(visit),
      children: [
        Field({
          name: "username",
          label: "User name or e-mail",
          value: visit.text("username"),
          autocomplete: "username",
          focused: true,
          faults,
        }),
        Field({ name: "password", label: "Password", type: "password", autocomplete: "current-password", faults }),
        html`<div class="actions">${Button({ words: "Sign in" })}<a href=${visit.href("/password/forgot")}
          >Forgot your password?</a></div>`,
      ],
    }),
    SignOnLinks(context, visit.next()),
  ];
  return { title: "Sign in", isNarrow: true, children, ...statusOf(faults) };
}

function codePage(visit: MemberVisit, faults: Faults = {}): Page {
  const hint = "Six digits of your authenticator app. If you have lost it: one of your recovery codes.";
  const children = [
    Form({
      action: visit.href("/sign-in/code"),
      csrf: visit.csrf,
      faults,
      carried: carried(visit),
      children: [
        Field({ name: "code", label: "Code", hint, autocomplete: "one-time-code", focused: true, faults }),
        html`<div class="actions">${Button({ words: "Continue" })}</div>`,
      ],
    }),
  ];
  return { title: "Second factor", isNarrow: true, children, ...statusOf(faults) };
}

export function carried(visit: Visit): Readonly<Record<string, string>> {
  const next = visit.next();
  return next === null ? {} : { next };
}

/** A form that was not taken: 422. */
export function statusOf(faults: Faults): { readonly status?: number } {
  return Object.keys(faults).length === 0 ? {} : { status: 422 };
}

export function waitFault(seconds: number): Faults {
  const wait = seconds < 90 ? `${seconds} seconds` : `${Math.ceil(seconds / 60)} minutes`;
  return { "": `Too many attempts. Try again in ${wait}.` };
}

export function tooManyPage(page: Page, retryAfterSec: number): Page {
  return { ...page, status: 429, retryAfterSec };
}
