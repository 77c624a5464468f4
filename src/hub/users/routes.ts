/** Users of an account (specification, *Other endpoints*; `docs/hub-choices.md`, *People*). */
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { z } from "zod";
import { account, type UsersQuery, user, userBody, userChange, userQuery, usersQuery } from "#wire/index.ts";
import type { HubContext } from "../context.ts";
import { callerOf } from "../http/access.ts";
import { changedFixed, judgeFixed, withValues } from "../http/fixed-fields.ts";
import { takeJson } from "../http/json-bodies.ts";
import { invalidField, parsed } from "../http/problems.ts";
import { described } from "../http/route.ts";
import type { MembersFilter } from "../store/people/members.ts";
import { sendList } from "../structure/lists.ts";
import { pathId, type WithId } from "../structure/pages.ts";
import { hasRight } from "../token/rights.ts";
import { createMember } from "./create-user.ts";
import { activateMember, deactivateMember, removeMember } from "./departure.ts";
import { applyEdit, type Edit, given, patched } from "./edit.ts";
import { changeMember } from "./member-change.ts";
import { memberRoutes } from "./member-routes.ts";
import { personalTokenRoutes } from "./personal-tokens.ts";
import { memberFor, shownUsers, userLevel } from "./shown.ts";

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
