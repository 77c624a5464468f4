/** The schema of a ledger in an SQLite file. */
import { join } from "node:path";
import type { SqliteSchema } from "#core/sql/sqlite/migrate.ts";
import { SCHEMA_VALUES } from "../records/run-indexes.ts";
import { foreignLedger, otherVersion } from "../schema-faults.ts";

export const LEDGER_SCHEMA: SqliteSchema = {
  folder: join(import.meta.dirname, "migrations"),
  table: "ledger_schema",
  values: SCHEMA_VALUES,
  // `HGLD`
  applicationId: 0x48474c44,
  foreign: (path) => foreignLedger(path, `${path} is an SQLite file of something else, not a ledger`),
  otherVersion,
};
