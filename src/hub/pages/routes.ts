/** Pages for people: sign-in, and what is their own. */
import type { FastifyInstance } from "fastify";
import { STYLESHEET } from "#pages/kit/index.ts";
import type { HubContext } from "../context.ts";
import { explorerPages } from "../explorer/pages.ts";
import { described } from "../http/route.ts";
import { confirmAddressPages } from "./confirm-address.ts";
import { forgottenPages } from "./forgotten.ts";
import { STYLESHEET_PATH } from "./frame.ts";
import { invitationPages } from "./invitation.ts";
import { mePages } from "./me.ts";
import { oidcPages } from "./oidc.ts";
import { openPages } from "./page.ts";
import { passwordPages } from "./password.ts";
import { peoplePages } from "./people.ts";
import { personPages } from "./person.ts";
import { secondFactorPages } from "./second-factor.ts";
import { signInPages } from "./sign-in.ts";
import { tokenPages } from "./tokens.ts";

export async function pageRoutes(app: FastifyInstance, context: HubContext): Promise<void> {
  const facts = { access: "open", tag: "Pages", summary: "The stylesheet of all pages", hidden: true } as const;
  app.get(STYLESHEET_PATH, described(facts), (_request, reply) => {
    void reply.header("cache-control", "public, max-age=31536000, immutable");
    return reply.type("text/css; charset=utf-8").send(STYLESHEET);
  });
  await app.register(async (scope) => {
    const pages = await openPages(scope, context);
    signInPages(pages, context);
    passwordPages(pages, context);
    forgottenPages(pages, context);
    confirmAddressPages(pages, context);
    invitationPages(pages, context);
    peoplePages(pages, context);
    personPages(pages, context);
    mePages(pages, context);
    secondFactorPages(pages, context);
    tokenPages(pages, context);
    oidcPages(scope, pages, context);
    explorerPages(app, scope, pages, context);
  });
}
