/** Personal tokens of a user, made and ended in a browser. */
import type { FastifyRequest } from "fastify";
import type { HubContext } from "../context.ts";
import { addApiToken, removeApiToken } from "../store/people/api-tokens.ts";
import { recordAudit } from "../store/people/audit.ts";
import { isoOfMs } from "../time.ts";
import { hashOfPersonalToken, newPersonalToken } from "../token/personal-token.ts";
import { actorIn } from "./actor.ts";
import type { BrowserSession } from "./sessions.ts";

interface NewToken {
  readonly name: string;
  readonly scopes: readonly string[];
  readonly expiresMs: number;
}

/** Returns its value, which is shown once. */
export async function makeOwnToken(
  { store, clock }: HubContext,
  session: BrowserSession,
  request: FastifyRequest,
  { name, scopes, expiresMs }: NewToken,
): Promise<string> {
  const { user, accountId } = session;
  const nowMs = clock.now().epochMilliseconds;
  const value = newPersonalToken();
  const token = { userId: user.id, accountId, name, scopes, createdMs: nowMs, expiresMs };
  const head = { atMs: nowMs, actor: actorIn(session, request), action: "token.created" } as const;
  await store.people.change(function* () {
    const id = yield* addApiToken({ ...token, hash: hashOfPersonalToken(value) });
    const facts = { scopes, expires: isoOfMs(expiresMs) };
    yield* recordAudit(accountId, { ...head, subject: { kind: "token", id, name }, facts });
  });
  return value;
}

/** Does nothing when the user has no such token in the account of the session. */
export async function endOwnToken(
  { store, clock }: HubContext,
  session: BrowserSession,
  request: FastifyRequest,
  id: number,
): Promise<void> {
  const { user, accountId } = session;
  const atMs = clock.now().epochMilliseconds;
  await store.people.change(function* () {
    const removed = yield* removeApiToken(user.id, accountId, id);
    if (removed === null) return;
    const subject = { kind: "token", id, name: removed.name } as const;
    yield* recordAudit(accountId, { atMs, actor: actorIn(session, request), action: "token.removed", subject });
  });
}
