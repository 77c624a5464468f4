/** The schema of a ledger in a PostgreSQL database. */
import { join } from "node:path";
import type { Pool } from "pg";
import { assertNothingDue } from "../../sql/migrations.ts";
import { type PostgresSchema, versionOf } from "../../sql/postgres/migrate.ts";
import { ConfigError } from "../../support/errors.ts";
import { foreignLedger, otherVersion } from "../schema-faults.ts";

/** `HGLD`; together with the name of the schema, the lock of its migrations. */
const LOCK_CLASS = 0x48474c44;

export const LEDGER_SCHEMA: PostgresSchema = {
  folder: join(import.meta.dirname, "migrations"),
  table: "ledger_schema",
  namesFiles: false,
  lock: (client, name) => client.query("SELECT pg_advisory_xact_lock($1, hashtext($2))", [LOCK_CLASS, name]),
  foreign: (place) =>
    foreignLedger(
      place,
      `${place} contains tables of something else, and no ledger`,
      "Give the ledger a schema of its own: `ledger.schema`.",
    ),
  otherVersion,
};

/** For a reader, which does not migrate. */
export async function assertCurrent(pool: Pool, name: string, place: string): Promise<void> {
  const version = await versionOf(pool, LEDGER_SCHEMA, name, place);
  if (version > 0) return assertNothingDue(LEDGER_SCHEMA, version, place);
  throw new ConfigError("HG-CLI-003", {
    operation: "open ledger",
    subject: place,
    message: `there is no ledger in ${place} yet`,
    hint: "Start the gateway once, or check `ledger.url` and `ledger.schema`.",
  });
}
