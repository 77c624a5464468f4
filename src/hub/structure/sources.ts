import type { FastifyInstance } from "fastify";
import { sourceBody, sourcesQuery } from "../../wire/index.ts";
import type { HubContext } from "../context.ts";
import { expressions } from "../filter/expressions.ts";
import { invalidField, parsed } from "../http/problems.ts";
import type { StoredSource, StructureStore } from "../store/store.ts";
import { requireRight } from "../token/guard.ts";
import { both, displayLevel, pageOf, sendCount, wantsCount } from "./paging.ts";
import { notFound, pathId, refuseViews, requireZone } from "./sites.ts";

const LEVELS = ["Light", "Normal", "Verbose", "Site"] as const;
type Level = (typeof LEVELS)[number];

export async function sourceRoutes(app: FastifyInstance, { store, guard }: HubContext): Promise<void> {
  app.get("/sources", async (request, reply) => {
    const { accountId } = await guard.authenticate(request, ["datahub-api"]);
    const query = parsed(sourcesQuery, request.query);
    refuseViews(query);
    const level = displayLevel(query.DisplayLevel, LEVELS, "Normal");
    const filter = {
      ids: both(query.Id, query.Ids),
      siteIds: both(query.SiteId, query.SiteIds),
      states: query.State,
      eans: both(query.Ean, query.Eans),
      serialNumbers: both(query.SerialNumber, query.SerialNumbers),
      meterNumbers: both(query.MeterNumber, query.MeterNumbers),
      names: query.Name,
      tags: query.Tags,
      where: expressions("source", query),
    };
    const { rows, total } = await store.structure.sources(accountId, filter, pageOf(query));
    if (wantsCount(request, query)) sendCount(reply, total);
    return shown(store.structure, accountId, rows, level);
  });

  app.get<{ Params: { id: string } }>("/sources/:id", async (request) => {
    const { accountId } = await guard.authenticate(request, ["datahub-api"]);
    const query = parsed(sourcesQuery, request.query);
    const level = displayLevel(query.DisplayLevel, LEVELS, "Verbose");
    const ids = [pathId(request.params.id)];
    const { rows } = await store.structure.sources(accountId, { ids }, { offset: 0, limit: 1 });
    const [source] = await shown(store.structure, accountId, rows, level);
    if (source === undefined) throw notFound("source", request.params.id);
    return source;
  });

  app.post("/sources", async (request) => {
    const principal = await guard.authenticate(request, ["datahub-api"]);
    requireRight(principal, "structure", "Manager");
    const body = parsed(sourceBody, request.body);
    if (body.timeZoneId !== undefined) requireZone(body.timeZoneId);
    const source = await store.structure.createSource(principal.accountId, body);
    if (source === null) throw invalidField("siteId", `no site ${body.siteId} in this account`);
    return source;
  });
}

/** What each level adds is "not shown" in the specification: `docs/hub-choices.md`. */
async function shown(
  structure: StructureStore,
  accountId: number,
  sources: readonly StoredSource[],
  level: Level,
): Promise<object[]> {
  if (level === "Light")
    return sources.map(({ id, name, siteId, serialNumber }) => ({ id, name, siteId, serialNumber }));
  if (level === "Verbose") return [...sources];
  if (level === "Normal") return sources.map(({ clientData: _, siteName: __, ...rest }) => rest);
  const siteIds = [...new Set(sources.map((source) => source.siteId))];
  const { rows } = await structure.sites(accountId, { ids: siteIds }, { offset: 0, limit: null });
  const sites = new Map(rows.map((site) => [site.id, site]));
  return sources.map((source) => ({ ...source, site: sites.get(source.siteId) }));
}
