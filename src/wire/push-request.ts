/** Parts of a push request that the hub and HTTP intakes read alike. */
import type { FastifyRequest } from "fastify";
import { uriDecoded } from "#core/text.ts";
import { HttpProblem } from "./http-problem.ts";

const KEY_CHARACTERS_MAX = 400;

/**
 * Returns the value of the header `Idempotency-Key`, or null. Throws a 400 where it is too long or there are
 * several.
 */
export function idempotencyKeyOf(request: FastifyRequest): string | null {
  const key = request.headers["idempotency-key"];
  if (key === undefined || key === "") return null;
  if (typeof key === "string" && key.length <= KEY_CHARACTERS_MAX) return key;
  const message = `is one value of at most ${KEY_CHARACTERS_MAX} characters`;
  throw new HttpProblem(400, "invalid-request", `Idempotency-Key: ${message}`, [{ path: "Idempotency-Key", message }]);
}

/**
 * Header on the answer of a push whose Idempotency-Key came before: `true` where the answer of the earlier operation,
 * which its body names, is repeated, and nothing was stored again.
 */
export const REPLAYED_HEADER = "idempotent-replayed";

/** Header of Headgate on a push: the address at which its sender shows where the readings came from. */
export const TRACE_LINK_HEADER = "x-trace-link";
const LINK_CHARACTERS_MAX = 2_000;

/** Null without one; `refused` for what no browser should open. */
export function traceLinkOf({ headers }: FastifyRequest): string | null | "refused" {
  const link = headers[TRACE_LINK_HEADER];
  if (link === undefined || link === "") return null;
  if (typeof link !== "string" || link.length > LINK_CHARACTERS_MAX) return "refused";
  const url = URL.parse(link);
  const isWeb = url?.protocol === "https:" || url?.protocol === "http:";
  return isWeb && url.username === "" && url.password === "" ? url.href : "refused";
}

/**
 * Returns the operation id that older clients send as a bare query string, `?<id>` with no name; null without
 * one.
 */
export function bareOperationId({ url }: FastifyRequest): string | null {
  const [, raw = ""] = url.split("?", 2);
  const bare = raw.split("&").find((part) => part !== "" && !part.includes("="));
  return bare === undefined ? null : formDecoded(bare);
}

/** Decodes a value of a form (`application/x-www-form-urlencoded`); a malformed one is returned as it is. */
export function formDecoded(text: string): string {
  return uriDecoded(text.replaceAll("+", " "));
}
