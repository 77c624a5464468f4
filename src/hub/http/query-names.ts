/** Names of query parameters as clients write them, brought to those that the address knows (*Clients*). */
import type { FastifyInstance } from "fastify";
import { knownNames } from "#wire/caseless.ts";

/** Names of other services, in lower case, for parameters of the hub. */
const SYNONYMS: ReadonlyMap<string, string> = new Map([
  ["harddelete", "WithData"],
  ["eannumber", "Ean"],
  ["eannumbers", "Eans"],
  ["pagenumber", "Paging.PageNumber"],
  ["itemsperpage", "Paging.ItemsPerPage"],
]);

/** Called after the access rules, so that nothing is done for strangers. */
export function installQueryNames(app: FastifyInstance): void {
  app.addHook("onRequest", async (request) => {
    const { facts } = request.routeOptions.config;
    const schema = facts?.query ?? facts?.body;
    const names = Object.keys(request.query as object);
    if (schema === undefined || names.length === 0) return;
    const known = new Set(knownNames(schema).map((name) => name.toLowerCase()));
    const resources = (request.routeOptions.url ?? "").toLowerCase().match(/(?<=\/)\w+/g) ?? [];
    // A removal by a name that was only meant alike could not be undone.
    const plurals = request.method !== "DELETE";
    const query = renamed(request.query as object, (name) => ownName(name, { known, resources, plurals }));
    request.query = request.method === "GET" ? withoutEmptyIds(query) : query;
  });
}

/** Facts of one address that decide about a name. */
interface Address {
  /** In lower case. */
  readonly known: ReadonlySet<string>;
  /** Words of the address, in lower case: `account` and `users` of `/account/users`. */
  readonly resources: readonly string[];
  readonly plurals: boolean;
}

/** The same name where the address knows neither it nor what it stands for. */
function ownName(name: string, address: Address): string {
  const { known, resources, plurals } = address;
  if (known.has(name.toLowerCase())) return name;
  const [, prefix = "", bare = name] = /^(\w+)\.(.+)$/.exec(name) ?? [];
  const ofResources = resources.flatMap(bothNumbers).map((word) => `${word}filter`);
  const prefixes = ["", "filter", "parameters", "options", ...ofResources];
  if (!prefixes.includes(prefix.toLowerCase())) return name;
  const lower = bare.toLowerCase();
  const candidates = [bare, SYNONYMS.get(lower) ?? bare, ...(plurals ? relatives(lower, resources) : [])];
  return candidates.find((candidate) => known.has(candidate.toLowerCase())) ?? name;
}

/** The other number of a name, and `id` for the id of the listed resource itself (`siteIds` of `/sites`). */
function relatives(lower: string, resources: readonly string[]): readonly string[] {
  const own = resources.flatMap(bothNumbers).find((word) => [`${word}id`, `${word}ids`].includes(lower));
  return [...bothNumbers(lower), ...(own === undefined ? [] : bothNumbers(lower.slice(own.length)))];
}

function bothNumbers(word: string): readonly string[] {
  const singular = word.replace(/s$/, "");
  return [singular, `${singular}s`];
}

/** Clients write `SiteId=` where they choose no site. */
function withoutEmptyIds(query: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const given = Object.entries(query).map(([name, value]) => {
    if (!/ids?$/i.test(name)) return [name, value] as const;
    const ids = [value].flat().filter((id) => id !== "");
    return [name, Array.isArray(value) ? ids : ids[0]] as const;
  });
  return Object.fromEntries(given.filter(([, value]) => value !== undefined && [value].flat().length > 0));
}

/** Two names that become one are that name given twice: a list where lists are allowed, an error elsewhere. */
function renamed(query: object, nameOf: (name: string) => string): Record<string, unknown> {
  const out: Record<string, unknown> = Object.create(null);
  for (const [name, value] of Object.entries(query)) {
    const own = nameOf(name);
    out[own] = own in out ? [out[own], value].flat() : value;
  }
  return out;
}
