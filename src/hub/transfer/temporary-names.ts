/** Names under which senders write files that are not complete yet. */
import { basename } from "node:path";

export function isTemporary(path: string, { temporaryNames }: { readonly temporaryNames: readonly string[] }): boolean {
  const name = basename(path).toLowerCase();
  return temporaryNames.some((pattern) => {
    const part = pattern.toLowerCase().replace("*", "");
    return pattern.startsWith("*") ? name.endsWith(part) : name.startsWith(part);
  });
}
