/** The schema of a ledger in an SQLite file. */
import { join } from "node:path";
import type { SqliteSchema } from "../../sql/sqlite/migrate.ts";
import { ALL_RUN_STATES } from "../../states.ts";
import { derivedParts, literals } from "../records/run-indexes.ts";
import { foreignLedger, otherVersion } from "../schema-faults.ts";

export const LEDGER_SCHEMA: SqliteSchema = {
  folder: join(import.meta.dirname, "migrations"),
  // `HGLD`
  applicationId: 0x48474c44,
  // The check of a column cannot be changed, so the column is replaced.
  derived: derivedParts({
    definitions: "SELECT name, sql FROM sqlite_schema WHERE tbl_name = 'runs' AND sql IS NOT NULL",
    values: { runs: ALL_RUN_STATES },
    makeAgain: `ALTER TABLE runs RENAME COLUMN state TO former_state;
      ALTER TABLE runs ADD COLUMN state TEXT NOT NULL DEFAULT 'claimed' CHECK (state IN (${literals(ALL_RUN_STATES)}));
      UPDATE runs SET state = former_state;
      ALTER TABLE runs DROP COLUMN former_state`,
  }),
  foreign: (path) => foreignLedger(path, `${path} is an SQLite file of something else, not a ledger`),
  otherVersion,
};
