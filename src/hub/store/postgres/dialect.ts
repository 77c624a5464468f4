/** What PostgreSQL says differently in filters, and pages of rows. */
import type { SqlDialect } from "../filter-sql.ts";
import type { Page } from "../store.ts";
import type { Where } from "../where.ts";
import type { Sql } from "./database.ts";

/** The value is named several times, but its path is one parameter. */
const form = (value: string) =>
  `(SELECT ${value} FROM (SELECT source.client_data #> CAST(? AS TEXT[]) AS value) AS field)`;

export const POSTGRES: SqlDialect = {
  among: (column) => `${column} = ANY (?)`,
  labels: (column) => `json_array_elements_text(${column}) AS held(value)`,
  // Whatever the locale of the database, texts are greater and less by their code points.
  folded: (text) => `folded(CAST(${text} AS TEXT)) COLLATE "C"`,
  unescaped: " ESCAPE ''",
  formText: form("value #>> '{}'"),
  formNumber: form(
    `CASE json_typeof(value) WHEN 'number' THEN CAST(value #>> '{}' AS DOUBLE PRECISION)
      WHEN 'boolean' THEN CASE value #>> '{}' WHEN 'true' THEN 1 ELSE 0 END END`,
  ),
  formPath: (path) => path,
};

/** Rows of one page and the number of all, of one moment: in one statement, whose count is there also when the page is empty. */
export async function listPage(
  { all }: Sql,
  select: { readonly columns: string; readonly from: string; readonly order: string },
  where: Where,
  page: Page,
) {
  const from = `FROM ${select.from} ${where.sql}`;
  const listed = await all(
    `SELECT counted.total AS listed_total, listed.* FROM (SELECT count(*) AS total ${from}) AS counted LEFT JOIN
      (SELECT ${select.columns}, row_number() OVER (ORDER BY ${select.order}) AS listed_place ${from} ORDER BY ${select.order} LIMIT ? OFFSET ?) AS listed
      ON TRUE ORDER BY listed_place`,
    ...where.values,
    ...where.values,
    page.limit,
    page.offset,
  );
  const rows = listed.filter((row) => row["listed_place"] !== null);
  return { rows, total: Number(listed[0]?.["listed_total"]) };
}
