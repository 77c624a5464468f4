import type { FastifyInstance } from "fastify";
import { ianaZone, siteBody, sitesQuery } from "../../wire/index.ts";
import type { HubContext } from "../context.ts";
import { expressions } from "../filter/expressions.ts";
import { HttpProblem, invalidField, notSupported, parsed } from "../http/problems.ts";
import type { StoredSite } from "../store/store.ts";
import { requireRight } from "../token/guard.ts";
import { both, displayLevel, pageOf, sendCount, wantsCount } from "./paging.ts";

const LEVELS = ["SiteLight", "Site", "VerboseSite"] as const;
type Level = (typeof LEVELS)[number];

export async function siteRoutes(app: FastifyInstance, { store, guard }: HubContext): Promise<void> {
  app.get("/sites", async (request, reply) => {
    const { accountId } = await guard.authenticate(request, ["datahub-api"]);
    const query = parsed(sitesQuery, request.query);
    refuseViews(query);
    const level = displayLevel(query.DisplayLevel, LEVELS, "Site");
    const ids = both(query.Id, query.Ids);
    const where = expressions("site", query);
    const { rows, total } = await store.structure.sites(accountId, { ids, where }, pageOf(query));
    if (wantsCount(request, query)) sendCount(reply, total);
    return rows.map((site) => shown(site, level));
  });

  app.get<{ Params: { id: string } }>("/sites/:id", async (request) => {
    const { accountId } = await guard.authenticate(request, ["datahub-api"]);
    const ids = [pathId(request.params.id)];
    const { rows } = await store.structure.sites(accountId, { ids }, { offset: 0, limit: 1 });
    if (rows[0] === undefined) throw notFound("site", request.params.id);
    return shown(rows[0], "VerboseSite");
  });

  app.post("/sites", async (request) => {
    const principal = await guard.authenticate(request, ["datahub-api"]);
    requireRight(principal, "structure", "Manager");
    const body = parsed(siteBody, request.body);
    requireZone(body.timeZoneId);
    return store.structure.createSite(principal.accountId, body);
  });
}

function shown(site: StoredSite, level: Level): Partial<StoredSite> {
  return level === "SiteLight" ? { id: site.id, name: site.name } : site;
}

export function requireZone(timeZoneId: string): void {
  if (ianaZone(timeZoneId) === undefined)
    throw invalidField("timeZoneId", `${timeZoneId} is neither an IANA nor a Windows time zone`);
}

/** What the hub cannot filter by yet must not look like "no filter". */
export function refuseViews(query: { readonly ViewId?: number | undefined }): void {
  if (query.ViewId !== undefined) throw notSupported("ViewId", "it has no views yet");
}

export function pathId(text: string): number {
  if (!/^\d{1,15}$/.test(text)) throw invalidField("id", `${text} is no id`);
  return Number(text);
}

export function notFound(what: string, id: string): HttpProblem {
  return new HttpProblem(404, "not-found", `no ${what} ${id} in this account`);
}
