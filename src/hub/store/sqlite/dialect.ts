/** SQLite's SQL for filters and pages of rows. */
import type { DatabaseSync, SQLInputValue } from "node:sqlite";
import { row, rows, type SearchDialect, type Selection, type Steps, type StoreDialect } from "../database.ts";
import { foldedText, type SqlValue } from "../filter-sql.ts";
import type { Page } from "../records.ts";
import { questionOf } from "../search/search.ts";
import type { Where } from "../where.ts";

/** An element of a part: a code point, or any (`_`). */
const ANY = -1;
const WORD_BITS = 32;

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

// LIKE of texts for SQLite, whose own tries a pattern at each character of a text and so takes the product of both
// lengths. Each part between two `%` is sought once, from left to right.

type LikePattern = (text: string) => boolean;

/** As SQL's LIKE with `ESCAPE '\'`, where case counts. */
export function likePattern(pattern: string): LikePattern {
  const parts = partsOf(pattern);
  const [first = [], ...others] = parts;
  const last = others.pop();
  const least = parts.reduce((sum, part) => sum + part.length, 0);
  const between = others.filter((part) => part.length > 0).map(searchOf);
  return (text) => {
    const points = pointsOf(text);
    if (points.length < least || !isAt(first, points, 0)) return false;
    if (last === undefined) return points.length === first.length;
    const end = points.length - last.length;
    let from = first.length;
    for (const search of between) {
      const found = search(points, from, end);
      if (found === null) return false;
      from = found;
    }
    return from <= end && isAt(last, points, end);
  };
}

/** Cut at each `%`. */
function partsOf(pattern: string): number[][] {
  const parts: number[][] = [[]];
  let isEscaped = false;
  for (const point of pointsOf(pattern)) {
    const sign: string = isEscaped ? "" : String.fromCodePoint(point);
    isEscaped = sign === "\\";
    if (sign === "%") parts.push([]);
    else if (!isEscaped) parts.at(-1)?.push(sign === "_" ? ANY : point);
  }
  return parts;
}

function pointsOf(text: string): Uint32Array {
  const points = new Uint32Array(text.length);
  let count = 0;
  for (let at = 0; at < text.length; count += 1) {
    const point = text.codePointAt(at) ?? 0;
    points[count] = point;
    at += point > 0xffff ? 2 : 1;
  }
  return points.subarray(0, count);
}

function isAt(part: readonly number[], points: Uint32Array, from: number): boolean {
  if (from < 0 || from + part.length > points.length) return false;
  return part.every((one, at) => one === ANY || one === points[from + at]);
}

/** The end of the first occurrence from a place on, at most at another. */
type Search = (points: Uint32Array, from: number, end: number) => number | null;

/**
 * Shift-And: bit k says that the text until here ends with the first k + 1 elements of the part. A step takes a word of
 * bits for 32 elements, whatever the text.
 */
function searchOf(part: readonly number[]): Search {
  const words = Math.ceil(part.length / WORD_BITS);
  const fits = new Map<number, Uint32Array>();
  const any = new Uint32Array(words);
  for (const [at, one] of part.entries()) if (one === ANY) set(any, at);
  for (const [at, one] of part.entries())
    if (one !== ANY)
      set(
        fits.getOrInsertComputed(one, () => any.slice()),
        at,
      );
  const lastWord = words - 1;
  const lastBit = 1 << ((part.length - 1) % WORD_BITS);
  return (points, from, end) => {
    const begun = new Uint32Array(words);
    for (let at = from; at < end; at += 1) {
      const fit = fits.get(points[at] ?? 0) ?? any;
      // A part may begin at each character.
      let carried = 1;
      for (let word = 0; word < words; word += 1) {
        const before = begun[word] ?? 0;
        begun[word] = ((before << 1) | carried) & (fit[word] ?? 0);
        carried = before >>> (WORD_BITS - 1);
      }
      if (((begun[lastWord] ?? 0) & lastBit) !== 0) return at + 1;
    }
    return null;
  };
}

function set(bits: Uint32Array, at: number): void {
  const word = Math.floor(at / WORD_BITS);
  bits[word] = (bits[word] ?? 0) | (1 << (at % WORD_BITS));
}
