/** A user leaves an account, or may not sign in for a while. */
import type { FastifyRequest } from "fastify";
import type { HubContext } from "../context.ts";
import { removeMembership, setState } from "../store/people/users.ts";
import { changeMember, requireOtherManager, requirePerson } from "./member-change.ts";

/** A user of no other account is deactivated. */
export function removeMember(context: HubContext, request: FastifyRequest, id: number): Promise<void> {
  return changeMember(context, request, id, function* (change) {
    const { user, accountId } = change;
    requireOtherManager(change);
    yield* removeMembership(user.id, accountId);
    yield* change.record("membership.removed");
    if (user.memberships.length === 1) yield* setState(user.id, "Inactive");
  });
}

export function deactivateMember(context: HubContext, request: FastifyRequest, id: number): Promise<void> {
  return changeMember(context, request, id, function* (change) {
    requirePerson(change);
    requireOtherManager(change);
    if (change.user.state === "Inactive") return;
    yield* setState(id, "Inactive");
    yield* change.recordPerson("user.deactivated");
  });
}

export function activateMember(context: HubContext, request: FastifyRequest, id: number): Promise<void> {
  return changeMember(context, request, id, function* (change) {
    requirePerson(change);
    if (change.user.state !== "Inactive") return;
    yield* setState(id, change.user.mustChangePassword ? "Invited" : "Active");
    yield* change.recordPerson("user.activated");
  });
}
