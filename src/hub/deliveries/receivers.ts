/**
 * Allowed receivers of outcomes. A `webhookUrl` is an untrusted input, and the hub is inside a network: by default only
 * public addresses at port 443 (https) are reached; `webhook.hosts` allows more.
 */
import { lookup } from "node:dns";
import type { LookupFunction } from "node:net";
import ipaddr from "ipaddr.js";
import { Agent } from "undici";

/** Listed: the operator allowed it. Public: its resolved addresses are checked when the connection is made. */
export type Reach = "listed" | "public" | "refused";

export function reachOf(url: URL, hosts: readonly string[]): Reach {
  const name = nameOf(url);
  const port = url.port || (url.protocol === "https:" ? "443" : "80");
  if (hosts.some((host) => isListed(host.toLowerCase(), name, port))) return "listed";
  if (url.protocol !== "https:" || port !== "443") return "refused";
  if (ipaddr.isValid(name)) return isPublic(name) ? "public" : "refused";
  return name.includes(".") && !INTERNAL.test(name) ? "public" : "refused";
}

/** Names that only private networks resolve. */
const INTERNAL = /(?:^|\.)(?:localhost|local|localdomain|internal|intranet|lan|home\.arpa)$/;

/** `host` allows every port, `host:port` one. */
function isListed(host: string, name: string, port: string): boolean {
  return host === name || host === `[${name}]` || host === `${name}:${port}` || host === `[${name}]:${port}`;
}

/** Without the brackets of an IPv6 address, and without a trailing dot. */
function nameOf({ hostname }: URL): string {
  return hostname
    .toLowerCase()
    .replace(/^\[|\]$/g, "")
    .replace(/\.$/, "");
}

/**
 * The globally assigned IPv6 addresses; all others have special purposes, or are old forms that carry an IPv4 address.
 */
const GLOBAL_IPV6 = ipaddr.parseCIDR("2000::/3");

export function isPublic(text: string): boolean {
  if (!ipaddr.isValid(text)) return false;
  const address = ipaddr.process(text);
  return address.range() === "unicast" && (address.kind() === "ipv4" || address.match(GLOBAL_IPV6));
}

/** The signature of `lookup` of `node:dns` with all addresses of a name. */
export type LookUpAll = (
  name: string,
  options: { readonly all: true },
  done: (
    fault: NodeJS.ErrnoException | null,
    addresses: readonly { readonly address: string; readonly family: number }[],
  ) => void,
) => void;

/**
 * For connections to public receivers: every address of the name must be public, and the connection uses one of the
 * checked addresses. A literal address is never looked up; `reachOf` has checked it.
 */
export function publicLookup(lookUpAll: LookUpAll = lookup as LookUpAll): LookupFunction {
  return (name, options, done) =>
    lookUpAll(name, { ...options, all: true }, (fault, addresses) => {
      const [first] = addresses ?? [];
      if (fault !== null || first === undefined) return done(fault ?? new Error(`${name} has no address`), []);
      const inner = addresses.find(({ address }) => !isPublic(address));
      if (inner !== undefined)
        return done(new Error(`${name} resolves to ${inner.address}, which is no public address`), []);
      if (options.all === true) done(null, [...addresses]);
      else done(null, first.address, first.family);
    });
}

/** Connections to receivers, by their reach. None of them follows redirects. */
export function createReceivers(lookUpAll?: LookUpAll) {
  const agents = {
    public: new Agent({ connect: { lookup: publicLookup(lookUpAll) } }),
    listed: new Agent(),
  };
  return {
    agentFor: (reach: Exclude<Reach, "refused">): Agent => agents[reach],
    close: async () => void (await Promise.all([agents.public.destroy(), agents.listed.destroy()])),
  };
}
