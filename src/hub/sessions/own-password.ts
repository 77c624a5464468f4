/** The password of a user: what is accepted as one, and its change by the user. */
import type { FastifyRequest } from "fastify";
import { BUSY_SEC } from "#core/sign-in/passwords.ts";
import { HttpProblem } from "#wire/http-problem.ts";
import type { HubContext } from "../context.ts";
import { passwordChangedMessage } from "../mail/messages.ts";
import type { Steps } from "../store/database.ts";
import { queueMail } from "../store/mail/mails.ts";
import { recordAboutPerson } from "../store/people/audit.ts";
import type { UserRecord } from "../store/people/records.ts";
import { setPassword } from "../store/people/users.ts";
import { endOpenedBy, isOpen } from "../store/sessions/sessions.ts";
import { ended, requireSame } from "../users/caller.ts";
import { type BrowserSession, ownFact } from "./sessions.ts";

/** A mail about a change is of use for this long. */
const NEWS_MS = 7 * 86_400_000;
const CHARACTERS_LEAST = 8;
const CHARACTERS_MAX = 500;

/** Why a user cannot have this password; null when it is fit. */
export function passwordFault(
  password: string,
  { username, email }: Pick<UserRecord, "username" | "email">,
): string | null {
  if ([...password].length < CHARACTERS_LEAST) return `Choose a password of ${CHARACTERS_LEAST} characters at least.`;
  if (password.length > CHARACTERS_MAX) return `Choose a password of ${CHARACTERS_MAX} characters at most.`;
  const own = [username, email, email?.split("@")[0]].map((text) => text?.toLowerCase());
  if (own.includes(password.toLowerCase())) return "Choose a password that is not your name or address.";
  return new Set(password).size < 3 ? "Choose a password of more than two different characters." : null;
}

/** Accounts take turns at hashes, which are slow. Throws a 429 where too many of the account wait. */
export async function hashOf(
  { passwords }: Pick<HubContext, "passwords">,
  accountId: number,
  password: string,
): Promise<string> {
  const made = passwords.hash(accountId, password);
  if (made !== null) return made;
  const why =
    "many new passwords of this account wait to be hashed, and nothing was changed here: send the request again";
  throw new HttpProblem(429, "too-many-requests", why, undefined, BUSY_SEC);
}

/** All other sessions, and the tokens of the password before, end. The caller renews this session. */
export async function changeOwnPassword(
  context: HubContext,
  session: BrowserSession,
  request: FastifyRequest,
  password: string,
): Promise<void> {
  const { store, clock, mail } = context;
  const { user } = session;
  const passwordHash = await hashOf(context, session.accountId, password);
  const atMs = clock.now().epochMilliseconds;
  await store.people.changeWith([user.id], function* (held) {
    // The password may have been reset meanwhile, or the user deactivated.
    requireSame(user, held.get(user.id));
    if (!(yield* isOpen(session.id))) throw ended();
    yield* setPassword(user.id, passwordHash);
    yield* endOpenedBy(user.id, { except: session.id });
    yield* recordAboutPerson(user.id, ownFact(session, request, { action: "password.changed", atMs }));
    if (mail.isSetUp) yield* mailChange(user, session.accountId, atMs);
  });
  mail.wake();
}

/** For use inside a write: the owner of the password is to know of a change that was not his own. */
export function* mailChange({ username, email }: UserRecord, accountId: number | null, nowMs: number): Steps<void> {
  if (email === null) return;
  const times = { createdMs: nowMs, expiresMs: nowMs + NEWS_MS };
  yield* queueMail({
    accountId,
    kind: "password-changed",
    to: email,
    ...passwordChangedMessage({ username }),
    ...times,
  });
}
