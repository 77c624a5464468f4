import type { LedgerFault } from "../ledger.ts";
import { type Dialect, rows, type Steps } from "../records/store.ts";

export const sqliteDialect: Dialect = {
  among: (column) => `${column} IN (SELECT value FROM json_each(?))`,
  indexedBy: (index) => `INDEXED BY ${index}`,
  jsonField: (column, field) => `(${column} ->> '$.${field}')`,
  jsonArray: (column) => `json_group_array(${column})`,
  msBetween: (from, to) => `(unixepoch(${to}, 'subsec') - unixepoch(${from}, 'subsec')) * 1000`,
  contains: (column) => `instr(${column}, ?) > 0`,
  startsWith: (expression) => `substr(${expression}, 1, length(?)) = ?`,
  isLike: (expression) => `${expression} LIKE ? ESCAPE '\\'`,
  byRowId: "NOT INDEXED",
  endsWith: (expression) => `substr(${expression}, -length(?)) = ?`,
  damage,
};

function* damage(most: number): Steps<readonly LedgerFault[]> {
  const broken = (yield* rows<{ integrity_check: string }>(`PRAGMA integrity_check(${most})`))
    .filter((found) => found.integrity_check !== "ok")
    .map((found) => found.integrity_check);
  const lost = yield* rows<{ table: string; parent: string; n: number }>(
    `SELECT "table", parent, count(*) AS n FROM pragma_foreign_key_check GROUP BY 1, 2`,
  );
  const words = lost.map(({ table, parent, n }) => `${n} rows of ${table} refer to missing rows of ${parent}`);
  return [...broken, ...words].map((one) => ({ subject: "file", words: one, repair: null }));
}
