/** Numbered SQL files bring the schema up, all in one transaction and under a lock, so that nodes may start together. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Client, Pool } from "pg";
import { ConfigError } from "../../support/errors.ts";
import { migrationsIn } from "../migrations.ts";

const FOLDER = join(import.meta.dirname, "migrations");
/** `HGLD`; with the schema, the lock of those who bring it up. */
const LOCK_CLASS = 0x48474c44;

const migrations = () => migrationsIn(FOLDER);

/** Answers the names of the migrations that were applied. */
export async function migrate(client: Client, schema: string, place: string): Promise<readonly string[]> {
  await client.query("BEGIN");
  try {
    await client.query("SELECT pg_advisory_xact_lock($1, hashtext($2))", [LOCK_CLASS, schema]);
    const version = await versionOf(client, schema, place);
    const due = migrations().filter((migration) => migration.version > version);
    // Whoever may use a schema that is there need not have the right to make one.
    if (!(await hasSchema(client, schema))) await client.query(`CREATE SCHEMA ${schema}`);
    for (const { file } of due) await client.query(readFileSync(join(FOLDER, file), "utf8"));
    if (due.length > 0) await noteVersion(client, due.at(-1)?.version ?? 0);
    await client.query("COMMIT");
    return due.map(({ file }) => file);
  } catch (thrown) {
    // The connection may be gone, and the transaction with it.
    await client.query("ROLLBACK").catch(() => undefined);
    throw thrown;
  }
}

/** For a reader, which brings nothing up. */
export async function assertCurrent(pool: Pool, schema: string, place: string): Promise<void> {
  const version = await versionOf(pool, schema, place);
  if (version === 0)
    throw new ConfigError("HG-CLI-003", {
      operation: "open ledger",
      subject: place,
      message: `there is no ledger in ${place} yet`,
      hint: "Start the gateway once, or check `ledger.url` and `ledger.schema`.",
    });
  const newest = migrations().at(-1)?.version ?? 0;
  if (version < newest)
    throw otherVersion(place, `has schema ${version}, this Headgate reads ${newest}; start the gateway once`);
}

type Questioned = Pick<Pool, "query">;

async function hasSchema(client: Questioned, schema: string): Promise<boolean> {
  const { rows } = await client.query("SELECT 1 FROM pg_namespace WHERE nspname = $1", [schema]);
  return rows.length > 0;
}

/** 0 for an empty schema, or none. */
async function versionOf(client: Questioned, schema: string, place: string): Promise<number> {
  const tables = await client.query<{ name: string }>(
    "SELECT tablename AS name FROM pg_tables WHERE schemaname = $1",
    [schema],
  );
  if (tables.rows.length === 0) return 0;
  if (!tables.rows.some(({ name }) => name === "ledger_schema"))
    throw new ConfigError("HG-LEDG-002", {
      operation: "open ledger",
      subject: place,
      message: `${place} holds tables of something else, and no ledger`,
      hint: "Give the ledger a schema of its own: `ledger.schema`.",
    });
  const { rows } = await client.query<{ version: number }>(
    "SELECT max(version) AS version FROM ledger_schema",
  );
  const version = rows[0]?.version ?? 0;
  const newest = migrations().at(-1)?.version ?? 0;
  if (version > newest)
    throw otherVersion(place, `has schema ${version}, newer than ${newest}, which this Headgate knows`);
  return version;
}

async function noteVersion(client: Questioned, version: number): Promise<void> {
  await client.query("CREATE TABLE IF NOT EXISTS ledger_schema (version integer PRIMARY KEY)");
  await client.query("INSERT INTO ledger_schema (version) VALUES ($1)", [version]);
}

function otherVersion(place: string, words: string): ConfigError {
  return new ConfigError("HG-LEDG-003", {
    operation: "open ledger",
    subject: place,
    message: `the ledger ${place} ${words}`,
  });
}
