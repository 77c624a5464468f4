/**
 * Messages for accesses that the permissions of the mapping process deny: the runtime's own message names switches that
 * no user can set here.
 */
import { wordsOf } from "#core/errors.ts";

/**
 * Keyed by the switch of the runtime that would allow the access; the runtime's message always names it, a field of the
 * error does not.
 */
const REACHED: Readonly<Record<string, string>> = {
  net: "the network",
  "fs-read": "files",
  "fs-write": "files to write",
  "child-process": "other programs",
  worker: "threads of its own",
  addons: "native modules",
  wasi: "WASI",
};

/** The message of a value that a mapper threw. May throw when a hostile value is inspected. */
export function thrownWords(thrown: unknown): string {
  const denied = deniedIn(thrown);
  if (denied === null) return wordsOf(thrown);
  const { allowed, resource } = denied;
  const what = REACHED[allowed] ?? "something";
  const which = resource === "" ? "" : ` (${resource})`;
  return (
    `it tried to access ${what}${which}: a mapper gets its file and its lookup tables from Headgate, and has no ` +
    "network, no other programs and no folder of its own"
  );
}

function deniedIn(thrown: unknown): { readonly allowed: string; readonly resource: string } | null {
  for (let at = thrown; at instanceof Error; at = at.cause) {
    const { code, resource, message } = at as Error & Readonly<Record<string, unknown>>;
    if (code !== "ERR_ACCESS_DENIED") continue;
    const [, allowed = ""] = /--allow-([a-z-]+)/.exec(message) ?? [];
    return { allowed, resource: typeof resource === "string" ? resource : "" };
  }
  return null;
}
