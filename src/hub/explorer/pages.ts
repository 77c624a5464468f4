/** The front of the hub: the explorer for browsers, and the documentation for programs. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { html } from "../../web/kit/index.ts";
import { HttpProblem } from "../../wire/http-problem.ts";
import type { HubContext } from "../context.ts";
import { DOCUMENTATION_PATH } from "../http/access.ts";
import { described, type RouteFacts } from "../http/route.ts";
import type { Pages } from "../pages/page.ts";
import { admitToPage } from "../sessions/page-access.ts";
import { type Bundle, loadBundle } from "./bundle.ts";

const FILES_PATH = "/assets/explorer";
const FRONT: RouteFacts = {
  access: "visitor",
  tag: "Pages",
  summary: "The explorer, or the documentation",
  hidden: true,
};
const FILE: RouteFacts = { access: "open", tag: "Pages", summary: "A file of the explorer", hidden: true };

/** A hub that cannot build the explorer answers all the rest. */
const NO_FILES: Bundle["files"] = new Map();

/** As for the other pages, and its own script, which asks its own address for data. */
const CONTENT_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "form-action 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
].join("; ");

/** `scope`: of the pages, whose faults are pages; the files lie outside of it. */
export function explorerPages(app: FastifyInstance, scope: FastifyInstance, pages: Pages, context: HubContext): void {
  const bundle = loadedOnce();
  const { sessions } = context;
  scope.get("/", described(FRONT), async (request, reply) => {
    void reply.header("vary", "accept");
    // Relative, so that it also holds behind a proxy that puts the hub below a path.
    if (!isBrowser(request)) return reply.redirect(`${DOCUMENTATION_PATH.slice(1)}/`);
    if ((await admitToPage(sessions, "member", request, reply)) === "led") return reply;
    const { script, stylesheet } = await bundle();
    void reply.header("content-security-policy", CONTENT_POLICY);
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
    const files = await bundle().then(
      (loaded) => loaded.files,
      (thrown: unknown) => {
        context.log.error({ err: thrown }, "the explorer has no files");
        return NO_FILES;
      },
    );
    const file = files.get(request.params.file);
    if (file === undefined)
      throw new HttpProblem(404, "not-found", "the explorer has no such file; load its page again");
    const coding = codingOf(request, [...file.codings.keys()]);
    if (coding !== "identity") void reply.header("content-encoding", coding);
    void reply.headers({ vary: "accept-encoding", "cache-control": "public, max-age=31536000, immutable" });
    return sendBytes(reply.type(file.type), file.codings.get(coding));
  });
}

function sendBytes(reply: FastifyReply, content: Uint8Array | undefined): FastifyReply {
  return reply.send(content);
}

/** A build that failed is tried again. */
function loadedOnce(): () => Promise<Bundle> {
  let loaded: Promise<Bundle> | null = null;
  return () => {
    loaded ??= loadBundle().catch((thrown: unknown) => {
      loaded = null;
      throw new Error("the explorer cannot be built: run `npm ci`, which brings its libraries", { cause: thrown });
    });
    return loaded;
  };
}

/** Programs accept anything, or JSON; browsers name pages. */
function isBrowser({ headers }: FastifyRequest): boolean {
  return /\btext\/html\b/i.test(headers.accept ?? "");
}

function codingOf({ headers }: FastifyRequest, known: readonly string[]): string {
  const accepted = String(headers["accept-encoding"] ?? "")
    .split(",")
    .filter((one) => !/;\s*q=0(\.0*)?\s*$/.test(one))
    .map((one) => one.split(";")[0]?.trim().toLowerCase());
  return known.find((one) => accepted.includes(one)) ?? "identity";
}
