/** Brings a schema up to date, one node at a time. */
import { readdirSync, readFileSync } from "node:fs";
import type pg from "pg";
import { ConfigError } from "../../../support/errors.ts";

const FOLDER = new URL("./migrations/", import.meta.url);
/** Key of the advisory lock under which one node at a time migrates. */
const LOCK = 4_713_001;

/** Throws `ConfigError` when a newer version wrote the schema. */
export async function migrate(pool: pg.Pool, schema: string, subject: string): Promise<void> {
  const files = readdirSync(FOLDER)
    .filter((name) => name.endsWith(".sql"))
    .sort();
  if ((await versionOf(pool)) === files.length) return;
  const client = await pool.connect();
  try {
    await client.query("BEGIN");
    await client.query("SELECT pg_advisory_xact_lock($1)", [LOCK]);
    await client.query(`CREATE SCHEMA IF NOT EXISTS ${schema}`);
    await client.query(
      "CREATE TABLE IF NOT EXISTS migration (version BIGINT PRIMARY KEY, file TEXT NOT NULL)",
    );
    const version = (await versionOf(client)) ?? 0;
    if (version > files.length) throw new ConfigError("HG-HUB-002", { operation: "open store", subject });
    for (const [index, file] of files.entries()) {
      if (index < version) continue;
      await client.query(readFileSync(new URL(file, FOLDER), "utf8"));
      await client.query("INSERT INTO migration (version, file) VALUES ($1, $2)", [index + 1, file]);
    }
    await client.query("COMMIT");
    client.release();
  } catch (thrown) {
    // Whatever it had begun is undone with the connection.
    client.release(true);
    throw thrown;
  }
}

/** Null: nothing was ever made here. */
async function versionOf(connection: pg.Pool | pg.PoolClient): Promise<number | null> {
  const known = await connection.query("SELECT to_regclass('migration') IS NOT NULL AS known");
  if (known.rows[0]?.known !== true) return null;
  const { rows } = await connection.query("SELECT coalesce(max(version), 0) AS version FROM migration");
  return Number(rows[0]?.version);
}
