/** A new password by a link in a mail. No page says whether a user exists. */
import { Button, type Faults, Field, Form, html, Notice } from "#pages/kit/index.ts";
import type { HubContext } from "../context.ts";
import { RESET_PATH, resetPassword, sendResetLink, userOfLink } from "../sessions/reset.ts";
import type { Page } from "./frame.ts";
import type { Pages, Visit } from "./page.ts";
import { newPasswordFaults, newPasswordFields } from "./password.ts";
import { statusOf, tooManyPage, waitFault } from "./sign-in.ts";

const FORGOTTEN_PATH = "/password/forgot";

export function forgottenPages(pages: Pages, context: HubContext): void {
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

const FORGOTTEN = "Forgot your password?";

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

const NO_MAIL_PAGE: Page = {
  title: FORGOTTEN,
  isNarrow: true,
  children: html`<p>This hub sends no mails. Ask a manager of your account for a new password.</p>`,
};

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
