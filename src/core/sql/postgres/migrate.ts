/** Brings a PostgreSQL schema up to date, all in one transaction and under a lock, so that nodes may start together. */
import type { ClientBase, Pool } from "pg";
import { type MigrationRecord, recordTable, type Schema, type SchemaState, stateFrom } from "../migrations.ts";

export interface PostgresSchema extends Schema {
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
    const { due } = await stateOf(client, schema, name, subject);
    // A user that may use an existing schema need not have the right to create one.
    if (!(await hasSchema(client, name))) await client.query(`CREATE SCHEMA ${name}`);
    if (due.length > 0) await client.query(recordTable(schema));
    for (const { version, file, sql, digest } of due) {
      await client.query(sql);
      await client.query(`INSERT INTO ${schema.table} VALUES ($1, $2, $3)`, [version, file, digest]);
    }
    await client.query("COMMIT");
    return due.map(({ file }) => file);
  } catch (thrown) {
    // The connection may be gone, and the transaction with it.
    await client.query("ROLLBACK").catch(() => undefined);
    throw thrown;
  }
}

async function hasSchema(connection: Connection, name: string): Promise<boolean> {
  const { rows } = await connection.query("SELECT 1 FROM pg_namespace WHERE nspname = $1", [name]);
  return rows.length > 0;
}

/** The state of a schema; version 0 for an empty one, or none. */
export async function stateOf(
  connection: Connection,
  schema: PostgresSchema,
  name: string,
  subject: string,
): Promise<SchemaState> {
  const sql = "SELECT tablename AS name FROM pg_tables WHERE schemaname = $1";
  const tables = (await connection.query<{ name: string }>(sql, [name])).rows;
  if (!tables.some((one) => one.name === schema.table)) {
    if (tables.length > 0 && schema.foreign !== null) throw schema.foreign(subject);
    return stateFrom(schema, [], subject);
  }
  // The row is read as JSON, since the table of another program may have no digest.
  const { rows } = await connection.query<MigrationRecord>(
    `SELECT version::integer AS version, to_jsonb(record) ->> 'digest' AS digest FROM ${schema.table} AS record
      ORDER BY version`,
  );
  return stateFrom(schema, rows, subject);
}
