/** GET {base_url}/search: what the explorer finds sites, sources and variables with (an extension). */
import type { FastifyInstance } from "fastify";
import { z } from "zod";
import { found, searchQuery } from "#wire/search.ts";
import type { HubContext } from "../context.ts";
import { callerOf } from "../http/access.ts";
import { invalidField, parsed } from "../http/problems.ts";
import { described } from "../http/route.ts";
import { wordsOf } from "./words.ts";

const ITEMS_DEFAULT = 50;
const ITEMS_MAX = 200;

const OPTIONS = described({
  access: "read",
  tag: "Search",
  summary: "Sites, sources and variables by their words",
  description:
    "An extension of Headgate. Words are the beginnings of those in names, serial numbers, EAN, meter numbers, " +
    "mappingConfig, tags, addresses and units; what is below a site or a source has its words, too. Sites come " +
    "first, then sources, then variables; whole words before their beginnings.",
  query: searchQuery,
  answer: z.array(found),
  example: { query: { SearchText: "MTR-0042 kWh" } },
});

export async function searchRoutes(app: FastifyInstance, { store }: HubContext): Promise<void> {
  app.get("/search", OPTIONS, async (request) => {
    const query = parsed(searchQuery, request.query);
    const items = query["Paging.ItemsPerPage"] ?? ITEMS_DEFAULT;
    if (items < 1 || items > ITEMS_MAX) throw invalidField("Paging.ItemsPerPage", `is between 1 and ${ITEMS_MAX}`);
    const words = wordsOf(query.SearchText);
    return words.length === 0 ? [] : store.search.find(callerOf(request).accountId, words, items);
  });
}
