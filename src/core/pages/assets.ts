/** Sends the files of live pages, which browsers keep for as long as they wish, and headers of pages. */
import type { FastifyReply, FastifyRequest } from "fastify";
import type { Logger } from "../log.ts";
import type { Bundle } from "./bundle.ts";

/** A server that cannot build the files answers all the rest. */
const NO_FILES: Bundle["files"] = new Map();

/** Sends the file, and returns false where there is none of this name. */
export async function sendAsset(
  bundle: () => Promise<Bundle>,
  name: string,
  { request, reply, log }: { readonly request: FastifyRequest; readonly reply: FastifyReply; readonly log: Logger },
): Promise<boolean> {
  const files = await bundle().then(
    (loaded) => loaded.files,
    (thrown: unknown) => {
      log.error({ err: thrown }, "a page has no files");
      return NO_FILES;
    },
  );
  const file = files.get(name);
  if (file === undefined) return false;
  const coding = codingOf(request, [...file.codings.keys()]);
  if (coding !== "identity") void reply.header("content-encoding", coding);
  void reply.headers({ vary: "accept-encoding", "cache-control": "public, max-age=31536000, immutable" });
  void reply.header("x-content-type-options", "nosniff");
  await reply.type(file.type).send(file.codings.get(coding));
  return true;
}

function codingOf({ headers }: FastifyRequest, known: readonly string[]): string {
  const accepted = String(headers["accept-encoding"] ?? "")
    .split(",")
    .filter((one) => !/;\s*q=0(\.0*)?\s*$/.test(one))
    .map((one) => one.split(";")[0]?.trim().toLowerCase());
  return known.find((one) => accepted.includes(one)) ?? "identity";
}

const POLICY = {
  "default-src": "'none'",
  "style-src": "'self'",
  "img-src": "'self' data:",
  "form-action": "'self'",
  "base-uri": "'none'",
  "frame-ancestors": "'none'",
};
/** A page with a script of its own, which asks its own address for data. */
const LIVE_POLICY = { ...POLICY, "script-src": "'self'", "connect-src": "'self'" };

const policyOf = (policy: Readonly<Record<string, string>>) =>
  Object.entries(policy)
    .map((parts) => parts.join(" "))
    .join("; ");

const PAGE_HEADERS = {
  "x-frame-options": "DENY",
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "cross-origin-opener-policy": "same-origin",
  "cache-control": "no-store",
};

/** Nothing of other addresses, no frame around a page, and forms to our own address alone; a script only when live. */
export function protectPage(reply: FastifyReply, kind: "still" | "live" = "still"): void {
  const policy = policyOf(kind === "live" ? LIVE_POLICY : POLICY);
  void reply.headers({ ...PAGE_HEADERS, "content-security-policy": policy });
}
