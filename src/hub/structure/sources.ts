import type { FastifyInstance } from "fastify";
import { z } from "zod";
import { type SOURCE_LEVELS, source, sourceBody, sourceQuery, sourcesQuery } from "#wire/index.ts";
import { limitOf } from "../account-limits.ts";
import type { HubContext } from "../context.ts";
import { expressions } from "../filter/parse.ts";
import { ChangedForms } from "../forms/changed.ts";
import { type ShownValues, shownValues, withSlices } from "../forms/shown.ts";
import { callerOf } from "../http/access.ts";
import { changedFixed, judgeFixed, withValues } from "../http/fixed-fields.ts";
import { invalidField, parsed } from "../http/problems.ts";
import { described } from "../http/route.ts";
import type { StoredSource } from "../store/records.ts";
import type { HubStore } from "../store/store.ts";
import { requireKnown } from "./changes.ts";
import { withDefaults } from "./defaults.ts";
import { newWithEan, withEanNumber } from "./ean-number.ts";
import { sendList } from "./lists.ts";
import { both, rowOfPath, type WithId } from "./pages.ts";
import { viewNodes } from "./view-filter.ts";

type Level = (typeof SOURCE_LEVELS)[number];

const OPTIONS = {
  list: described({
    access: "read",
    tag: "Sources",
    summary: "Sources of the account",
    query: sourcesQuery,
    answer: z.array(source),
    example: {
      query: {
        DisplayLevel: "Site",
        State: ["Enabled"],
        CustomFilter: "Name <> 'x'",
        "Paging.PageNumber": 0,
      },
    },
  }),
  one: described({
    access: "read",
    tag: "Sources",
    summary: "One source",
    query: sourceQuery,
    answer: source,
    example: { query: { DisplayLevel: "Verbose" } },
  }),
  create: described({
    access: "manage",
    tag: "Sources",
    summary: "Adds a source",
    description:
      "The answer is the whole source. Without a name it has its serial number, EAN or meter number as one; " +
      "without a type it is one of Pushed Data.",
    body: sourceBody.out.partial({ name: true, sourceTypeId: true }),
    answer: source,
    example: {
      body: {
        name: "Main meter",
        siteId: 1,
        serialNumber: "MTR-0042",
        sourceTypeId: 1,
        energyTypeId: 1,
        timeZoneId: "Europe/Paris",
        tags: ["basement"],
      },
    },
  }),
};

export async function sourceRoutes(app: FastifyInstance, context: HubContext): Promise<void> {
  const { store } = context;
  app.get("/sources", OPTIONS.list, async (request, reply) => {
    const { accountId } = callerOf(request);
    const query = parsed(sourcesQuery, request.query);
    const level = query.DisplayLevel ?? "Normal";
    const values = shownValues(context, query);
    const inView = await viewNodes(store, accountId, query.ViewId, "Source", values.atMs);
    const filter = {
      ids: both(query.Id, query.Ids),
      siteIds: both(query.SiteId, query.SiteIds),
      states: both(query.State, query.States)?.map(spelledState),
      eans: both(query.Ean, query.Eans),
      serialNumbers: both(query.SerialNumber, query.SerialNumbers),
      meterNumbers: both(query.MeterNumber, query.MeterNumbers),
      names: both(query.Name, query.Names),
      tags: query.Tags,
      where: [...(await expressions(store, accountId, "source", query, values.atMs)), ...inView],
    };
    return sendList(request, reply, query, {
      rows: (page) => store.structure.sources(accountId, filter, page),
      shown: (rows) => shown(store, accountId, rows, level, values),
      keyOf: ({ id }) => id,
    });
  });

  app.get<WithId>("/sources/:id", OPTIONS.one, async (request) => {
    const query = parsed(sourceQuery, request.query);
    const level = query.DisplayLevel ?? "Verbose";
    const found = await rowOfPath(store.structure.sources, request, "source");
    const values = shownValues(context, query);
    const [one] = await shown(store, callerOf(request).accountId, [found], level, values);
    return one;
  });

  app.post("/sources", OPTIONS.create, async (request, reply) => {
    const fixed = changedFixed(withValues(request.body), { state: "Enabled" }, ["state"]);
    judgeFixed(request, reply, context.options, fixed);
    const body = parsed(sourceBody, withDefaults("source", newWithEan(request.body)));
    requireKnown(body);
    const values = new ChangedForms(context, request, reply);
    const { accountId } = callerOf(request);
    const most = limitOf(context.options, accountId, "source");
    const made = await store.structure.createSource(accountId, body, values.ofNew(body), most);
    if (made === null) throw invalidField("siteId", `no site ${body.siteId} in this account`);
    return withEanNumber(await values.shown("source", made));
  });
}

/** States are a closed list with a single entry so far (`docs/hub/structure.md`), and match in any case. */
function spelledState(state: string): string {
  return state.toLowerCase() === "enabled" ? "Enabled" : state;
}

/** The fields that each level adds are "not shown" in the specification: `docs/hub/structure.md`. */
async function shown(
  store: HubStore,
  accountId: number,
  listed: readonly StoredSource[],
  level: Level,
  values: ShownValues,
): Promise<object[]> {
  const sources = (await withSlices(store, accountId, "source", listed, values)).map(withEanNumber);
  if (level === "Light")
    return sources.map(({ id, name, siteId, serialNumber, clientData }) => ({
      ...{ id, name, siteId, serialNumber },
      ...(clientData === null ? {} : { clientData }),
    }));
  if (level === "Verbose") return [...sources];
  if (level === "Normal") return sources.map(({ siteName: _, ...rest }) => rest);
  const siteIds = [...new Set(sources.map((row) => row.siteId))];
  const { rows } = await store.structure.sites(accountId, { ids: siteIds }, { offset: 0, limit: null });
  const sites = await withSlices(store, accountId, "site", rows, values);
  const byId = new Map(sites.map((site) => [site.id, site]));
  return sources.map((row) => ({ ...row, site: byId.get(row.siteId) }));
}
