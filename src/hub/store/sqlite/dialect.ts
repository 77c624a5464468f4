/** SQLite's SQL for filters and pages of rows. */
import type { DatabaseSync, SQLInputValue } from "node:sqlite";
import { row, rows, type Selection, type Steps, type StoreDialect } from "../database.ts";
import { foldedText, type SqlValue } from "../filter-sql.ts";
import { questionOf, type SearchDialect } from "../search/search.ts";
import type { Page } from "../store.ts";
import type { Where } from "../where.ts";
import { likePattern } from "./like.ts";

/** The document and the path occur several times, but have their parameters once. */
const form = (json: string, value: string) =>
  `(SELECT CASE json_type(held, path) ${value} END FROM (SELECT ${json} AS held, ? AS path))`;
const FORM_VALUE = "json_extract(held, path)";

const SEARCH: SearchDialect = {
  found: (table) => `${table}.id IN (SELECT rowid FROM ${table}_search WHERE ${table}_search MATCH ?)`,
  question: (_accountId, words, isWhole) => {
    const token = (text: string, isBegun: boolean) => `"${text}"${isBegun ? "*" : ""}`;
    return questionOf(words, { and: " AND ", or: " OR ", token }, isWhole);
  },
};

export const SQLITE: StoreDialect = {
  accountTables: ["structure_change"],
  search: SEARCH,
  // Of all accounts together.
  written: "(SELECT value FROM counter WHERE name = 'version_us')",
  forUpdate: () => "",
  forKeyShare: "",
  page: pageOf,
  holdLane: nothing,
  tryLane: always,
  holdVariable: nothing,
  among: (column) => `${column} IN (SELECT value FROM json_each(?))`,
  unindexed: (column) => `+${column}`,
  labels: (column) => `json_each(${column}) held`,
  tested: (test) => `tested(${test})`,
  folded: (text) => `folded(${text})`,
  like: (text) => `liked(${text}, ?)`,
  formText: (json) => form(json, `WHEN 'true' THEN 'true' WHEN 'false' THEN 'false' ELSE ${FORM_VALUE}`),
  formNumber: (json) =>
    form(
      json,
      `WHEN 'integer' THEN ${FORM_VALUE} WHEN 'real' THEN ${FORM_VALUE} WHEN 'true' THEN 1 WHEN 'false' THEN 0`,
    ),
  formItems: (json) => `(SELECT ${json} AS held, ? AS path) AS whole, json_each(whole.held, whole.path) AS item`,
  itemText: "CASE item.type WHEN 'true' THEN 'true' WHEN 'false' THEN 'false' ELSE item.value END",
  itemNumber: "CASE WHEN item.type IN ('integer', 'real', 'true', 'false') THEN item.value END",
  formPath: (path) => `$${path.map((level) => `."${level}"`).join("")}`,
};

/** Patterns of one statement and a few others. */
const PATTERNS_MAX = 1_000;

/** SQLite itself folds only ASCII letters, and its LIKE is slow for some patterns. */
export function installTextFunctions(database: DatabaseSync): void {
  database.function("folded", { deterministic: true }, (value) => (value === null ? null : foldedText(String(value))));
  // A thread that is to end does so where it calls a function of this program.
  database.function("tested", { deterministic: true }, (value) => value);
  const patterns = new Map<string, ReturnType<typeof likePattern>>();
  database.function("liked", { deterministic: true }, (value, given) => {
    if (value === null) return null;
    const pattern = String(given);
    if (patterns.size >= PATTERNS_MAX && !patterns.has(pattern)) patterns.clear();
    return patterns.getOrInsertComputed(pattern, likePattern)(foldedText(String(value))) ? 1 : 0;
  });
}

/** SQLite has neither booleans nor lists. */
export function bound(value: SqlValue | undefined): SQLInputValue {
  if (typeof value === "boolean") return value ? 1 : 0;
  if (value instanceof Uint8Array) return value;
  if (typeof value === "object" && value !== null) return JSON.stringify(value);
  return value ?? null;
}

/** The one writer locks the whole file, so nothing needs a lock or a notification. */
function* nothing(): Steps<void> {}

function* always(): Steps<boolean> {
  yield* nothing();
  return true;
}

function* pageOf(select: Selection, where: Where, page: Page) {
  where.behind(select.order, page.after);
  const from = `FROM ${select.from} ${where.sql}`;
  const sql = `SELECT ${select.columns} ${from} ORDER BY ${select.order} LIMIT ? OFFSET ?`;
  const found = yield* rows(sql, ...where.values, page.limit ?? -1, page.offset);
  if (page.isCounted === false || (page.limit === null && page.offset === 0))
    return { rows: found, total: found.length };
  const counted = yield* row(`SELECT count(*) AS total ${from}`, ...where.values);
  return { rows: found, total: Number(counted?.["total"]) };
}
