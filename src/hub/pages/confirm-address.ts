/** The page at the end of the link by which a user says to be a person of a provider. */
import { Button, Form, html, Notice } from "#pages/kit/index.ts";
import type { HubContext } from "../context.ts";
import { hashOfToken } from "../mail/mail.ts";
import type { Page } from "./frame.ts";
import type { Pages, Visit } from "./page.ts";

export const CONFIRM_PATH = "/sign-in/confirm";

export function confirmAddressPages(pages: Pages, { store, clock }: HubContext): void {
  const nowMs = () => clock.now().epochMilliseconds;
  // Programs that examine mails open their links: only the form uses one.
  pages.get(CONFIRM_PATH, "visitor", "Asks for the confirmation of an address", async (visit) => {
    const user = await store.externalIdentities.toConfirm(hashOfToken(visit.text("token")), nowMs());
    return user === null ? GONE : askPage(visit, user.username);
  });
  pages.post(CONFIRM_PATH, "visitor", "Confirms an address", async (visit) => {
    const actor = { id: null, name: "the reader of the mail", impersonator: null, address: visit.request.ip };
    const hash = hashOfToken(visit.text("token"));
    const user = await store.externalIdentities.confirm(hash, { atMs: nowMs(), actor });
    return user === null ? GONE : donePage(visit, user.username);
  });
}

function askPage(visit: Visit, username: string): Page {
  const children = [
    html`<p>If it was you who signed in with your address, confirm it: you are the user
      <strong> ${username}</strong> from then on. Password, sessions, tokens and second factor that were set before
      end.</p>`,
    Form({
      action: visit.href(CONFIRM_PATH),
      csrf: visit.csrf,
      carried: { token: visit.text("token") },
      children: html`<div class="actions">${Button({ words: "It was me" })}</div>`,
    }),
  ];
  return { title: "Confirm your address", isNarrow: true, children };
}

function donePage(visit: Visit, username: string): Page {
  const words = html`<p>You are the user <strong>${username}</strong>. Sign in again as you did before.</p>`;
  const children = [
    Notice({ kind: "success", children: words }),
    html`<p><a class="button" href=${visit.href("/sign-in")}>Sign in</a></p>`,
  ];
  return { title: "Your address is confirmed", isNarrow: true, children };
}

const GONE: Page = {
  title: "This link no longer works",
  isNarrow: true,
  status: 410,
  children: html`<p>It was used already, has lapsed, or a later one was sent. Sign in again for another one.</p>`,
};
