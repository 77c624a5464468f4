/** The headers `Authorization` and `Api-Version` of a request, as the hub and HTTP intakes read them. */
import type { FastifyRequest } from "fastify";
import { HttpProblem, unauthenticated } from "./http-problem.ts";
import { API_VERSION } from "./problem.ts";

/**
 * Returns the scheme in lower case and the rest of `Authorization`; both empty where it is missing or
 * malformed.
 */
export function authorizationOf(request: FastifyRequest): readonly [scheme: string, rest: string] {
  const [, scheme = "", rest = ""] = /^(\S+)\s+(\S+)\s*$/.exec(request.headers.authorization ?? "") ?? [];
  return [scheme.toLowerCase(), rest];
}

/** Reads Basic credentials (RFC 7617). Throws a 401 where they are malformed. */
export function basicCredentials(text: string): { readonly name: string; readonly password: string } {
  const decoded = Buffer.from(text, "base64").toString("utf8");
  const colon = decoded.indexOf(":");
  if (colon < 0 || decoded.includes("\0")) throw unauthenticated("Basic credentials are `user:password` in base64");
  return { name: decoded.slice(0, colon), password: decoded.slice(colon + 1) };
}

/**
 * Throws a 400 for another `Api-Version`, which would silently be read wrongly. A request without the header
 * uses the newest version, which is this one.
 *
 * @param server What answers: `hub` or `intake`.
 */
export function checkApiVersion(request: FastifyRequest, server: string): void {
  const version = request.headers["api-version"];
  if (version === undefined || version === API_VERSION) return;
  throw new HttpProblem(
    400,
    "unsupported-api-version",
    `this ${server} speaks Api-Version ${API_VERSION}, not ${version}`,
  );
}
