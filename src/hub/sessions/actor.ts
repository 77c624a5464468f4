/** The actor of a request from a browser, for the audit trail. */
import type { FastifyRequest } from "fastify";
import type { Actor, AuditFact } from "../store/people/audit.ts";
import type { UserRecord } from "../store/store.ts";
import type { BrowserSession } from "./sessions.ts";

type Person = Pick<BrowserSession, "user" | "impersonator">;

export function actorIn({ user, impersonator }: Person, { ip }: FastifyRequest): Actor {
  const other = impersonator === null ? null : { id: impersonator.id, name: impersonator.username };
  return { id: user.id, name: user.username, impersonator: other, address: ip };
}

/** Something that a user did about himself. */
export function ownFact(
  person: Person,
  request: FastifyRequest,
  { action, atMs, facts = {} }: Pick<AuditFact, "action" | "atMs" | "facts">,
): AuditFact {
  const { user } = person;
  return { atMs, actor: actorIn(person, request), action, subject: subjectOf(user), facts };
}

export function subjectOf({ id, username }: Pick<UserRecord, "id" | "username">): AuditFact["subject"] {
  return { kind: "user", id, name: username };
}
