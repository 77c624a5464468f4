/** A user leaves an account, or may not sign in for a while. */
import type { FastifyRequest } from "fastify";
import type { USER_STATES } from "#wire/index.ts";
import type { HubContext } from "../context.ts";
import { invalidField } from "../http/problems.ts";
import type { Steps } from "../store/database.ts";
import { removeMembership, setState } from "../store/people/users.ts";
import { changeMember, type MemberChange, requireOtherManager, requirePerson } from "./member-change.ts";

type UserState = (typeof USER_STATES)[number];

/** A user of no other account is deactivated. */
export function removeMember(context: HubContext, request: FastifyRequest, id: number): Promise<void> {
  return changeMember(context, request, id, function* (change) {
    const { user, accountId } = change;
    yield* requireOtherManager(change);
    yield* removeMembership(user.id, accountId);
    yield* change.record("membership.removed");
    if (user.memberships.length === 1) yield* setState(user.id, "Inactive");
  });
}

export function deactivateMember(context: HubContext, request: FastifyRequest, id: number): Promise<void> {
  return changeMember(context, request, id, function* (change) {
    yield* deactivate(change);
  });
}

export function activateMember(context: HubContext, request: FastifyRequest, id: number): Promise<void> {
  return changeMember(context, request, id, function* (change) {
    yield* activate(change);
  });
}

/** By the field `state` of a change. */
export function* changeState(change: MemberChange, wanted: UserState): Steps<void> {
  const { state, mustChangePassword } = change.user;
  if (wanted === "Inactive") return yield* deactivate(change);
  if (state === "Inactive" && (wanted === "Active" || mustChangePassword)) return yield* activate(change);
  const why =
    wanted === "Active"
      ? "is Invited until the user has set a password of the own; deactivation ends the invitation"
      : "Invited is what the hub says of a user without a password of the own; set it to Active or Inactive";
  throw invalidField("state", why);
}

function* deactivate(change: MemberChange): Steps<void> {
  requirePerson(change);
  yield* requireOtherManager(change);
  if (change.user.state === "Inactive") return;
  yield* setState(change.user.id, "Inactive");
  yield* change.recordPerson("user.deactivated");
}

function* activate(change: MemberChange): Steps<void> {
  requirePerson(change);
  if (change.user.state !== "Inactive") return;
  yield* setState(change.user.id, change.user.mustChangePassword ? "Invited" : "Active");
  yield* change.recordPerson("user.activated");
}
