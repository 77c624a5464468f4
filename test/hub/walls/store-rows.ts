/** Everything that a store keeps of one account: every row of every table. */
import { DatabaseSync } from "node:sqlite";
import { Client } from "pg";
import type { HubOptions } from "#hub/options.ts";

type Row = Readonly<Record<string, unknown>>;
/** By table. */
type Tables = ReadonlyMap<string, readonly Row[]>;

/** Tables of no account. */
const SHARED = [
  "account",
  "client",
  "counter",
  "intake",
  "migration",
  "one_time_link",
  "signing_key",
  "stored_file_folder",
];
/** Of tables without `account_id`: the column that names the row which has one, and the table and key of that. */
const PARENTS: Readonly<Record<string, readonly [column: string, table: string, key: string]>> = {
  body: ["seq", "operation", "seq"],
  external_identity: ["user_id", "hub_user", "id"],
  file_trigger_change: ["trigger_id", "file_trigger", "id"],
  file_trigger_token: ["trigger_id", "file_trigger", "id"],
  form_field: ["group_id", "form_group", "id"],
  form_group: ["form_id", "form", "id"],
  master_data_report_part: ["report_id", "master_data_report", "id"],
  outcome: ["seq", "operation", "seq"],
  point: ["variable_id", "variable", "id"],
  point_block: ["variable_id", "variable", "id"],
  point_version: ["variable_id", "variable", "id"],
  recovery_code: ["user_id", "hub_user", "id"],
  rollup: ["variable_id", "variable", "id"],
  sign_on_confirmation: ["user_id", "hub_user", "id"],
  site_group_member: ["group_id", "site_group", "id"],
};

/** The rows of an account as texts, by table. A new table must say to whom its rows belong. */
export async function rowsOf(
  store: HubOptions["store"],
  accountId: number,
): Promise<Readonly<Record<string, readonly string[]>>> {
  const tables = store.kind === "sqlite" ? sqliteTables(store.path) : await postgresTables(store.url, store.schema);
  const own = [...tables]
    .filter(([table]) => !SHARED.includes(table))
    .map(([table, rows]) => {
      const texts = rows.filter((row) => ownerOf(tables, table, row) === accountId).map((row) => wordsOf(row));
      return [table, texts.sort()] as const;
    });
  return Object.fromEntries(own);
}

function ownerOf(tables: Tables, table: string, row: Row): number | null {
  if ("account_id" in row) return row["account_id"] === null ? null : Number(row["account_id"]);
  if (table === "hub_user") return onlyAccountOf(tables, row);
  const parent = PARENTS[table];
  if (parent === undefined) throw new Error(`test/hub/walls/store-rows.ts: whose are the rows of the table ${table}?`);
  const [column, above, key] = parent;
  const found = tables.get(above)?.find((one) => String(one[key]) === String(row[column]));
  return found === undefined ? null : ownerOf(tables, above, found);
}

/** A user of several accounts is of none. */
function onlyAccountOf(tables: Tables, user: Row): number | null {
  const entered = tables.get("membership")?.filter((one) => String(one["user_id"]) === String(user["id"])) ?? [];
  return entered.length === 1 ? Number(entered[0]?.["account_id"]) : null;
}

function wordsOf(row: Row): string {
  return JSON.stringify(row, (_, value) => (typeof value === "bigint" ? String(value) : value));
}

function sqliteTables(path: string): Tables {
  const tables = new Map<string, readonly Row[]>();
  for (const file of [path, `${path}.intake`]) {
    const database = new DatabaseSync(file, { readOnly: true });
    // Indexes of a search hold rows of the structure, and lie in tables of their own.
    const named = `SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%' AND name <> 'user'
      AND name NOT GLOB '*_search' AND name NOT GLOB '*_search_*'`;
    for (const { name } of database.prepare(named).all()) {
      const statement = database.prepare(`SELECT * FROM ${String(name)}`);
      statement.setReadBigInts(true);
      tables.set(String(name), statement.all());
    }
    database.close();
  }
  return tables;
}

async function postgresTables(url: string, schema: string): Promise<Tables> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    const named = `SELECT relname FROM pg_class WHERE relnamespace = $1::regnamespace AND relkind IN ('r', 'p')
      AND NOT relispartition`;
    const { rows } = await client.query<{ relname: string }>(named, [schema]);
    const tables = new Map<string, readonly Row[]>();
    for (const { relname } of rows)
      tables.set(relname, (await client.query<Row>(`SELECT * FROM ${schema}."${relname}"`)).rows);
    return tables;
  } finally {
    await client.end();
  }
}
