/** The schema of the hub's store in a PostgreSQL database, brought up to date by one node at a time. */
import { join } from "node:path";
import type pg from "pg";
import { migrate, type PostgresSchema, stateOf } from "#core/sql/postgres/migrate.ts";
import { otherStore } from "../schema-faults.ts";

/** Key of the advisory lock under which one node at a time migrates. */
const LOCK = 4_713_001;

const STORE_SCHEMA: PostgresSchema = {
  folder: join(import.meta.dirname, "migrations"),
  table: "migration",
  lock: (client) => client.query("SELECT pg_advisory_xact_lock($1)", [LOCK]),
  foreign: null,
  otherVersion: otherStore,
};

/** Throws `ConfigError` when a newer version wrote the schema, or another state of it. */
export async function bringUp(pool: pg.Pool, name: string, subject: string): Promise<void> {
  const client = await pool.connect();
  try {
    // Without the lock first, since the lock would have to wait for other nodes.
    const { due } = await stateOf(client, STORE_SCHEMA, name, subject);
    if (due.length > 0) await migrate(client, STORE_SCHEMA, name, subject);
    client.release();
  } catch (thrown) {
    client.release(true);
    throw thrown;
  }
}
