/** Words for what the permissions of the mapping process refuse: the runtime's own name switches that nobody can set here. */
import { wordsOf } from "../support/errors.ts";

/** By the switch of the runtime that would allow it, which its message names; an error does not always have a field for it. */
const REACHED: Readonly<Record<string, string>> = {
  net: "the network",
  "fs-read": "files",
  "fs-write": "files to write",
  "child-process": "other programs",
  worker: "threads of its own",
  addons: "native modules",
  wasi: "WASI",
};

/** The words of what a mapper threw. May throw what a hostile value throws when it is looked at. */
export function thrownWords(thrown: unknown): string {
  const denied = deniedIn(thrown);
  if (denied === null) return wordsOf(thrown);
  const { allowed, resource } = denied;
  const what = REACHED[allowed] ?? "something";
  const which = resource === "" ? "" : ` (${resource})`;
  return `it reached for ${what}${which}: a mapper reads its own file and lookup tables, and nothing else`;
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
