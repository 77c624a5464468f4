/** Changes by a user whose rights may end while the request for them is in progress. */
import { HttpProblem } from "#wire/http-problem.ts";
import type { HubContext } from "../context.ts";
import type { Acting } from "../invitations/actor.ts";
import type { Steps } from "../store/database.ts";
import { type ApiTokenRecord, addApiToken, countApiTokens, removeApiToken } from "../store/people/api-tokens.ts";
import { recordAudit } from "../store/people/audit.ts";
import type { UserRecord } from "../store/people/records.ts";
import { isoOfMs } from "../time.ts";
import { hashOfPersonalToken, newPersonalToken } from "../token/personal-token.ts";
import { hasRight, RIGHT_WORDS, type Right } from "../token/rights.ts";
import { userGeneration } from "../token/tokens.ts";

/** Of one user in an account, with those that have expired. */
const TOKENS_MAX = 100;

/**
 * One transaction, in which the caller is as at its begin. Throws a 401 where the user was deactivated or got another
 * password since the request came, and a 403 where the right has gone.
 */
export function changeAs<T>(
  { store }: Pick<HubContext, "store">,
  { user, accountId, actor }: Acting,
  right: Right,
  work: (user: UserRecord) => Steps<T>,
): Promise<T> {
  const other = actor.impersonator?.id ?? user.id;
  return store.people.changeWith([user.id, other], (held) => {
    const now = requireSame(user, held.get(user.id));
    if (held.get(other)?.state === "Inactive") throw ended();
    if (!hasRight(now, accountId, right)) throw lost(right);
    return work(now);
  });
}

/** Throws a 401 where the user is no longer the one of the request. */
export function requireSame(before: UserRecord, now: UserRecord | undefined): UserRecord {
  if (now === undefined || now.state === "Inactive" || userGeneration(now) !== userGeneration(before)) throw ended();
  return now;
}

export function lost(right: Right): HttpProblem {
  const why = `you have lost the right while the request was in progress: it needs the role ${RIGHT_WORDS[right]}`;
  return new HttpProblem(403, "missing-right", why);
}

export function ended(): HttpProblem {
  const why = "the user was deactivated or got another password while the request was in progress: sign in again";
  return new HttpProblem(401, "unauthenticated", why);
}

// Personal tokens are made and ended alike by a page and by the interface.

interface NewToken {
  readonly name: string;
  readonly scopes: readonly string[];
  readonly lifetimeMs: number;
}

/** The value is shown once. Throws a 409 where the user has too many. */
export async function makeToken(
  context: HubContext,
  owner: Acting,
  { name, scopes, lifetimeMs }: NewToken,
): Promise<{ readonly value: string; readonly record: ApiTokenRecord }> {
  const { accountId, actor } = owner;
  const userId = owner.user.id;
  const nowMs = context.clock.now().epochMilliseconds;
  const value = newPersonalToken();
  const token = { userId, accountId, name, scopes, createdMs: nowMs, expiresMs: nowMs + lifetimeMs };
  const id = await changeAs(context, owner, "own", function* () {
    const made = yield* addApiToken({ ...token, hash: hashOfPersonalToken(value) });
    if ((yield* countApiTokens(userId, accountId)) > TOKENS_MAX)
      throw new HttpProblem(409, "quota-exceeded", `a user has ${TOKENS_MAX} personal tokens at most: end one first`);
    const subject = { kind: "token", id: made, name } as const;
    const facts = { scopes, expires: isoOfMs(token.expiresMs) };
    yield* recordAudit(accountId, { atMs: nowMs, actor, action: "token.created", subject, facts });
    return made;
  });
  return { value, record: { ...token, id, lastUsedMs: null } };
}

/** False when the user has no such token in the account. */
export function endToken(
  { store, clock }: HubContext,
  { user, accountId, actor }: Acting,
  id: number,
): Promise<boolean> {
  const atMs = clock.now().epochMilliseconds;
  return store.people.change(function* () {
    const removed = yield* removeApiToken(user.id, accountId, id);
    if (removed === null) return false;
    const subject = { kind: "token", id, name: removed.name } as const;
    yield* recordAudit(accountId, { atMs, actor, action: "token.removed", subject, facts: {} });
    return true;
  });
}
