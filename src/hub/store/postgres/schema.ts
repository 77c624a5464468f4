/** The schema of the hub's store in a PostgreSQL database, brought up to date by one node at a time. */
import { join } from "node:path";
import type pg from "pg";
import { dueFor } from "../../../sql/migrations.ts";
import { migrate, type PostgresSchema, versionOf } from "../../../sql/postgres/migrate.ts";
import { newerStore } from "../schema-faults.ts";

/** Key of the advisory lock under which one node at a time migrates. */
const LOCK = 4_713_001;

const STORE_SCHEMA: PostgresSchema = {
  folder: join(import.meta.dirname, "migrations"),
  table: "migration",
  namesFiles: true,
  lock: (client) => client.query("SELECT pg_advisory_xact_lock($1)", [LOCK]),
  foreign: null,
  otherVersion: newerStore,
};

/** Throws `ConfigError` when a newer version wrote the schema. */
export async function bringUp(pool: pg.Pool, name: string, subject: string): Promise<void> {
  const client = await pool.connect();
  try {
    // Without the lock first, since the lock would have to wait for other nodes.
    const version = await versionOf(client, STORE_SCHEMA, name, subject);
    if (dueFor(STORE_SCHEMA, version, subject).length > 0) await migrate(client, STORE_SCHEMA, name, subject);
    client.release();
  } catch (thrown) {
    client.release(true);
    throw thrown;
  }
}
