/** Ensures that a commit in PostgreSQL outlives a crash of the server: ledger and hub acknowledge work after it. */
import type { ClientBase, Pool } from "pg";

/**
 * Called for each new connection. A role or a database may be configured with `synchronous_commit = off`, which
 * acknowledges a commit before it is on a disk. The other values wait for the server's own disk and define how far to
 * wait for standbys: they stay as configured.
 */
export async function commitDurably(client: ClientBase): Promise<void> {
  await client.query(
    "SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'",
  );
}

const SERVER_RISKS: ReadonlyMap<string, string> = new Map([
  [
    "fsync",
    "fsync = off: a crash of the server's machine loses data that was acknowledged as stored, and may damage " +
      "the database",
  ],
  [
    "full_page_writes",
    "full_page_writes = off: a crash of the server's machine may damage pages of the database, " +
      "unless its file system never writes a page in part",
  ],
]);

/** Risks that no session setting removes, one sentence each; none: commits are as durable as the server's disk. */
export async function durabilityRisks(connection: ClientBase | Pool): Promise<string[]> {
  const { rows } = await connection.query<{ name: string }>(
    "SELECT name FROM pg_settings WHERE name = ANY ($1) AND setting = 'off' ORDER BY name",
    [[...SERVER_RISKS.keys()]],
  );
  return rows.map(
    ({ name }) =>
      `PostgreSQL runs with ${SERVER_RISKS.get(name) ?? name}. Set ${name} = on in the server's ` +
      "configuration, and reload it.",
  );
}
