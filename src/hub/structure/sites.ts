import type { FastifyInstance } from "fastify";
import { z } from "zod";
import { site, siteBody, sitesQuery } from "../../wire/index.ts";
import type { HubContext } from "../context.ts";
import { expressions } from "../filter/expressions.ts";
import { callerOf } from "../http/access.ts";
import { parsed } from "../http/problems.ts";
import { described } from "../http/route.ts";
import type { StoredSite } from "../store/store.ts";
import { requireKnown } from "./known.ts";
import { both, displayLevel, pageOf, rowOfPath, sendCount, type WithId, wantsCount } from "./pages.ts";
import { viewNodes } from "./views.ts";

const LEVELS = ["SiteLight", "Site", "VerboseSite"] as const;
type Level = (typeof LEVELS)[number];

const OPTIONS = {
  list: described({
    access: "read",
    tag: "Sites",
    summary: "Sites of the account",
    query: sitesQuery,
    answer: z.array(site),
    example: { query: { DisplayLevel: "VerboseSite", CustomFilter: "TypeId > 0", IncludeItemsCount: true } },
  }),
  one: described({ access: "read", tag: "Sites", summary: "One site", answer: site }),
  create: described({
    access: "manage",
    tag: "Sites",
    summary: "Adds a site",
    description: "The answer is the id, a bare integer.",
    body: siteBody,
    answer: z.int(),
    example: { body: { name: "Town hall", typeId: 3, timeZoneId: "Europe/Paris" } },
  }),
};

export async function siteRoutes(app: FastifyInstance, { store }: HubContext): Promise<void> {
  app.get("/sites", OPTIONS.list, async (request, reply) => {
    const { accountId } = callerOf(request);
    const query = parsed(sitesQuery, request.query);
    const level = displayLevel(query.DisplayLevel, LEVELS, "Site");
    const ids = both(query.Id, query.Ids);
    const inView = await viewNodes(store, accountId, query.ViewId, "Site");
    const where = [...expressions("site", query), ...inView];
    const { rows, total } = await store.structure.sites(accountId, { ids, where }, pageOf(query));
    if (wantsCount(request, query)) sendCount(reply, total);
    return rows.map((row) => shown(row, level));
  });

  app.get<WithId>("/sites/:id", OPTIONS.one, async (request) =>
    shown(await rowOfPath(store.structure.sites, request, "site"), "VerboseSite"),
  );

  app.post("/sites", OPTIONS.create, async (request) => {
    const body = parsed(siteBody, request.body);
    requireKnown(body);
    return store.structure.createSite(callerOf(request).accountId, body);
  });
}

function shown(row: StoredSite, level: Level): Partial<StoredSite> {
  return level === "SiteLight" ? { id: row.id, name: row.name } : row;
}
