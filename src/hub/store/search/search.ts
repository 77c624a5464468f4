/** Sites, sources and variables by the words that triggers of the database keep of them. */
import type { Found } from "#wire/search.ts";
import { type Database, type Row, rows, type SearchedTable, type SearchWord, type Steps } from "../database.ts";

export interface SearchStore {
  /** At most `limit`: sites, then sources, then variables. */
  find(accountId: number, words: readonly SearchWord[], limit: number): Promise<readonly Found[]>;
}

const OF_SOURCE = "source.id AS source_id, source.name AS source_name, source.serial_number";
const OF_SITE = "site.id AS site_id, site.name AS site_name";
const SELECTS = {
  site: { entity: "Site", sql: `site.id, site.name, ${OF_SITE} FROM site` },
  source: {
    entity: "Source",
    sql: `source.id, source.name, ${OF_SOURCE}, ${OF_SITE} FROM source JOIN site ON site.id = source.site_id`,
  },
  variable: {
    entity: "Variable",
    sql: `variable.id, variable.name, variable.unit_id, ${OF_SOURCE}, ${OF_SITE} FROM variable
      JOIN source ON source.id = variable.source_id JOIN site ON site.id = source.site_id`,
  },
} as const;
const TABLES = ["site", "source", "variable"] as const;

export function createSearchStore({ askApart, dialect }: Database): SearchStore {
  const { found, question } = dialect.search;
  function* foundIn(
    accountId: number,
    table: SearchedTable,
    asked: string,
    limit: number,
  ): Steps<readonly (readonly [string, Found])[]> {
    const { sql, entity } = SELECTS[table];
    const where = `WHERE ${table}.account_id = ? AND ${found(table)} ORDER BY ${table}.id LIMIT ?`;
    const list = yield* rows(`SELECT ${sql} ${where}`, accountId, asked, limit);
    return list.map((row) => [`${entity} ${row["id"]}`, foundOf(row, entity)] as const);
  }
  return {
    find: (accountId, words, limit) =>
      askApart(accountId, function* (): Steps<readonly Found[]> {
        const all: Found[] = [];
        for (const table of TABLES) {
          // Whole words first: the meter 12 before the meters 120 to 129.
          const own = new Map<string, Found>();
          for (const isWhole of [true, false]) {
            const rest = limit - all.length;
            if (own.size >= rest) break;
            const asked = question(accountId, words, isWhole);
            for (const [key, one] of yield* foundIn(accountId, table, asked, rest)) own.set(key, own.get(key) ?? one);
          }
          all.push(...[...own.values()].slice(0, limit - all.length));
        }
        return all;
      }),
  };
}

function foundOf(row: Row, entity: Found["entity"]): Found {
  const {
    id,
    name,
    site_id,
    site_name,
    source_id = null,
    source_name = null,
    serial_number = null,
    unit_id = null,
  } = row;
  const numberOr = (value: unknown) => (value === null ? null : Number(value));
  return {
    entity,
    id: Number(id),
    name: String(name),
    siteId: Number(site_id),
    siteName: String(site_name),
    sourceId: numberOr(source_id),
    sourceName: source_name as string | null,
    serialNumber: serial_number as string | null,
    unitId: numberOr(unit_id),
  };
}

/** A question of alternatives and conditions, in the signs of a database. */
export function questionOf(
  words: readonly SearchWord[],
  {
    and,
    or,
    token,
  }: { readonly and: string; readonly or: string; readonly token: (text: string, isBegun: boolean) => string },
  isWhole: boolean,
): string {
  const parts = words.map(({ tokens, unitIds }) => {
    const last = tokens.length - 1;
    const all = tokens.map((text, at) => token(text, at === last && !isWhole)).join(and);
    const units = unitIds.map((id) => token(`unitid${id}`, false));
    return `(${[...(all === "" ? [] : [`(${all})`]), ...units].join(or)})`;
  });
  return parts.join(and);
}
