/** Sign-in by name and password; the pages work without a script. */
import type { FastifyInstance } from "fastify";
import type { Logger } from "#core/log.ts";
import { localPath } from "#core/pages/browser.ts";
import type { Passwords } from "#core/sign-in/passwords.ts";
import { Button, type Content, type Faults, Field, Form, html } from "#pages/kit/index.ts";
import type { Console } from "./console.ts";
import { nameKey } from "./options.ts";
import { SignOnLinks } from "./sign-on.ts";
import {
  isFromElsewhere,
  isOwnForm,
  OPEN,
  type PageParts,
  SIGN_IN,
  sendOldForm,
  sendPassage,
  type Visit,
  visitOf,
} from "./visit.ts";

/** Says the same of a wrong password and an unknown name. */
const WRONG = "No user has this name and this password.";
/** Characters of a field; longer values are cut. */
const FIELD_CHARACTERS_MAX = 1_000;

export function addSignIn(app: FastifyInstance, parts: PageParts): void {
  const { people, log } = parts;
  app.get(SIGN_IN, OPEN, (request, reply) => {
    const visit = visitOf(parts, request, reply);
    if (isFromElsewhere(request)) return sendPassage(reply, visit.base, localPath(request.url) ?? SIGN_IN);
    if (people.sessions.personOf(request) !== null) return reply.redirect(visit.base + visit.next, 303);
    return visit.send({ title: "Sign in", children: entriesOf(people, visit) });
  });
  const { passwords } = people;
  if (passwords === null) return;
  app.post(SIGN_IN, OPEN, async (request, reply) => {
    const visit = visitOf(parts, request, reply);
    if (!isOwnForm(people, request)) return sendOldForm(visit);
    const name = fieldOf(request.body, "name").trim();
    const password = fieldOf(request.body, "password");
    const verdict = await verdictOf({ people, passwords, log }, { name, password, address: request.ip });
    if ("fault" in verdict) {
      if (verdict.retryAfterSec !== undefined) void reply.header("retry-after", verdict.retryAfterSec);
      const children = [PasswordForm(visit, name, { "": verdict.fault }), SignOnLinks(people, visit)];
      return visit.send({ title: "Sign in", status: verdict.retryAfterSec === undefined ? 422 : 429, children });
    }
    people.signIn(request, reply, verdict);
    return reply.redirect(visit.base + visit.next, 303);
  });
}

interface Given {
  readonly name: string;
  readonly password: string;
  readonly address: string;
}

interface SignInParts {
  readonly people: Console;
  readonly passwords: () => Promise<Passwords>;
  readonly log: Logger;
}

async function verdictOf({ people, passwords, log }: SignInParts, { name, password, address }: Given) {
  if (name === "" || password === "") return { fault: "Write your name and your password." };
  const key = nameKey(name);
  const user = people.options.users.find((one) => nameKey(one.name) === key);
  const attempt = { address, name: `user ${key}` };
  const verdict = await (await passwords()).check(attempt, password, user?.password ?? null);
  if (verdict.kind === "right" && user !== undefined) return { name: user.name, role: user.role };
  if (verdict.kind === "later") {
    const { seconds } = verdict;
    const wait = seconds < 90 ? `${seconds} seconds` : `${Math.ceil(seconds / 60)} minutes`;
    return { fault: `Too many attempts. Try again in ${wait}.`, retryAfterSec: seconds };
  }
  log.warn({ person: name, from: address }, "a sign-in to the console failed");
  return { fault: WRONG };
}

function fieldOf(body: unknown, name: string): string {
  const fields = Object(body) as Readonly<Record<string, unknown>>;
  const value = Object.hasOwn(fields, name) ? fields[name] : "";
  return typeof value === "string" ? value.slice(0, FIELD_CHARACTERS_MAX) : "";
}

function entriesOf(people: Console, visit: Visit): Content {
  const { refusal, links, passwords } = people;
  if (refusal !== null) return html`<p>The console is not available here: ${refusal}.</p>`;
  if (links !== null)
    return html`<p>This gateway has no users. On its machine, this command prints a link that signs in:</p>
      <p><code>headgate console link -c FILE</code></p>`;
  return [passwords === null ? null : PasswordForm(visit, "", {}), SignOnLinks(people, visit)];
}

function PasswordForm({ base, csrf, next }: Visit, name: string, faults: Faults): Content {
  return Form({
    ...{ action: base + SIGN_IN, csrf, faults, carried: { next } },
    children: [
      Field({ name: "name", label: "Name", value: name, autocomplete: "username", focused: true, faults }),
      Field({ name: "password", label: "Password", type: "password", autocomplete: "current-password", faults }),
      html`<div class="actions">${Button({ words: "Sign in" })}</div>`,
    ],
  });
}
