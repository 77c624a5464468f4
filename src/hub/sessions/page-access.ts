/** Pages are for browsers: a visitor without a session is led to the sign-in instead of being refused. */
import type { FastifyReply, FastifyRequest } from "fastify";
import { localPath } from "#core/pages/browser.ts";
import { HttpProblem } from "#wire/http-problem.ts";
import type { BrowserSession, Sessions } from "./sessions.ts";

/** The visitors of a page: all; one who has begun to sign in; one who has signed in. */
export type PageAccess = "visitor" | "entering" | "member";

const PATHS = { code: "/sign-in/code", password: "/password/change" } as const;

/** Path of the page that takes the next step of a sign-in, or the one that was asked for. */
export function nextPath(missing: BrowserSession["missing"], next: string | null): string {
  if (missing === null) return next ?? "/me";
  return PATHS[missing] + (next === null ? "" : `?next=${encodeURIComponent(next)}`);
}

/** Returns the session, or null where it is not needed; `led` when the answer leads elsewhere. */
export async function admitToPage(
  sessions: Sessions,
  access: PageAccess,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<BrowserSession | null | "led"> {
  const isQuestion = request.method === "GET" || request.method === "HEAD";
  if (!isQuestion && !sessions.browser.isSameOrigin(request))
    throw new HttpProblem(403, "missing-right", "this form was sent by a page of another site, and nothing was done");
  const session = await sessions.of(request);
  if (access === "visitor" || (access === "entering" && session !== null)) return session;
  // A form cannot be sent again by an address, so that only questions are repeated after the sign-in.
  const asked = isQuestion ? localPath(request.url) : null;
  const ask = asked === null ? "?done=ended" : `?next=${encodeURIComponent(asked)}`;
  if (session === null) {
    void reply.redirect(`${sessions.browser.base}/sign-in${ask}`, 303);
    return "led";
  }
  if (session.missing === null) return session;
  void reply.redirect(sessions.browser.base + nextPath(session.missing, asked), 303);
  return "led";
}
