/** Users of an account (specification, *Other endpoints*; `docs/hub/people.md`, *People*). */
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { z } from "zod";
import { HttpProblem } from "#wire/http-problem.ts";
import {
  type AuditEntry,
  account,
  auditEntry,
  auditQuery,
  type Claim,
  claim,
  claimBody,
  newPersonalToken,
  type PersonalToken,
  personalToken,
  personalTokenBody,
  ROLE_NAMES,
  type RoleName,
  role,
  rolesBody,
  type USER_LEVELS,
  type User,
  type UserBody,
  type UsersQuery,
  user,
  userBody,
  userChange,
  userQuery,
  usersQuery,
} from "#wire/index.ts";
import { limitOf } from "../account-limits.ts";
import type { HubContext } from "../context.ts";
import { boundMs } from "../data/query.ts";
import { callerOf } from "../http/access.ts";
import { changedFixed, judgeFixed, withValues } from "../http/fixed-fields.ts";
import { takeJson } from "../http/json-bodies.ts";
import { invalidField, parsed } from "../http/problems.ts";
import { described } from "../http/route.ts";
import { actingOf } from "../invitations/actor.ts";
import { NO_MAIL, temporaryPassword } from "../mail/mail.ts";
import { temporaryPasswordMessage } from "../mail/messages.ts";
import { requireMailRoom } from "../mail/people-limits.ts";
import { hashOf, passwordFault } from "../sessions/own-password.ts";
import type { Steps } from "../store/database.ts";
import { queueMail } from "../store/mail/mails.ts";
import { requireFew } from "../store/owned.ts";
import type { ApiTokenRecord } from "../store/people/api-tokens.ts";
import { type Actor, type AuditRecord, recordAudit } from "../store/people/audit.ts";
import type { MembersFilter } from "../store/people/members.ts";
import { type ClaimRecord, countClaims, putClaim, removeClaim } from "../store/people/people.ts";
import type { UserRecord } from "../store/people/records.ts";
import { createUser, type NewUser, putMembership } from "../store/people/users.ts";
import { sendList } from "../structure/lists.ts";
import { notFound, ONE, pathId, type WithId } from "../structure/pages.ts";
import { isoOfMs } from "../time.ts";
import type { Principal } from "../token/guard.ts";
import { hasRight, isAdmin, rolesIn, rolesNamed } from "../token/rights.ts";
import { changeAs, endToken, makeToken } from "./caller.ts";
import { activateMember, deactivateMember, removeMember } from "./departure.ts";
import { applyEdit, conflict, type Edit, given, giveRoles, patched, takenProblem } from "./edit.ts";
import { actorOf, changeMember, forbidden, requireGivable } from "./member-change.ts";

const TYPE_MAX = 200;
/** Of one user in an account. */
const CLAIMS_MAX = 200;

const MEMBER_OPTIONS = {
  roles: described({ access: "read", tag: "Users", summary: "Roles that there are", answer: z.array(role) }),
  rolesOf: described({ access: "read", tag: "Users", summary: "Roles of a user", answer: z.array(role) }),
  giveRoles: described({
    access: "people",
    tag: "Users",
    summary: "Gives a user exactly these roles in the account",
    body: rolesBody,
    answer: z.array(role),
    example: { body: ["User"] },
  }),
  claims: described({ access: "read", tag: "Users", summary: "Claims of a user", answer: z.array(claim) }),
  claim: described({ access: "read", tag: "Users", summary: "One claim of a user", answer: claim }),
  putClaim: described({
    access: "people",
    tag: "Users",
    summary: "Sets a claim of a user",
    body: claimBody,
    answer: claim,
    shown: claim,
    example: { body: { claimValue: "4" } },
  }),
  removeClaim: described({ access: "people", tag: "Users", summary: "Removes a claim of a user", status: 204 }),
  audit: described({
    access: "people",
    tag: "Users",
    summary: "Audit trail of the account, newest first",
    query: auditQuery,
    answer: z.array(auditEntry),
    example: { query: { UserId: 1 } },
  }),
};

const DAY_MS = 86_400_000;

const TOKEN_OPTIONS = {
  list: described({
    access: "own",
    tag: "Users",
    summary: "Personal tokens of the caller",
    answer: z.array(personalToken),
  }),
  create: described({
    access: "own",
    tag: "Users",
    summary: "Makes a personal token",
    description: "The answer shows its value, once. It works within its scopes and the rights that the user has then.",
    body: personalTokenBody,
    answer: newPersonalToken,
    example: { body: { name: "report", days: 90 } },
  }),
  remove: described({ access: "own", tag: "Users", summary: "Ends a personal token of the caller", status: 204 }),
};

const TAG = "Users";
const CHANGED = { access: "people", tag: TAG, answer: user } as const;
/** Fields that answers show of a user, and a change of the user does not set. */
const FIXED = ["claims", "memberships", "mustChangePassword", "secondFactor"];
const CHANGE_EXAMPLE = { body: { firstName: "Ada" } };

const OPTIONS = {
  list: described({
    access: "read",
    tag: TAG,
    summary: "Users of the account",
    description: "Managers see all of them, other users themselves alone.",
    query: usersQuery,
    answer: z.array(user),
    example: {
      query: { DisplayLevel: "VerboseUser", "BusinessKeys.Name": "Username", "BusinessKeys.Values": ["ada"] },
    },
  }),
  self: described({ access: "read", tag: TAG, summary: "The caller", query: userQuery, answer: user }),
  account: described({ access: "read", tag: TAG, summary: "The account of the token", answer: account }),
  one: described({ access: "read", tag: TAG, summary: "One user", query: userQuery, answer: user }),
  create: described({
    access: "people",
    tag: TAG,
    summary: "Adds a user",
    description: "The answer is the whole user. Without a password the hub sends a temporary one by mail.",
    body: userBody,
    answer: user,
    shown: user,
    example: { body: { username: "ada", password: "to be changed", roles: ["User"] } },
  }),
  put: described({
    ...CHANGED,
    summary: "Changes a user",
    description: "Fields that the body leaves out stay as they are.",
    body: userChange.out.partial(),
    example: CHANGE_EXAMPLE,
  }),
  patch: described({
    ...CHANGED,
    summary: "Changes a user by a JSON Patch or by an object of fields, in which null clears",
    body: z.union([
      z.array(z.looseObject({ op: z.string(), path: z.string() })),
      z.object(
        Object.fromEntries(
          Object.entries(userChange.out.partial().shape).map(([name, type]) => [name, z.nullable(type)]),
        ),
      ),
    ]),
    example: { body: [{ op: "add", path: "/firstName", value: "Ada" }] },
  }),
  remove: described({
    access: "people",
    tag: TAG,
    summary: "Removes a user from the account",
    description: "A user of no other account can no longer sign in.",
    status: 204,
  }),
  activate: described({ ...CHANGED, summary: "Lets a user sign in again" }),
  deactivate: described({ ...CHANGED, summary: "Ends all tokens and sessions of a user, who can sign in no longer" }),
};

export async function userRoutes(app: FastifyInstance, context: HubContext): Promise<void> {
  for (const type of ["application/json-patch+json", "application/merge-patch+json"]) takeJson(app, type);
  for (const path of ["/user/users", "/account/users"])
    app.get(path, OPTIONS.list, (request, reply) => listed(context, request, reply));
  app.get("/user", OPTIONS.self, async (request) => {
    const { DisplayLevel } = parsed(userQuery, request.query);
    const caller = callerOf(request);
    const [own] = await shownUsers(context, caller, [caller.user], userLevel(DisplayLevel, "VerboseUser"));
    return own;
  });
  app.get("/account", OPTIONS.account, async (request) => {
    const { accountId } = callerOf(request);
    return await context.store.identity.account(accountId);
  });
  app.get<WithId>("/account/users/:id", OPTIONS.one, (request) => {
    const { DisplayLevel } = parsed(userQuery, request.query);
    return shownMember(context, request, pathId(request.params.id), userLevel(DisplayLevel, "VerboseUser"));
  });
  app.post("/account/users", OPTIONS.create, async (request, reply) => {
    const fixed = changedFixed(withValues(request.body), { claims: [] }, ["claims"]);
    judgeFixed(request, reply, context.options, fixed);
    const id = await createMember(context, request, parsed(userBody, request.body));
    return shownMember(context, request, id, "verbose");
  });
  const edited = async (request: FastifyRequest<WithId>, reply: FastifyReply, edit: Edit) => {
    const id = pathId(request.params.id);
    if (namesFixed(request.body)) {
      const before = (await shownMember(context, request, id, "verbose")) as Readonly<Record<string, unknown>>;
      judgeFixed(request, reply, context.options, changedFixed(edit(before), before, FIXED));
    }
    await changeMember(context, request, id, (change) => applyEdit(change, edit));
    return shownMember(context, request, id, "verbose");
  };
  app.put<WithId>("/account/users/:id", OPTIONS.put, (request, reply) => edited(request, reply, given(request.body)));
  app.patch<WithId>("/account/users/:id", OPTIONS.patch, (request, reply) =>
    edited(request, reply, patched(request.body, context.options.limits.requestBody)),
  );
  departureRoutes(app, context);
  memberRoutes(app, context);
  personalTokenRoutes(app, context);
}

/** Whether a body, or an operation of a JSON Patch, names a field that only answers have. */
function namesFixed(body: unknown): boolean {
  const names = Array.isArray(body)
    ? body.map((one: unknown) => String(Reflect.get(Object(one), "path")).split("/")[1])
    : Object.keys(Object(body));
  return names.some((name) => FIXED.some((field) => field.toLowerCase() === name?.toLowerCase()));
}

function departureRoutes(app: FastifyInstance, context: HubContext): void {
  app.delete<WithId>("/account/users/:id", OPTIONS.remove, async (request, reply) => {
    await removeMember(context, request, pathId(request.params.id));
    return reply.code(204).send();
  });
  app.post<WithId>("/account/users/:id/deactivate", OPTIONS.deactivate, async (request) => {
    const id = pathId(request.params.id);
    await deactivateMember(context, request, id);
    return shownMember(context, request, id, "verbose");
  });
  app.post<WithId>("/account/users/:id/activate", OPTIONS.activate, async (request) => {
    const id = pathId(request.params.id);
    await activateMember(context, request, id);
    return shownMember(context, request, id, "verbose");
  });
}

async function listed(context: HubContext, request: FastifyRequest, reply: FastifyReply) {
  const caller = callerOf(request);
  const query = parsed(usersQuery, request.query);
  const level = userLevel(query.DisplayLevel, "User");
  const keys = filterOf(query);
  const { user: own, accountId } = caller;
  // Other users see themselves alone.
  const mayOnly = hasRight(own, accountId, "people") ? undefined : [own.id];
  const ids =
    mayOnly === undefined ? keys.ids : mayOnly.filter((id) => keys.ids === undefined || keys.ids.includes(id));
  return sendList(request, reply, query, {
    rows: (page) => context.store.people.members(accountId, { ...keys, ids }, page),
    shown: (rows) => shownUsers(context, caller, rows, level),
    keyOf: ({ id }) => id,
  });
}

function filterOf(query: UsersQuery): MembersFilter {
  const key = query["BusinessKeys.Name"];
  const values = query["BusinessKeys.Values"];
  if (key === undefined && values === undefined) return {};
  if (key === undefined)
    throw invalidField("BusinessKeys.Name", "is missing: Id, Username, Email or BusinessId, of which the values are");
  if (values === undefined)
    throw invalidField("BusinessKeys.Values", "is missing: the values by which users are found");
  if (key === "Username") return { usernames: values };
  if (key === "Email") return { emails: values };
  if (key === "BusinessId") return { businessIds: values };
  return {
    ids: values.map((value) => {
      if (!/^\d{1,15}$/.test(value)) throw invalidField("BusinessKeys.Values", `${value} is no id of a user`);
      return Number(value);
    }),
  };
}

async function shownMember(
  context: HubContext,
  request: FastifyRequest,
  id: number,
  level: ReturnType<typeof userLevel>,
) {
  const found = await memberFor(context, request, id);
  const [one] = await shownUsers(context, callerOf(request), [found], level);
  return one;
}

// New users of an account, made by its managers.

/** The place of a new user, and who gives it. */
interface NewPlace {
  readonly accountId: number;
  readonly roles: readonly RoleName[];
  readonly businessId: string | null;
  readonly actor: Actor;
  readonly nowMs: number;
  /** Users that the account may have. */
  readonly most: number;
}

/** For use inside a write. Throws `AccountFull`, and a 409 for names that are taken. */
function* addUserTo(user: NewUser, { accountId, roles, businessId, actor, nowMs, most }: NewPlace): Steps<number> {
  yield* requireFew(accountId, "membership", most);
  const id = yield* createUser(user);
  if (typeof id === "string") throw takenProblem(id);
  if (!(yield* putMembership(id, { accountId, roles, businessId, origin: "people" })))
    throw conflict("businessId", `another user of this account has ${businessId}`);
  const subject = { kind: "user", id, name: user.username } as const;
  yield* recordAudit(accountId, { atMs: nowMs, actor, action: "user.created", subject, facts: { roles } });
  return id;
}

/** Returns the id. Without a password, a temporary one is sent by mail. */
async function createMember(context: HubContext, request: FastifyRequest, body: UserBody): Promise<number> {
  const caller = callerOf(request);
  const { accountId } = caller;
  const { email = null, firstName = null, lastName = null, businessId = null } = body;
  const username = body.username ?? body.email;
  const roles = [...new Set(body.roles ?? ["User" as const])];
  if (username === undefined) throw invalidField("username", "is missing (or an email, which then is the name)");
  if (body.state === "Inactive")
    throw invalidField("state", "a new user can sign in: POST /account/users/{id}/deactivate ends that");
  requireGivable(caller, roles);
  const sent = body.password === undefined ? mailedPassword(context, email) : null;
  const password = body.password ?? temporaryPassword();
  if (body.password !== undefined) requireFit(password, username, email);
  const taken = await context.store.people.taken({ username, email });
  if (taken !== null) throw takenProblem(taken);
  const passwordHash = await hashOf(context, accountId, password);
  const nowMs = context.clock.now().epochMilliseconds;
  const mustChangePassword = sent !== null || body.mustChangePassword !== false;
  const temporaryUntilMs = mustChangePassword ? nowMs + context.mail.validity.temporaryPassword : null;
  const state = mustChangePassword ? "Invited" : "Active";
  // The one who reads the mails of the address alone knows a password that was sent there.
  const provenMs = sent === null ? null : nowMs;
  const user = { username, email, firstName, lastName, state, passwordHash, mustChangePassword, provenMs } as const;
  const account = (await context.store.identity.account(accountId))?.name ?? String(accountId);
  const most = limitOf(context.options, accountId, "membership");
  const place = { accountId, roles, businessId, actor: actorOf(request), nowMs, most };
  const id = await changeAs(context, actingOf(request), "people", function* (now) {
    requireGivable({ ...caller, user: now }, roles);
    const made = yield* addUserTo({ ...user, temporaryUntilMs, origin: "people" }, place);
    if (sent !== null && temporaryUntilMs !== null) {
      yield* requireMailRoom(context, accountId, sent, nowMs);
      const link = context.mail.linkTo("/sign-in");
      const message = temporaryPasswordMessage({ account, username, password, link, expiresMs: temporaryUntilMs });
      const times = { createdMs: nowMs, expiresMs: temporaryUntilMs };
      yield* queueMail({ accountId, kind: "temporary-password", to: sent, ...message, ...times });
    }
    return made;
  });
  if (sent !== null) context.mail.wake();
  return id;
}

/** The address to which it goes. Throws where it cannot be sent. */
function mailedPassword({ mail }: HubContext, email: string | null): string {
  if (email === null) throw invalidField("email", "is missing: without a password, a temporary one is sent there");
  if (!mail.isSetUp) throw new HttpProblem(409, "conflict", `${NO_MAIL}; or give the user a password`);
  return email;
}

function requireFit(password: string, username: string, email: string | null): void {
  const why = passwordFault(password, { username, email });
  if (why !== null) throw invalidField("password", why);
}

/** Personal API tokens of the caller, in the account of the token. */
function personalTokenRoutes(app: FastifyInstance, context: HubContext): void {
  const { people } = context.store;
  app.get("/user/tokens", TOKEN_OPTIONS.list, async (request) => {
    const { user, accountId } = callerOf(request);
    return (await people.apiTokens(user.id, accountId)).map(shownToken);
  });
  app.post("/user/tokens", TOKEN_OPTIONS.create, (request, reply) => {
    void reply.header("cache-control", "no-store");
    return create(context, request);
  });
  app.delete<WithId>("/user/tokens/:id", TOKEN_OPTIONS.remove, async (request, reply) => {
    const id = pathId(request.params.id);
    if (!(await endToken(context, actingOf(request), id))) throw notFound("personal token", String(id));
    return reply.code(204).send();
  });
}

async function create(context: HubContext, request: FastifyRequest) {
  const { scopes: own, isPersonal, impersonator = null } = callerOf(request);
  if (isPersonal === true) throw forbidden("a personal token cannot make another one: sign in with the password");
  if (impersonator !== null) throw forbidden("you act as another user, and cannot make tokens of that user");
  const body = parsed(personalTokenBody, request.body);
  const scopes = [...new Set(body.scopes ?? ["datahub-api" as const])];
  const beyond = scopes.filter((scope) => own?.includes(scope) === false);
  if (beyond.length > 0) throw forbidden(`your own token lacks the scope ${beyond.join(" and ")}`);
  const token = { name: body.name, scopes, lifetimeMs: body.days * DAY_MS };
  const { value, record } = await makeToken(context, actingOf(request), token);
  return { ...shownToken(record), token: value };
}

function shownToken({ id, name, scopes, createdMs, expiresMs, lastUsedMs }: ApiTokenRecord): PersonalToken {
  const lastUsed = lastUsedMs === null ? null : isoOfMs(lastUsedMs);
  return { id, name, scopes: [...scopes], created: isoOfMs(createdMs), expires: isoOfMs(expiresMs), lastUsed };
}

interface WithClaim {
  Params: { id: string; claimType: string };
}

/** Roles and claims of the users of an account, and its audit trail. */
function memberRoutes(app: FastifyInstance, context: HubContext): void {
  app.get("/user/roles", MEMBER_OPTIONS.roles, async () => ROLE_NAMES.map(shownRole));
  app.get<WithId>("/account/users/:id/roles", MEMBER_OPTIONS.rolesOf, async (request) => {
    const user = await memberFor(context, request, pathId(request.params.id));
    return rolesIn(user, callerOf(request).accountId).map(shownRole);
  });
  app.put<WithId>("/account/users/:id/roles", MEMBER_OPTIONS.giveRoles, async (request) => {
    const roles = parsed(rolesBody, request.body);
    const id = pathId(request.params.id);
    await changeMember(context, request, id, (change) => giveRoles(change, roles));
    return rolesIn(await memberFor(context, request, id), callerOf(request).accountId).map(shownRole);
  });
  claimRoutes(app, context);
  app.get("/account/audit", MEMBER_OPTIONS.audit, async (request, reply) => {
    const { accountId } = callerOf(request);
    const query = parsed(auditQuery, request.query);
    const bound = (name: "From" | "To") => boundMs(name, query[name], "UTC") ?? undefined;
    const filter = { userId: query.UserId, fromMs: bound("From"), toMs: bound("To") };
    return sendList(request, reply, query, {
      rows: (page) => context.store.people.audit(accountId, filter, page),
      shown: (rows) => rows.map(shownEntry),
      keyOf: ({ id }) => id,
    });
  });
}

function claimRoutes(app: FastifyInstance, context: HubContext): void {
  const { people } = context.store;
  app.get<WithId>("/account/users/:id/claims", MEMBER_OPTIONS.claims, async (request) => {
    const { id } = await memberFor(context, request, pathId(request.params.id));
    return (await people.claims(callerOf(request).accountId, [id])).map(shownClaim);
  });
  app.get<WithClaim>("/account/users/:id/claims/:claimType", MEMBER_OPTIONS.claim, async (request) => {
    const { id } = await memberFor(context, request, pathId(request.params.id));
    const { claimType } = request.params;
    const claims = await people.claims(callerOf(request).accountId, [id]);
    const found = claims.find(({ type }) => type === claimType);
    if (found === undefined) throw notFound(`claim of user ${id}`, claimType);
    return shownClaim(found);
  });
  app.put<WithClaim>("/account/users/:id/claims/:claimType", MEMBER_OPTIONS.putClaim, async (request) => {
    const { claimValue: value } = parsed(claimBody, request.body);
    const { claimType: type } = request.params;
    if (type === "" || type.length > TYPE_MAX) throw invalidField("claimType", `has 1 to ${TYPE_MAX} characters`);
    const userId = pathId(request.params.id);
    await changeMember(context, request, userId, function* ({ accountId, record }) {
      yield* putClaim(accountId, { userId, type, value });
      if ((yield* countClaims(accountId, userId)) > CLAIMS_MAX)
        throw new HttpProblem(409, "quota-exceeded", `a user has ${CLAIMS_MAX} claims at most: remove one first`);
      yield* record("claim.set", { claimType: type, claimValue: value });
    });
    return shownClaim({ userId, type, value });
  });
  app.delete<WithClaim>("/account/users/:id/claims/:claimType", MEMBER_OPTIONS.removeClaim, async (request, reply) => {
    const { claimType: type } = request.params;
    const userId = pathId(request.params.id);
    await changeMember(context, request, userId, function* ({ accountId, record }) {
      if (!(yield* removeClaim(accountId, userId, type))) throw notFound(`claim of user ${userId}`, type);
      yield* record("claim.removed", { claimType: type });
    });
    return reply.code(204).send();
  });
}

function shownEntry({ id, atMs, actor, action, subject, facts }: AuditRecord): AuditEntry {
  const { impersonator, address } = actor;
  const shown = { kind: subject.kind, id: String(subject.id), name: subject.name };
  const by = { id: actor.id, name: actor.name };
  return { id, at: isoOfMs(atMs), actor: by, impersonator, action, subject: shown, facts, address };
}

// Users as answers show them, at each DisplayLevel.

type Level = (typeof USER_LEVELS)[number];

function userLevel(asked: Level | undefined, fallback: Level): "light" | "user" | "verbose" {
  const level = asked ?? fallback;
  if (level === "UserLight" || level === "Light") return "light";
  return level === "VerboseUser" || level === "Verbose" ? "verbose" : "user";
}

/** A user of the account whom the caller may see. Throws a 404 for any other. */
async function memberFor({ store }: HubContext, request: FastifyRequest, id: number): Promise<UserRecord> {
  const { user: own, accountId } = callerOf(request);
  const isSeen = id === own.id || hasRight(own, accountId, "people");
  const { rows } = isSeen ? await store.people.members(accountId, { ids: [id] }, ONE) : { rows: [] };
  if (rows[0] === undefined) throw notFound("user", String(id));
  return rows[0];
}

async function shownUsers(
  { store }: Pick<HubContext, "store">,
  caller: Principal,
  users: readonly UserRecord[],
  level: ReturnType<typeof userLevel>,
): Promise<readonly User[]> {
  const { accountId } = caller;
  if (level === "light") return users.map(({ id, username }) => ({ id, username }));
  if (level === "user") return users.map((user) => plain(user, accountId));
  const ids = users.map(({ id }) => id);
  const claims = Map.groupBy(await store.people.claims(accountId, ids), ({ userId }) => userId);
  return users.map((user) => ({
    ...plain(user, accountId),
    claims: (claims.get(user.id) ?? []).map(shownClaim),
    memberships: membershipsFor(caller, user),
    mustChangePassword: user.mustChangePassword,
    secondFactor: user.totp !== null && user.totp.confirmedMs !== null,
  }));
}

function plain(user: UserRecord, accountId: number): User {
  const { id, username, email, firstName, lastName, state } = user;
  const businessId = user.memberships.find((one) => one.accountId === accountId)?.businessId ?? null;
  const roles = rolesIn(user, accountId).map(shownRole);
  return { id, username, email, firstName, lastName, businessId, state, roles };
}

/** Other accounts of a user are shown to the user and to Admins alone, and not to those who act as the user. */
function membershipsFor({ user: caller, accountId, impersonator = null }: Principal, user: UserRecord) {
  const seesAll = impersonator === null && (caller.id === user.id || isAdmin(caller));
  return user.memberships
    .filter((one) => seesAll || one.accountId === accountId)
    .map((one) => ({ accountId: one.accountId, roles: rolesNamed(one.roles).map(shownRole) }));
}

function shownRole(name: RoleName) {
  return { id: name, name };
}

function shownClaim({ userId, type, value }: ClaimRecord): Claim {
  return { id: 0, userId, claimType: type, claimValue: value };
}
