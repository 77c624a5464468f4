/** The schema of a ledger in a PostgreSQL database. */
import { join } from "node:path";
import type { Pool } from "pg";
import { assertNothingDue } from "../../sql/migrations.ts";
import { definitions, type PostgresSchema, versionOf } from "../../sql/postgres/migrate.ts";
import { ALL_RUN_STATES, runStatesThat } from "../../states.ts";
import { ConfigError } from "../../support/errors.ts";
import { derivedParts, literals } from "../records/run-indexes.ts";
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
  namesFiles: false,
  derived: derivedParts({
    definitions: `SELECT indexname AS name, indexdef AS sql FROM pg_indexes
        WHERE schemaname = current_schema() AND tablename = 'runs'
      UNION ALL SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = 'runs'::regclass
      UNION ALL SELECT tgname, pg_get_triggerdef(oid) FROM pg_trigger WHERE tgrelid = 'runs'::regclass`,
    values: { runs_state_check: ALL_RUN_STATES, run_rests: NOBODYS_STATES },
    makeAgain: `ALTER TABLE runs DROP CONSTRAINT IF EXISTS runs_state_check;
      ALTER TABLE runs ADD CONSTRAINT runs_state_check CHECK (state IN (${literals(ALL_RUN_STATES)}));
      DROP TRIGGER IF EXISTS run_rests ON runs;
      CREATE TRIGGER run_rests BEFORE UPDATE OF state ON runs FOR EACH ROW
        WHEN (NEW.state IN (${literals(NOBODYS_STATES)}) AND OLD.state <> NEW.state) EXECUTE FUNCTION run_rests()`,
  }),
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
  if (version > 0) {
    return assertNothingDue(LEDGER_SCHEMA, version, await definitions(pool, LEDGER_SCHEMA), place);
  }
  throw new ConfigError("HG-CLI-003", {
    operation: "open ledger",
    subject: place,
    message: `there is no ledger in ${place} yet`,
    hint: "Start the gateway once, or check `ledger.url` and `ledger.schema`.",
  });
}
