import type { FastifyInstance } from "fastify";
import { z } from "zod";
import { type SITE_LEVELS, site, siteBody, siteQuery, sitesQuery } from "#wire/index.ts";
import { limitOf } from "../account-limits.ts";
import type { HubContext } from "../context.ts";
import { expressions } from "../filter/parse.ts";
import { ChangedForms } from "../forms/changed.ts";
import { shownValues, withSlices } from "../forms/shown.ts";
import { callerOf } from "../http/access.ts";
import { parsed } from "../http/problems.ts";
import { described } from "../http/route.ts";
import type { StoredSite } from "../store/records.ts";
import { requireKnown } from "./changes.ts";
import { withDefaults } from "./defaults.ts";
import { sendList } from "./lists.ts";
import { both, rowOfPath, type WithId } from "./pages.ts";
import { viewNodes } from "./view-filter.ts";

type Level = (typeof SITE_LEVELS)[number];

const OPTIONS = {
  list: described({
    access: "read",
    tag: "Sites",
    summary: "Sites of the account",
    query: sitesQuery,
    answer: z.array(site),
    example: { query: { DisplayLevel: "VerboseSite", CustomFilter: "TypeId > 0", IncludeItemsCount: true } },
  }),
  one: described({ access: "read", tag: "Sites", summary: "One site", query: siteQuery, answer: site }),
  create: described({
    access: "manage",
    tag: "Sites",
    summary: "Adds a site",
    description: "The answer is the id, a bare integer. Without a type it is one of Other.",
    body: siteBody.out.partial({ typeId: true }),
    shown: site,
    answer: z.int(),
    example: { body: { name: "Town hall", typeId: 3, timeZoneId: "Europe/Paris" } },
  }),
};

export async function siteRoutes(app: FastifyInstance, context: HubContext): Promise<void> {
  const { store } = context;
  app.get("/sites", OPTIONS.list, async (request, reply) => {
    const { accountId } = callerOf(request);
    const query = parsed(sitesQuery, request.query);
    const level = query.DisplayLevel ?? "Site";
    const ids = both(query.Id, query.Ids);
    const values = shownValues(context, query);
    const inView = await viewNodes(store, accountId, query.ViewId, "Site", values.atMs);
    const where = [...(await expressions(store, accountId, "site", query, values.atMs)), ...inView];
    return sendList(request, reply, query, {
      rows: (page) => store.structure.sites(accountId, { ids, where }, page),
      shown: async (rows) => (await withSlices(store, accountId, "site", rows, values)).map((row) => shown(row, level)),
      keyOf: ({ id }) => id,
    });
  });

  app.get<WithId>("/sites/:id", OPTIONS.one, async (request) => {
    const values = shownValues(context, parsed(siteQuery, request.query));
    const found = await rowOfPath(store.structure.sites, request, "site");
    const [one = found] = await withSlices(store, callerOf(request).accountId, "site", [found], values);
    return shown(one, "VerboseSite");
  });

  app.post("/sites", OPTIONS.create, async (request, reply) => {
    const body = parsed(siteBody, withDefaults("site", request.body));
    requireKnown(body);
    const values = new ChangedForms(context, request, reply);
    const { accountId } = callerOf(request);
    const most = limitOf(context.options, accountId, "site");
    const id = await store.structure.createSite(accountId, body, values.ofNew(body), most);
    values.warn();
    return id;
  });
}

function shown(row: StoredSite, level: Level): Partial<StoredSite> {
  if (level !== "SiteLight") return row;
  const { id, name, clientData } = row;
  return { id, name, ...(clientData === null ? {} : { clientData }) };
}
