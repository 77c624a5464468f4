/** GET {base_url}/search: what the explorer finds sites, sources and variables with (an extension). */
import type { FastifyInstance } from "fastify";
import { z } from "zod";
import { UNITS } from "#wire/index.ts";
import { found, searchQuery } from "#wire/search.ts";
import type { HubContext } from "../context.ts";
import { callerOf } from "../http/access.ts";
import { invalidField, parsed } from "../http/problems.ts";
import { described } from "../http/route.ts";
import type { SearchWord } from "../store/database.ts";

const WORDS_MAX = 10;
/** As in the index of PostgreSQL. */
const CHARACTERS_MAX = 60;

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

// The words of a search, as the index of each database has them.

/** Empty when nothing can be found. */
function wordsOf(text: string): readonly SearchWord[] {
  const words = text.trim().split(/\s+/).slice(0, WORDS_MAX);
  return words.flatMap((word): SearchWord[] => {
    const tokens = tokensOf(word);
    const unitIds = unitsOf(word);
    return tokens.length === 0 && unitIds.length === 0 ? [] : [{ tokens, unitIds }];
  });
}

/** Without case and accents, cut at whatever is no letter or digit: safe in the question of either database. */
function tokensOf(word: string): readonly string[] {
  const plain = word.normalize("NFD").replace(/[\u0300-\u036f]/g, "");
  const tokens = plain
    .toLowerCase()
    .normalize("NFC")
    .split(/[^\p{L}\p{N}]+/u);
  return tokens.filter((token) => token !== "").map((token) => token.slice(0, CHARACTERS_MAX));
}

/** Units by their symbol or name, whatever the case: a person who searches `kwh` means kWh. */
function unitsOf(word: string): readonly number[] {
  const folded = word.normalize("NFKC").toLowerCase();
  return UNITS.filter(({ symbol, name }) =>
    [symbol, name].some((one) => one.normalize("NFKC").toLowerCase() === folded),
  ).map(({ id }) => id);
}
