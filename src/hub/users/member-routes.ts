/** Roles and claims of the users of an account, and its audit trail. */
import type { FastifyInstance } from "fastify";
import { z } from "zod";
import { HttpProblem } from "#wire/http-problem.ts";
import { type AuditEntry, auditEntry, auditQuery, claim, claimBody, ROLE_NAMES, role, rolesBody } from "#wire/index.ts";
import type { HubContext } from "../context.ts";
import { boundMs } from "../data/query.ts";
import { callerOf } from "../http/access.ts";
import { invalidField, parsed } from "../http/problems.ts";
import { described } from "../http/route.ts";
import type { AuditRecord } from "../store/people/audit.ts";
import { countClaims, putClaim, removeClaim } from "../store/people/claims.ts";
import { sendList } from "../structure/lists.ts";
import { notFound, pathId, type WithId } from "../structure/pages.ts";
import { isoOfMs } from "../time.ts";
import { rolesIn } from "../token/rights.ts";
import { giveRoles } from "./edit.ts";
import { changeMember } from "./member-change.ts";
import { memberFor, shownClaim, shownRole } from "./shown.ts";

interface WithClaim {
  Params: { id: string; claimType: string };
}

const TYPE_MAX = 200;
/** Of one user in an account. */
const CLAIMS_MAX = 200;

const OPTIONS = {
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

export function memberRoutes(app: FastifyInstance, context: HubContext): void {
  app.get("/user/roles", OPTIONS.roles, async () => ROLE_NAMES.map(shownRole));
  app.get<WithId>("/account/users/:id/roles", OPTIONS.rolesOf, async (request) => {
    const user = await memberFor(context, request, pathId(request.params.id));
    return rolesIn(user, callerOf(request).accountId).map(shownRole);
  });
  app.put<WithId>("/account/users/:id/roles", OPTIONS.giveRoles, async (request) => {
    const roles = parsed(rolesBody, request.body);
    const id = pathId(request.params.id);
    await changeMember(context, request, id, (change) => giveRoles(change, roles));
    return rolesIn(await memberFor(context, request, id), callerOf(request).accountId).map(shownRole);
  });
  claimRoutes(app, context);
  app.get("/account/audit", OPTIONS.audit, async (request, reply) => {
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
  app.get<WithId>("/account/users/:id/claims", OPTIONS.claims, async (request) => {
    const { id } = await memberFor(context, request, pathId(request.params.id));
    return (await people.claims(callerOf(request).accountId, [id])).map(shownClaim);
  });
  app.get<WithClaim>("/account/users/:id/claims/:claimType", OPTIONS.claim, async (request) => {
    const { id } = await memberFor(context, request, pathId(request.params.id));
    const { claimType } = request.params;
    const claims = await people.claims(callerOf(request).accountId, [id]);
    const found = claims.find(({ type }) => type === claimType);
    if (found === undefined) throw notFound(`claim of user ${id}`, claimType);
    return shownClaim(found);
  });
  app.put<WithClaim>("/account/users/:id/claims/:claimType", OPTIONS.putClaim, async (request) => {
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
  app.delete<WithClaim>("/account/users/:id/claims/:claimType", OPTIONS.removeClaim, async (request, reply) => {
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
