/** What SQLite says differently in filters, and pages of rows. */
import type { DatabaseSync, SQLInputValue } from "node:sqlite";
import { foldedText, type SqlDialect, type SqlValue } from "../filter-sql.ts";
import type { Page } from "../store.ts";
import type { Where } from "../where.ts";
import type { Statements } from "./database.ts";

/** The path is named several times, but is one parameter. */
const form = (value: string) =>
  `(SELECT CASE json_type(source.client_data, path) ${value} END FROM (SELECT ? AS path))`;
const FORM_VALUE = "json_extract(source.client_data, path)";

export const SQLITE: SqlDialect = {
  among: (column) => `${column} IN (SELECT value FROM json_each(?))`,
  labels: (column) => `json_each(${column}) held`,
  folded: (text) => `folded(${text})`,
  unescaped: "",
  formText: form(`WHEN 'true' THEN 'true' WHEN 'false' THEN 'false' ELSE ${FORM_VALUE}`),
  formNumber: form(
    `WHEN 'integer' THEN ${FORM_VALUE} WHEN 'real' THEN ${FORM_VALUE} WHEN 'true' THEN 1 WHEN 'false' THEN 0`,
  ),
  formPath: (path) => `$${path.map((level) => `."${level}"`).join("")}`,
};

/** SQLite alone folds no letters beyond ASCII. */
export function installFolding(database: DatabaseSync): void {
  database.function("folded", { deterministic: true }, (value) =>
    value === null ? null : foldedText(String(value)),
  );
}

/** SQLite knows neither truth values nor lists. */
export function bound(value: SqlValue | undefined): SQLInputValue {
  if (typeof value === "boolean") return value ? 1 : 0;
  if (typeof value === "object" && value !== null) return JSON.stringify(value);
  return value ?? null;
}

/** Rows of one page and the number of all. */
export function listPage(
  { all, get }: Statements,
  select: { readonly columns: string; readonly from: string; readonly order: string },
  where: Where,
  page: Page,
) {
  const from = `FROM ${select.from} ${where.sql}`;
  const values = where.values.map(bound);
  const rows = all(
    `SELECT ${select.columns} ${from} ORDER BY ${select.order} LIMIT ? OFFSET ?`,
    ...values,
    page.limit ?? -1,
    page.offset,
  );
  const whole = page.limit === null && page.offset === 0;
  const total = whole ? rows.length : Number(get(`SELECT count(*) AS total ${from}`, ...values)?.["total"]);
  return { rows, total };
}
