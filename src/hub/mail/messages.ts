/** The mails of the hub, each as plain text and as simple HTML from the same parts. */
import type { MailContent } from "../store/mail/mails.ts";

type Part =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "link"; readonly words: string; readonly href: string }
  | { readonly kind: "value"; readonly label: string; readonly value: string };

interface InvitationFacts {
  readonly account: string;
  /** Name of the user who invites. */
  readonly inviter: string;
  readonly link: string;
  readonly expiresMs: number;
}

export function invitationMessage({ account, inviter, link, expiresMs }: InvitationFacts): MailContent {
  return message(`Invitation to ${account}`, [
    text(`${inviter} invites you to the account “${account}” of the measurement data service.`),
    { kind: "link", words: "See the invitation", href: link },
    text(
      "You accept it there. If you are not a user of this service yet, a second mail then brings a temporary password.",
    ),
    text(`The link works once, until ${dateOf(expiresMs)}.`),
    text("If you did not expect this mail, do nothing: without your consent no user is created."),
  ]);
}

interface TemporaryPasswordFacts {
  readonly account: string;
  readonly username: string;
  readonly password: string;
  /** Of the page to sign in. */
  readonly link: string;
  readonly expiresMs: number;
}

export function temporaryPasswordMessage(facts: TemporaryPasswordFacts): MailContent {
  const { account, username, password, link, expiresMs } = facts;
  return message(`Your temporary password for ${account}`, [
    text(`You are now a user of the account “${account}”. Sign in with:`),
    { kind: "value", label: "User name", value: username },
    { kind: "value", label: "Temporary password", value: password },
    { kind: "link", words: "Sign in", href: link },
    text(
      `The temporary password is valid until ${dateOf(expiresMs)}. You choose one of your own at the first sign-in.`,
    ),
  ]);
}

interface ResetFacts {
  readonly username: string;
  readonly link: string;
  readonly expiresMs: number;
}

export function resetMessage({ username, link, expiresMs }: ResetFacts): MailContent {
  return message("Set a new password", [
    text(`Someone asked for a new password for the user ${username}.`),
    { kind: "link", words: "Set a new password", href: link },
    text(`The link works once, until ${dateOf(expiresMs)}.`),
    text("If it was not you, do nothing: your password stays as it is."),
  ]);
}

interface ConfirmationFacts {
  readonly username: string;
  /** Its name on the sign-in page. */
  readonly provider: string;
  readonly link: string;
  readonly expiresMs: number;
}

export function confirmationMessage({ username, provider, link, expiresMs }: ConfirmationFacts): MailContent {
  return message("Confirm your address", [
    text(`Someone signed in by “${provider}” with this address, which the user ${username} has.`),
    { kind: "link", words: "Confirm that it was you", href: link },
    text("All that was set for the user before then ends: password, sessions, tokens and second factor."),
    text(`The link works once, until ${dateOf(expiresMs)}.`),
    text("If it was not you, do nothing: nothing changes."),
  ]);
}

export function passwordChangedMessage({ username }: { readonly username: string }): MailContent {
  return message("Your password was changed", [
    text(`The password of the user ${username} was changed. All other sessions have ended.`),
    text("If it was not you, ask the manager of your account for help at once."),
  ]);
}

export function text(words: string): Part {
  return { kind: "text", text: words };
}

export function value(label: string, words: string): Part {
  return { kind: "value", label, value: words };
}

/** Names in a subject or a text come from people: on one line they can form neither a header nor a paragraph. */
function flat(words: string): string {
  return words.replace(/[\p{Cc}\p{Zl}\p{Zp}]+/gu, " ").trim();
}

/** `23 November 2026, 19:30 UTC`. */
function dateOf(ms: number): string {
  const parts = { dateStyle: "long", timeStyle: "short", timeZone: "UTC" } as const;
  return `${new Intl.DateTimeFormat("en-GB", parts).format(ms).replace(" at ", ", ")} UTC`;
}

export function message(subject: string, parts: readonly Part[]): MailContent {
  return {
    subject: flat(subject),
    text: `${parts.map(textOf).join("\n\n").replaceAll(VALUE_GAP, "\n")}\n`,
    html: PAGE.replace("BODY", () => parts.map(htmlOf).join("\n")).replace("TITLE", () => escaped(flat(subject))),
  };
}

const VALUE_GAP = /\n\n(?=(?:User name|Temporary password|Where|Value|Limit|Severity|Since|Ended): )/g;

function textOf(part: Part): string {
  if (part.kind === "link") return `${part.words}:\n${part.href}`;
  return part.kind === "value" ? `${part.label}: ${flat(part.value)}` : flat(part.text);
}

function htmlOf(part: Part): string {
  if (part.kind === "text") return `<p style="margin:0 0 16px">${escaped(flat(part.text))}</p>`;
  if (part.kind === "value") {
    const code = "font:600 18px ui-monospace,Consolas,monospace;letter-spacing:0.02em;overflow-wrap:anywhere";
    const value = `<span style="${code}">${escaped(flat(part.value))}</span>`;
    return `<p style="margin:0 0 16px">${escaped(part.label)}<br>${value}</p>`;
  }
  const button =
    "display:inline-block;padding:10px 18px;border-radius:6px;background:#0b57d0;color:#ffffff;text-decoration:none";
  return `<p style="margin:8px 0 12px"><a href="${escaped(part.href)}" style="${button}">${escaped(part.words)}</a></p>
<p style="margin:0 0 16px;font-size:13px;color:#5f6368;overflow-wrap:anywhere">${escaped(part.href)}</p>`;
}

const PAGE = `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>TITLE</title></head>
<body style="margin:0;padding:24px;background:#ffffff;color:#1f1f1f">
<div style="max-width:560px;margin:0 auto;font:16px/1.5 system-ui,-apple-system,'Segoe UI',sans-serif">
BODY
</div>
</body>
</html>
`;

const ENTITIES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

function escaped(words: string): string {
  return words.replace(/[&<>"']/g, (character) => ENTITIES[character] ?? character);
}
