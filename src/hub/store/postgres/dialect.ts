/** PostgreSQL's SQL for filters and pages of rows. */

import { row, rows, type SearchDialect, type Selection, type Steps, type StoreDialect } from "../database.ts";
import type { Page } from "../records.ts";
import { questionOf } from "../search/search.ts";
import type { Where } from "../where.ts";

/** The value occurs several times, but its path is one parameter. */
const form = (json: string, value: string) =>
  `(SELECT ${value} FROM (SELECT ${json} #> CAST(? AS TEXT[]) AS value) AS field)`;
const textOf = (json: string) => `${json} #>> '{}'`;
const numberOf = (json: string) =>
  `CASE json_typeof(${json}) WHEN 'number' THEN CAST(${textOf(json)} AS DOUBLE PRECISION)
    WHEN 'boolean' THEN CASE ${textOf(json)} WHEN 'true' THEN 1 ELSE 0 END END`;

const SEARCH: SearchDialect = {
  found: (table) =>
    `${table}.id IN (SELECT id FROM search_word WHERE entity = '${table}' AND words @@ CAST(? AS tsquery))`,
  question: (accountId, words, isWhole) => {
    const token = (text: string, isBegun: boolean) => `'${text}'${isBegun ? ":*" : ""}`;
    return `'#${accountId}' & ${questionOf(words, { and: " & ", or: " | ", token }, isWhole)}`;
  },
};

/** Whatever the locale of the database, texts compare by their code points. */
const folded = (text: string) => `folded(CAST(${text} AS TEXT)) COLLATE "C"`;

export const POSTGRES: StoreDialect = {
  accountTables: ["lane", "structure_change"],
  search: SEARCH,
  written: "(SELECT version_us FROM lane WHERE lane.account_id = structure_change.account_id)",
  forUpdate: (table) => ` FOR UPDATE OF ${table}`,
  forKeyShare: " FOR KEY SHARE",
  page: pageOf,
  holdLane,
  tryLane,
  holdVariable,
  among: (column) => `${column} = ANY (?)`,
  unindexed: (column) => column,
  labels: (column) => `json_array_elements_text(${column}) AS held(value)`,
  folded,
  tested: (test) => test,
  like: (text) => `${folded(text)} LIKE ? ESCAPE '\\'`,
  formText: (json) => form(json, textOf("value")),
  formNumber: (json) => form(json, numberOf("value")),
  formItems: (json) =>
    `(SELECT ${json} #> CAST(? AS TEXT[]) AS held) AS whole,
      json_array_elements(CASE json_typeof(whole.held) WHEN 'array' THEN whole.held ELSE '[]' END) AS item(value)`,
  itemText: textOf("item.value"),
  itemNumber: numberOf("item.value"),
  formPath: (path) => path,
};

/** In one statement, which returns the count also for an empty page. */
function* pageOf(select: Selection, where: Where, page: Page) {
  where.behind(select.order, page.after);
  if (page.isCounted === false) {
    const sql = `SELECT ${select.columns} FROM ${select.from} ${where.sql} ORDER BY ${select.order} LIMIT ? OFFSET ?`;
    const found = yield* rows(sql, ...where.values, page.limit, page.offset);
    return { rows: found, total: found.length };
  }
  const from = `FROM ${select.from} ${where.sql}`;
  const listed = yield* rows(
    `SELECT counted.total AS listed_total, listed.* FROM (SELECT count(*) AS total ${from}) AS counted LEFT JOIN
      (SELECT ${select.columns}, row_number() OVER (ORDER BY ${select.order}) AS listed_place ${from}
        ORDER BY ${select.order} LIMIT ? OFFSET ?) AS listed
      ON TRUE ORDER BY listed_place`,
    ...where.values,
    ...where.values,
    page.limit,
    page.offset,
  );
  const found = listed.filter((one) => one["listed_place"] !== null);
  return { rows: found, total: Number(listed[0]?.["listed_total"]) };
}

function* holdLane(accountId: number): Steps<void> {
  yield* row("SELECT 1 FROM lane WHERE account_id = ? FOR UPDATE", accountId);
}

function* tryLane(accountId: number): Steps<boolean> {
  return (yield* row("SELECT 1 FROM lane WHERE account_id = ? FOR UPDATE SKIP LOCKED", accountId)) !== undefined;
}

function* holdVariable(variableId: number): Steps<void> {
  const variable = yield* row("SELECT account_id FROM variable WHERE id = ?", variableId);
  if (variable !== undefined) yield* holdLane(Number(variable["account_id"]));
}
