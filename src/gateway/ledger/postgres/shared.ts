/** The bytes that nodes share, in the schema of the ledger. */

import type { Clock } from "#core/clock.ts";
import { isUniqueViolation } from "#core/sql/postgres/faults.ts";
import type { ContentKind, SharedBytes, SharedContent } from "../shared.ts";
import { brokenInvariant } from "../transitions.ts";
import type { Connections } from "./connection.ts";
import { faultOf } from "./faults.ts";
import { intakeMethods } from "./shared-intake.ts";
import { openFile, storeFile } from "./stored-files.ts";
import { inTransaction, type Questioned } from "./transaction.ts";

export interface SharedMeans {
  readonly connections: Connections;
  readonly clock: Clock;
  readonly readOnly: boolean;
  /** The fence of this node; null for a process that is not a node. */
  readonly session: () => number | null;
}

/** Access to the database, with faults converted to those of the ledger. */
export interface DatabaseAccess {
  read<T>(work: (client: Questioned) => Promise<T>): Promise<T>;
  /** One transaction. */
  write<T>(work: (client: Questioned) => Promise<T>): Promise<T>;
  /** Inside a write: fails with `HG-LEDG-010` when the lease of this node has lapsed. */
  assertSession(client: Questioned): Promise<void>;
}

export function sharedBytes({ connections, clock, readOnly, session }: SharedMeans): SharedBytes {
  const { carriers, place } = connections;
  const database: DatabaseAccess = {
    async read(work) {
      try {
        return await work(carriers);
      } catch (thrown) {
        throw faultOf("read shared bytes", place, thrown);
      }
    },
    async write(work) {
      if (readOnly) throw brokenInvariant("write shared bytes", place, "opened for reading only");
      try {
        return await inTransaction(carriers, clock, work);
      } catch (thrown) {
        throw faultOf("write shared bytes", place, thrown);
      }
    },
    assertSession: async (client) => void (await client.query("SELECT assert_session($1)", [session()])),
  };
  return { intake: intakeMethods(database), content: contentMethods(database) };
}

function contentMethods(database: DatabaseAccess): SharedContent {
  return {
    async keep(kind, name, bytes) {
      if (await touch(database, kind, name)) return;
      const all = await bytes();
      try {
        await database.write((client) => storeFile(client, { store: kind, path: name, size: all.length }, one(all)));
      } catch (thrown) {
        // Another node stored the same content at this moment.
        if (!isUniqueViolation(thrown)) throw thrown;
      }
    },
    find: (kind, name) =>
      database.read(async (client) => {
        const pieces = await openFile(client, kind, name);
        return pieces === null ? null : Buffer.concat(await Array.fromAsync(pieces));
      }),
    prune: (beforeMs) =>
      database.write(async (client) => {
        const { rowCount } = await client.query(
          "DELETE FROM stored_files WHERE shelf IN ('mapper', 'lookup') AND used_at < to_timestamp($1 / 1000.0)",
          [beforeMs],
        );
        return rowCount ?? 0;
      }),
  };
}

/** False when the content is missing. */
function touch(database: DatabaseAccess, kind: ContentKind, name: string): Promise<boolean> {
  return database.write(async (client) => {
    const { rowCount } = await client.query(
      "UPDATE stored_files SET used_at = clock_timestamp() WHERE shelf = $1 AND path = $2",
      [kind, name],
    );
    return rowCount === 1;
  });
}

async function* one(bytes: Buffer): AsyncGenerator<Buffer> {
  yield bytes;
}
