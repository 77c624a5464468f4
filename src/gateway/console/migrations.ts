/** Handlers of the endpoints about migrations, which the program reads that starts the gateway. */
import type { HandlersOf } from "../../operations/api/endpoint.ts";
import type { MigrationFacts, migrationEndpoints } from "../../operations/api/migrations.ts";
import { shareQuery } from "../../support/shared-query.ts";

/** Reads the migrations of the spool with this path. */
export type ReadMigrations = (spool: string) => Promise<MigrationFacts[]>;

/** Milliseconds; each migration has a ledger of its own, which is opened for an answer. */
const FRESH_MS = 2_000;

export function migrationHandlers(
  spool: string,
  read: ReadMigrations | undefined,
): HandlersOf<typeof migrationEndpoints> {
  const query = shareQuery(async () => (read === undefined ? [] : await read(spool)));
  return { migrations: () => query.within(FRESH_MS) };
}
