/** Personal tokens are made and ended alike by a page and by the interface. */
import { HttpProblem } from "#wire/http-problem.ts";
import type { HubContext } from "../context.ts";
import type { Acting } from "../invitations/actor.ts";
import { type ApiTokenRecord, addApiToken, countApiTokens, removeApiToken } from "../store/people/api-tokens.ts";
import { recordAudit } from "../store/people/audit.ts";
import { isoOfMs } from "../time.ts";
import { hashOfPersonalToken, newPersonalToken } from "../token/personal-token.ts";
import { changeAs } from "./caller.ts";

interface NewToken {
  readonly name: string;
  readonly scopes: readonly string[];
  readonly lifetimeMs: number;
}

/** Of one user in an account, with those that have expired. */
const TOKENS_MAX = 100;

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
