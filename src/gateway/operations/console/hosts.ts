/**
 * The names under which browsers may reach the console. A page of another site whose name was made to lead to this
 * machine (DNS rebinding) asks under its own name, and is refused.
 */
import { isIP } from "node:net";
import { hostOf, isLoopback } from "#core/listen-address.ts";

/** `publicUrl`: where it is given, browsers use that or loopback alone. */
export function isKnownHost(
  host: string | undefined,
  { listen, publicUrl }: { readonly listen: string; readonly publicUrl?: string | undefined },
): boolean {
  if (host === undefined) return false;
  const name = hostOf(host).toLowerCase();
  if (isLoopback(name)) return true;
  if (publicUrl !== undefined) return host.toLowerCase() === new URL(publicUrl).host;
  // The address of a machine leads to that machine, and to no other.
  return name === hostOf(listen).toLowerCase() || isIP(name.replace(/^\[|\]$/g, "")) !== 0;
}
