/** Changes by a user whose rights may end while the request for them is in progress. */
import { HttpProblem } from "#wire/http-problem.ts";
import type { HubContext } from "../context.ts";
import type { Acting } from "../invitations/actor.ts";
import type { Steps } from "../store/database.ts";
import type { UserRecord } from "../store/store.ts";
import { hasRight, RIGHT_WORDS, type Right } from "../token/rights.ts";
import { userGeneration } from "../token/tokens.ts";

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
