/** Changes of the fields of a user: PUT and PATCH. */
import { isDeepStrictEqual } from "node:util";
import type { Operation } from "fast-json-patch";
import { HttpProblem, invalidRequest } from "#wire/http-problem.ts";
import { type UserChange, type UserFields, userChange } from "#wire/index.ts";
import { parsed } from "../http/problems.ts";
import type { Steps } from "../store/database.ts";
import { changeUser, isPasswordForeign, putMembership, type Taken } from "../store/people/users.ts";
import { applyPatch, type Fields } from "../structure/json-patch.ts";
import type { Principal } from "../token/guard.ts";
import { FOREIGN_PASSWORD, rolesIn } from "../token/rights.ts";
import { changeState } from "./departure.ts";
import { forbidden, type MemberChange, requireGivable, requireOtherManager, requirePerson } from "./member-change.ts";

/** A function from the current fields to the wanted ones. */
export type Edit = (current: Fields) => Fields;

const NAMES = Object.keys(userChange.out.shape);
const PERSONAL = ["username", "email", "firstName", "lastName"] as const;

/** The fields of the body; absent and null fields stay as they are. */
export function given(body: unknown): Edit {
  if (!isFields(body)) throw invalidRequest("the body must be a JSON object");
  const entries = Object.entries(body).filter(([, value]) => value !== null);
  return (current) => ({ ...current, ...respelled(entries) });
}

/** A list is a JSON Patch (RFC 6902), an object a merge patch (RFC 7396), in which null clears a field. */
export function patched(body: unknown, bytesMax: number): Edit {
  if (isFields(body)) return (current) => ({ ...current, ...respelled(Object.entries(body)) });
  if (!Array.isArray(body)) throw invalidRequest("the body must be a JSON Patch (a list) or an object of fields");
  const spelled = (path: unknown) =>
    typeof path === "string" ? path.replace(/^\/([^/]*)/, (_, name: string) => `/${fieldNamed(name)}`) : path;
  const operations = body.map((one: unknown) =>
    isFields(one)
      ? {
          ...one,
          ...("path" in one ? { path: spelled(one["path"]) } : {}),
          ...("from" in one ? { from: spelled(one["from"]) } : {}),
        }
      : one,
  ) as Operation[];
  return (current) => applyPatch(current, operations, bytesMax);
}

export function* applyEdit(change: MemberChange, edit: Edit): Steps<void> {
  const { user, accountId } = change;
  const current = fieldsOf(change);
  const wanted: UserChange = parsed(userChange, edit(current));
  const next = { ...wanted, roles: wanted.roles.map(String) };
  const different = NAMES.filter((name) => !isSame(Reflect.get(current, name), Reflect.get(next, name)));
  const personal = PERSONAL.filter((name) => different.includes(name));
  if (personal.length > 0) yield* changePerson(change, wanted, personal);
  if (different.includes("businessId")) {
    const businessId = wanted.businessId ?? null;
    const roles = user.memberships.find((one) => one.accountId === accountId)?.roles ?? [];
    if (!(yield* putMembership(user.id, { accountId, roles, businessId, origin: "people" })))
      throw conflict("businessId", `another user of this account has ${businessId}`);
    yield* change.record("user.changed", { fields: ["businessId"] });
  }
  if (different.includes("roles")) yield* giveRoles(change, wanted.roles);
  if (different.includes("state")) yield* changeState(change, wanted.state);
}

export function* giveRoles(change: MemberChange, roles: UserFields["roles"]): Steps<void> {
  const { user, accountId, caller } = change;
  const held = user.memberships.find((one) => one.accountId === accountId)?.roles ?? [];
  const before = rolesIn(user, accountId);
  const next = [...new Set(roles)];
  if (isSame([...before], next)) return;
  requireGivable(
    caller,
    next.filter((role) => !before.includes(role)),
  );
  if (!next.includes("Manager") && !next.includes("Admin")) yield* requireOtherManager(change);
  if (before.includes("Admin") && !held.includes("Admin") && !next.includes("Admin"))
    throw forbidden("the role Admin comes from another account, and is taken away there");
  if (next.includes("Admin") && !before.includes("Admin") && isPasswordForeign(user))
    throw conflict("roles", FOREIGN_PASSWORD);
  yield* putMembership(user.id, { accountId, roles: next, origin: "people" });
  yield* change.record("roles.changed", { from: before, to: next });
}

export function conflict(field: string, why: string): HttpProblem {
  return new HttpProblem(409, "conflict", `${field}: ${why}`, [{ path: field, message: why }]);
}

export function takenProblem(taken: Taken): HttpProblem {
  return taken === "username-taken"
    ? conflict("username", "a user of this hub has this name, or one that looks like it; choose another one")
    : conflict("email", "a user of this hub has this address; invite that person to the account instead");
}

function* changePerson(change: MemberChange, wanted: UserFields, personal: readonly string[]): Steps<void> {
  const { user, caller } = change;
  if (caller.user.id !== user.id) requirePerson(change);
  else if (personal.includes("username") || personal.includes("email")) requireSelf(caller);
  if (personal.includes("username") && user.origin === "configuration")
    throw conflict("username", "it comes from the configuration of the hub (hub.yaml), and is changed there");
  const { username, email = null, firstName = null, lastName = null } = wanted;
  const taken = yield* changeUser(user.id, {
    ...(personal.includes("username") ? { username } : {}),
    ...(personal.includes("email") ? { email } : {}),
    firstName,
    lastName,
  });
  if (taken !== null) throw takenProblem(taken);
  yield* change.recordPerson("user.changed", { fields: personal });
}

/** Links to a new password go to the address: one who acts as the user, or has a token of a program, sets none. */
function requireSelf({ isPersonal, impersonator = null }: Principal): void {
  if (isPersonal === true) throw forbidden("a personal token cannot change the username or email of its own user");
  if (impersonator !== null) throw forbidden("you act as another user, and cannot change that user's name or email");
}

/** As `userChange` has them; absent ones are undefined. */
function fieldsOf({ user, accountId }: MemberChange): Fields {
  const { username, email, firstName, lastName, state } = user;
  const businessId = user.memberships.find((one) => one.accountId === accountId)?.businessId ?? null;
  return { username, email, firstName, lastName, businessId, state, roles: [...rolesIn(user, accountId)] };
}

function isSame(one: unknown, other: unknown): boolean {
  if (Array.isArray(one) && Array.isArray(other)) return isDeepStrictEqual(one.toSorted(), other.toSorted());
  return isDeepStrictEqual(one ?? null, other ?? null);
}

function respelled(entries: readonly (readonly [string, unknown])[]): Fields {
  return Object.fromEntries(entries.map(([name, value]) => [fieldNamed(name), value]));
}

function fieldNamed(name: string): string {
  return NAMES.find((field) => field.toLowerCase() === name.toLowerCase()) ?? name;
}

function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
