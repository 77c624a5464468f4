/** The front of the hub: the explorer for browsers, and the documentation for programs. */
import type { FastifyInstance, FastifyRequest } from "fastify";
import { protectPage, sendAsset } from "#core/pages/assets.ts";
import { bundleOf } from "#core/pages/bundle.ts";
import { html } from "#pages/kit/index.ts";
import { HttpProblem } from "#wire/http-problem.ts";
import type { HubContext } from "../context.ts";
import { DOCUMENTATION_PATH } from "../http/access.ts";
import { described, type RouteFacts } from "../http/route.ts";
import type { Pages } from "../pages/page.ts";
import { admitToPage } from "../sessions/sessions.ts";

const FILES_PATH = "/assets/explorer";
const FRONT: RouteFacts = {
  access: "visitor",
  tag: "Pages",
  summary: "The explorer, or the documentation",
  hidden: true,
};
const FILE: RouteFacts = { access: "open", tag: "Pages", summary: "A file of the explorer", hidden: true };

/** `scope`: of the pages, whose faults are pages; the files lie outside of it. */
export function explorerPages(app: FastifyInstance, scope: FastifyInstance, pages: Pages, context: HubContext): void {
  const bundle = bundleOf("explorer");
  const { sessions } = context;
  scope.get("/", described(FRONT), async (request, reply) => {
    void reply.header("vary", "accept");
    // Relative, so that it also holds behind a proxy that puts the hub below a path.
    if (!isBrowser(request)) return reply.redirect(`${DOCUMENTATION_PATH.slice(1)}/`);
    if ((await admitToPage(sessions, "member", request, reply)) === "led") return reply;
    const { script, stylesheet } = await bundle();
    protectPage(reply, "live");
    const { base } = sessions.browser;
    const words = "The explorer needs JavaScript; the interface of the hub works without.";
    return pages.send(request, reply, {
      title: "Explorer",
      isFull: true,
      scripts: [`${base}${FILES_PATH}/${script}`],
      stylesheets: [`${base}${FILES_PATH}/${stylesheet}`],
      children: html`<div id="explorer" data-base=${base}><noscript>${words}</noscript></div>`,
    });
  });
  app.get<{ Params: { file: string } }>(`${FILES_PATH}/:file`, described(FILE), async (request, reply) => {
    const { log } = context;
    if (await sendAsset(bundle, request.params.file, { request, reply, log })) return reply;
    throw new HttpProblem(404, "not-found", "the explorer has no such file; load its page again");
  });
}

/** Programs accept anything, or JSON; browsers name pages. */
function isBrowser({ headers }: FastifyRequest): boolean {
  return /\btext\/html\b/i.test(headers.accept ?? "");
}
