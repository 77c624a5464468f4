import type { LedgerFault } from "../ledger.ts";
import type { Dialect, Steps } from "../records/store.ts";

export const postgresDialect: Dialect = {
  among: (column) => `${column} IN (SELECT json_array_elements_text(?::json))`,
  // The planner of PostgreSQL has statistics, and accepts no hint.
  indexedBy: () => "",
  jsonField: (column, field) => `(${column}::json ->> '${field}')`,
  jsonArray: (column) => `coalesce(json_agg(${column}), '[]')::text`,
  msBetween: (from, to) => `(extract(epoch FROM ${to}::timestamptz - ${from}::timestamptz) * 1000)::float8`,
  contains: (column) => `strpos(${column}, ?) > 0`,
  startsWith: (expression) => `left(${expression}, length(?::text)) = ?`,
  isLike: (expression) => `${expression} ILIKE ? ESCAPE '\\'`,
  byRowId: "",
  endsWith: (expression) => `right(${expression}, length(?::text)) = ?`,
  // The server guards its files itself, and foreign keys refuse dangling rows.
  damage: nothingBroken,
};

// biome-ignore lint/correctness/useYield: there is nothing to ask.
function* nothingBroken(): Steps<readonly LedgerFault[]> {
  return [];
}
