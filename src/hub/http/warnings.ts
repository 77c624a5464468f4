/** Warnings on a 200: a header of Headgate, since the specification has no place for them. */
import type { FastifyReply } from "fastify";
import { WARNING_HEADER } from "#wire/index.ts";

/** Limits on the names that a warning quotes, and on the characters of each; further names are counted. */
const NAMED_MAX = 10;
const CHARACTERS_MAX = 120;

/** Several warnings of one response share the header. In ASCII, as headers require. */
export function warn(reply: FastifyReply, warning: string): void {
  const before = reply.getHeader(WARNING_HEADER);
  const text = warning.replaceAll(/[^ -~]/g, "?");
  void reply.header(WARNING_HEADER, before === undefined ? text : `${before}; ${text}`);
}

/** An unknown filter filters nothing, and the full list would look like the filtered one. */
export function warnOfUnknown(reply: FastifyReply, unknown: readonly string[], what = "parameter"): void {
  if (unknown.length === 0) return;
  const named = unknown.slice(0, NAMED_MAX).map((name) => name.slice(0, CHARACTERS_MAX));
  const more = unknown.length > NAMED_MAX ? ` and ${unknown.length - NAMED_MAX} more` : "";
  warn(reply, `ignored, since this address knows no such ${what}: ${named.join(", ")}${more}`);
}
