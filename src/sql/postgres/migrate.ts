/** Brings a PostgreSQL schema up to date, all in one transaction and under a lock, so that nodes may start together. */
import type { ClientBase, Pool } from "pg";
import { areOutdated, DERIVED, type Definition, dueFor, type Migration, type Schema, textOf } from "../migrations.ts";

export interface PostgresSchema extends Schema {
  /** The table that records the migrations. */
  readonly table: string;
  /** Whether its rows have a column `file` beside `version`. */
  readonly namesFiles: boolean;
  /** Takes the lock for migrations of a schema of this name, until the transaction ends. */
  readonly lock: (client: ClientBase, name: string) => Promise<unknown>;
}

type Connection = Pick<Pool, "query"> | ClientBase;

/** Returns the names of the migrations that were applied. */
export async function migrate(
  client: ClientBase,
  schema: PostgresSchema,
  name: string,
  subject: string,
): Promise<readonly string[]> {
  await client.query("BEGIN");
  try {
    await schema.lock(client, name);
    const due = dueFor(schema, await versionOf(client, schema, name, subject), subject);
    // A user that may use an existing schema need not have the right to create one.
    if (!(await hasSchema(client, name))) await client.query(`CREATE SCHEMA ${name}`);
    for (const migration of due) await client.query(textOf(schema, migration));
    if (due.length > 0) await record(client, schema, due);
    const isOutdated = areOutdated(schema, await definitions(client, schema), subject);
    if (isOutdated) await client.query(schema.derived?.makeAgain ?? "");
    await client.query("COMMIT");
    return [...due.map(({ file }) => file), ...(isOutdated ? [DERIVED] : [])];
  } catch (thrown) {
    // The connection may be gone, and the transaction with it.
    await client.query("ROLLBACK").catch(() => undefined);
    throw thrown;
  }
}

export async function definitions(connection: Connection, { derived }: Schema): Promise<readonly Definition[]> {
  return derived === undefined ? [] : (await connection.query<Definition>(derived.definitions)).rows;
}

async function record(
  client: ClientBase,
  { table, namesFiles }: PostgresSchema,
  applied: readonly Migration[],
): Promise<void> {
  const columns = namesFiles ? "version bigint PRIMARY KEY, file text NOT NULL" : "version integer PRIMARY KEY";
  await client.query(`CREATE TABLE IF NOT EXISTS ${table} (${columns})`);
  for (const { version, file } of applied)
    await client.query(
      namesFiles
        ? `INSERT INTO ${table} (version, file) VALUES ($1, $2)`
        : `INSERT INTO ${table} (version) VALUES ($1)`,
      namesFiles ? [version, file] : [version],
    );
}

async function hasSchema(connection: Connection, name: string): Promise<boolean> {
  const { rows } = await connection.query("SELECT 1 FROM pg_namespace WHERE nspname = $1", [name]);
  return rows.length > 0;
}

/** Version of the schema; 0 for an empty schema, or none. */
export async function versionOf(
  connection: Connection,
  schema: PostgresSchema,
  name: string,
  subject: string,
): Promise<number> {
  const sql = "SELECT tablename AS name FROM pg_tables WHERE schemaname = $1";
  const tables = await connection.query<{ name: string }>(sql, [name]);
  if (tables.rows.length === 0) return 0;
  if (!tables.rows.some((one) => one.name === schema.table)) {
    if (schema.foreign !== null) throw schema.foreign(subject);
    return 0;
  }
  const { rows } = await connection.query<{ version: number }>(`SELECT max(version) AS version FROM ${schema.table}`);
  return Number(rows[0]?.version ?? 0);
}
