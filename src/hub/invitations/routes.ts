/**
 * Invitations of an account (an extension of Headgate, `docs/hub/people.md`, *Invitations and mail*), and the link to
 * a new password (specification, *Other endpoints*).
 */
import type { FastifyInstance, FastifyRequest } from "fastify";
import { z } from "zod";
import { HttpProblem } from "#wire/http-problem.ts";
import {
  type Invitation,
  invitation,
  invitationBody,
  invitationsQuery,
  passwordLink,
  passwordLinkQuery,
} from "#wire/index.ts";
import type { HubContext } from "../context.ts";
import { callerOf } from "../http/access.ts";
import { parsed } from "../http/problems.ts";
import { described } from "../http/route.ts";
import type { InvitationRecord } from "../store/mail/invitations.ts";
import { sendList } from "../structure/lists.ts";
import { pathId, type WithId } from "../structure/pages.ts";
import { isoOfMs } from "../time.ts";
import { actingOf } from "./actor.ts";
import { invite, sendAgain, withdraw } from "./invite.ts";
import { makePasswordLink } from "./password-link.ts";

const TAG = "Invitations";

const OPTIONS = {
  list: described({
    access: "people",
    tag: TAG,
    summary: "Invitations of the account, the newest first",
    query: invitationsQuery,
    answer: z.array(invitation),
    example: { query: { State: "Open" } },
  }),
  create: described({
    access: "people",
    tag: TAG,
    summary: "Invites a person by e-mail",
    description:
      "The mail has a link, at which the person accepts. A person who is no user of the hub becomes one and gets a " +
      "temporary password by a second mail; a user of the hub may enter one account more.",
    body: invitationBody,
    answer: invitation,
    example: { body: { email: "bob@example.com", roles: ["User"] } },
  }),
  send: described({
    access: "people",
    tag: TAG,
    summary: "Sends the mail of an invitation again, with a new link",
    description: "The link before no longer works. Once a minute; also for one that has expired.",
    answer: invitation,
  }),
  withdraw: described({ access: "people", tag: TAG, summary: "Withdraws an invitation", status: 204 }),
  link: described({
    access: "own",
    tag: "Users",
    summary: "Makes a link at which a user sets a new password",
    query: passwordLinkQuery,
    answer: passwordLink,
    example: { query: {} },
  }),
  password: described({
    access: "own",
    tag: "Users",
    summary: "No longer changes passwords",
    description: "`GET /user/updatePasswordLink` makes a link to the page that does.",
    status: 410,
  }),
};

export async function invitationRoutes(app: FastifyInstance, context: HubContext): Promise<void> {
  const { store, clock } = context;
  app.get("/account/invitations", OPTIONS.list, async (request, reply) => {
    const query = parsed(invitationsQuery, request.query);
    const { accountId } = callerOf(request);
    const nowMs = clock.now().epochMilliseconds;
    return sendList(request, reply, query, {
      rows: (page) => store.invitations.list(accountId, { state: query.State }, nowMs, page),
      shown: (rows) => rows.map(shownOf),
      keyOf: ({ id }) => id,
    });
  });
  app.post("/account/invitations", OPTIONS.create, async (request) =>
    shownOf(await invite(context, actingOf(request), parsed(invitationBody, request.body))),
  );
  app.post<WithId>("/account/invitations/:id/send", OPTIONS.send, async (request) =>
    shownOf(await sendAgain(context, actingOf(request), pathId(request.params.id))),
  );
  app.delete<WithId>("/account/invitations/:id", OPTIONS.withdraw, async (request, reply) => {
    await withdraw(context, actingOf(request), pathId(request.params.id));
    return reply.code(204).send();
  });
  app.get("/user/updatePasswordLink", OPTIONS.link, (request, reply) => {
    void reply.header("cache-control", "no-store");
    return linkFor(context, request);
  });
  app.post("/user/password", OPTIONS.password, async () => {
    const why = "POST /user/password no longer changes passwords: open the link of GET /user/updatePasswordLink";
    throw new HttpProblem(410, "gone", why);
  });
}

async function linkFor(context: HubContext, request: FastifyRequest): Promise<z.infer<typeof passwordLink>> {
  const { UserId = null } = parsed(passwordLinkQuery, request.query);
  // Credentials of a program must not lead to those of its user.
  if (callerOf(request).isPersonal === true)
    throw new HttpProblem(403, "missing-right", "a link to a new password needs an access token, not a personal token");
  const { link, expiresMs } = await makePasswordLink(context, actingOf(request), UserId);
  return { link, expires: isoOfMs(expiresMs) };
}

function shownOf(record: InvitationRecord): Invitation {
  const { id, email, roles, firstName, lastName, state, inviterName, createdMs, expiresMs, userId, mail } = record;
  return {
    ...{ id, email, roles: [...roles], firstName, lastName, state },
    invitedBy: inviterName,
    created: isoOfMs(createdMs),
    expires: isoOfMs(expiresMs),
    userId,
    mail: mail?.state ?? null,
    mailFailure: mail?.failure ?? null,
  };
}
