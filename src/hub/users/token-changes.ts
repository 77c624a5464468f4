/** Personal tokens are made and ended alike by a page and by the interface. */
import type { HubContext } from "../context.ts";
import { type ApiTokenRecord, addApiToken, removeApiToken } from "../store/people/api-tokens.ts";
import { type Actor, recordAudit } from "../store/people/audit.ts";
import { isoOfMs } from "../time.ts";
import { hashOfPersonalToken, newPersonalToken } from "../token/personal-token.ts";

interface Owner {
  readonly userId: number;
  readonly accountId: number;
  readonly actor: Actor;
}

interface NewToken {
  readonly name: string;
  readonly scopes: readonly string[];
  readonly lifetimeMs: number;
}

/** The value is shown once. */
export async function makeToken(
  { store, clock }: HubContext,
  { userId, accountId, actor }: Owner,
  { name, scopes, lifetimeMs }: NewToken,
): Promise<{ readonly value: string; readonly record: ApiTokenRecord }> {
  const nowMs = clock.now().epochMilliseconds;
  const value = newPersonalToken();
  const token = { userId, accountId, name, scopes, createdMs: nowMs, expiresMs: nowMs + lifetimeMs };
  const id = await store.people.change(function* () {
    const made = yield* addApiToken({ ...token, hash: hashOfPersonalToken(value) });
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
  { userId, accountId, actor }: Owner,
  id: number,
): Promise<boolean> {
  const atMs = clock.now().epochMilliseconds;
  return store.people.change(function* () {
    const removed = yield* removeApiToken(userId, accountId, id);
    if (removed === null) return false;
    const subject = { kind: "token", id, name: removed.name } as const;
    yield* recordAudit(accountId, { atMs, actor, action: "token.removed", subject, facts: {} });
    return true;
  });
}
