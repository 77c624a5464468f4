/** One's own second factor: set up, recovery codes, removal. */
import { encode } from "uqr";
import { Button, Card, type Content, type Faults, Field, Form, html, Notice, QrCode } from "#pages/kit/index.ts";
import type { HubContext } from "../context.ts";
import {
  addSecondFactor,
  checkCode,
  dropSecondFactor,
  offeredSecret,
  renewRecoveryCodes,
  totpUri,
} from "../sessions/second-factor.ts";
import { countRecoveryCodes } from "../store/sessions/second-factors.ts";
import { type Answer, type MemberVisit, notAsAnother, ownPage, type Pages } from "./page.ts";
import { statusOf, tooManyPage, waitFault } from "./sign-in.ts";

const TITLE = "Second factor";
const PATH = "/me/second-factor";
const SET_UP_PATH = "/me/second-factor/set-up";
const WRONG = "This code is wrong, too old, or was used already.";

export function secondFactorPages(pages: Pages, context: HubContext): void {
  pages.get(PATH, "member", "One's own second factor", async (visit) => {
    return notAsAnother(visit, TITLE) ?? statePage(context, visit);
  });
  pages.get(SET_UP_PATH, "member", "Offers a second factor", async (visit) => {
    return notAsAnother(visit, TITLE) ?? setUpPage(context, visit);
  });
  pages.post(SET_UP_PATH, "member", "Sets up a second factor", async (visit) => {
    const refused = notAsAnother(visit, TITLE);
    if (refused !== null) return refused;
    const codes = await addSecondFactor(context, visit.session, visit.request, visit.text("code"));
    if (codes === null) return setUpPage(context, visit, { code: `${WRONG} Is the clock of your device right?` });
    await context.sessions.renew(visit.request, visit.reply, { secondFactor: true });
    return codesPage(visit, codes, "Your second factor is set up.");
  });
  pages.post(PATH, "member", "Renews the recovery codes, or removes the second factor", async (visit) => {
    const refused = notAsAnother(visit, TITLE);
    if (refused !== null) return refused;
    const { session } = visit;
    const verdict = await checkCode(context, session.user, visit.text("code"));
    if (verdict.kind === "later")
      return tooManyPage(await statePage(context, visit, waitFault(verdict.seconds)), verdict.seconds);
    if (verdict.kind === "wrong") return statePage(context, visit, { code: WRONG });
    if (visit.text("do") === "codes")
      return codesPage(visit, await renewRecoveryCodes(context, session), "The former recovery codes have ended.");
    await dropSecondFactor(context, session, visit.request);
    return { leadTo: `${PATH}?done=removed` };
  });
}

async function statePage(context: HubContext, visit: MemberVisit, faults: Faults = {}) {
  const { user } = visit.session;
  if (user.totp === null || user.totp.confirmedMs === null) {
    const children = [
      visit.done({ removed: "The second factor is removed." }),
      html`<p>With a second factor, a password alone is not enough to sign in: you also write a code that an app on
        your phone shows, and that changes all the time.</p>
        <p>Programs cannot write such a code. They then sign in with
          a <a href=${visit.href("/me/tokens")}>personal token</a> instead of your password.</p>
        <p><a class="button" href=${visit.href(SET_UP_PATH)}>Set up a second factor</a></p>`,
    ];
    return ownPage(visit, TITLE, children);
  }
  const left = await context.store.people.change(() => countRecoveryCodes(user.id));
  const children = [
    Notice({ kind: "success", children: html`<p>You sign in with your password and a code.</p>` }),
    left < 4
      ? Notice({ kind: "warning", children: html`<p>Only ${left} recovery codes are left. Make new ones.</p>` })
      : null,
    Card({
      id: "changes",
      title: "New recovery codes, or the end of the second factor",
      children: Form({
        action: visit.href(PATH),
        csrf: visit.csrf,
        faults,
        children: [
          Field({
            name: "code",
            label: "Code",
            hint: `Of your app, or a recovery code (${left} are left).`,
            autocomplete: "one-time-code",
            faults,
          }),
          html`<div class="actions"><button type="submit" name="do" value="codes">Make new recovery codes</button>
            <button type="submit" class="danger" name="do" value="remove">Remove the second factor</button></div>`,
        ],
      }),
    }),
  ];
  return { ...ownPage(visit, TITLE, children), ...statusOf(faults) };
}

async function setUpPage(context: HubContext, visit: MemberVisit, faults: Faults = {}): Promise<Answer> {
  const { user } = visit.session;
  const secret = await offeredSecret(context, user);
  if (secret === null) return { leadTo: PATH };
  const { data } = encode(totpUri(secret, user.username), { border: 0 });
  const steps: Content = html`<p>Scan this with an authenticator app (Aegis, FreeOTP, 1Password, Google Authenticator
      and so on).</p>
    ${QrCode({ squares: data, label: "QR code for your authenticator app; the key below says the same" })}
    <p>Or write this key into the app (by time, six digits):</p>
    <code class="secret">${secret.replace(/(.{4})(?=.)/g, "$1 ")}</code>`;
  const children = [
    steps,
    Form({
      action: visit.href(SET_UP_PATH),
      csrf: visit.csrf,
      faults,
      children: [
        Field({
          name: "code",
          label: "Code",
          hint: "The six digits that the app shows now.",
          autocomplete: "one-time-code",
          inputmode: "numeric",
          faults,
        }),
        html`<div class="actions">${Button({ words: "Confirm" })}<a href=${visit.href(PATH)}>Cancel</a></div>`,
      ],
    }),
  ];
  return { ...ownPage(visit, "Set up a second factor", children), ...statusOf(faults) };
}

function codesPage(visit: MemberVisit, codes: readonly string[], words: string): Answer {
  const children = [
    Notice({ kind: "success", children: html`<p>${words}</p>` }),
    html`<p>Keep these recovery codes where you find them without your phone: printed, or in a password manager. Each
      signs you in once. <strong>They are not shown again.</strong></p>
      <ul class="codes">${codes.map((code) => html`<li><code>${code}</code></li>`)}</ul>
      <p><a class="button" href=${visit.href(PATH)}>I have kept them</a></p>`,
  ];
  return ownPage(visit, "Recovery codes", children);
}
