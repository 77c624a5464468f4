/** The schema of a ledger in a PostgreSQL database. */
import { join } from "node:path";
import type { Pool } from "pg";
import { ConfigError } from "#core/errors.ts";
import { assertNothingDue } from "#core/sql/migrations.ts";
import { type PostgresSchema, stateOf } from "#core/sql/postgres/migrate.ts";
import { runStatesThat } from "../../states.ts";
import { literals, SCHEMA_VALUES } from "../records/run-indexes.ts";
import { foreignLedger, otherVersion } from "../schema-faults.ts";

/** `HGLD`; together with the name of the schema, the lock of its migrations. */
const LOCK_CLASS = 0x48474c44;

/** Their runs wait for a person or for the structure: any node may take them then. */
const NOBODYS_STATES = runStatesThat(({ isOpen, isAccepted, isAwaited, isClosing, end }) =>
  isAwaited ? !isClosing : !isOpen && !isAccepted && end !== "delivered",
);

export const LEDGER_SCHEMA: PostgresSchema = {
  folder: join(import.meta.dirname, "migrations"),
  table: "ledger_schema",
  values: { ...SCHEMA_VALUES, nobodys_states: literals(NOBODYS_STATES) },
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
  const state = await stateOf(pool, LEDGER_SCHEMA, name, place);
  if (state.version > 0) return assertNothingDue(LEDGER_SCHEMA, state, place);
  throw new ConfigError("HG-CLI-003", {
    operation: "open ledger",
    subject: place,
    message: `there is no ledger in ${place} yet`,
    hint: "Start the gateway once, or check `ledger.url` and `ledger.schema`.",
  });
}
