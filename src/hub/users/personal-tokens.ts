/** Personal API tokens of the caller, in the account of the token. */
import type { FastifyInstance, FastifyRequest } from "fastify";
import { z } from "zod";
import { newPersonalToken, type PersonalToken, personalToken, personalTokenBody } from "#wire/index.ts";
import type { HubContext } from "../context.ts";
import { callerOf } from "../http/access.ts";
import { parsed } from "../http/problems.ts";
import { described } from "../http/route.ts";
import { actingOf } from "../invitations/actor.ts";
import type { ApiTokenRecord } from "../store/people/api-tokens.ts";
import { notFound, pathId, type WithId } from "../structure/pages.ts";
import { isoOfMs } from "../time.ts";

import { forbidden } from "./member-change.ts";
import { endToken, makeToken } from "./token-changes.ts";

const DAY_MS = 86_400_000;

const OPTIONS = {
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

export function personalTokenRoutes(app: FastifyInstance, context: HubContext): void {
  const { people } = context.store;
  app.get("/user/tokens", OPTIONS.list, async (request) => {
    const { user, accountId } = callerOf(request);
    return (await people.apiTokens(user.id, accountId)).map(shownToken);
  });
  app.post("/user/tokens", OPTIONS.create, (request, reply) => {
    void reply.header("cache-control", "no-store");
    return create(context, request);
  });
  app.delete<WithId>("/user/tokens/:id", OPTIONS.remove, async (request, reply) => {
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
