/** The bytes that nodes share, in the schema of the ledger. */
import type { Clock } from "#core/clock.ts";
import { faultPoint } from "#core/faults.ts";
import { isUniqueViolation } from "#core/sql/postgres/faults.ts";
import type { Published, SharedBody, SharedIntake, WaitingBody } from "../../model.ts";
import type { ContentKind, SharedBytes, SharedContent } from "../ledger.ts";
import { brokenInvariant } from "../transitions.ts";
import type { Connections } from "./connection.ts";
import { faultOf } from "./faults.ts";
import { openFile, storeFile } from "./stored-files.ts";
import { inTransaction, type Questioned } from "./transaction.ts";

export interface SharedMeans {
  readonly connections: Connections;
  readonly clock: Clock;
  readonly readOnly: boolean;
  /** The fence of this node; null for a process that is not a node. */
  readonly session: () => number | null;
}

/**
 * `HGIK`, `HGIT`; with the digest, the locks of senders of equal bodies, so that exactly one of them is the
 * first.
 */
const KEYED_LOCK = 0x4847494b;
const OPERATION_LOCK = 0x48474954;
const storeOf = (drop: string) => `intake ${drop}`;

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

// The bodies that HTTP intakes received, in the schema of the ledger: a body and its receipt are committed in
// one transaction.

function intakeMethods(database: DatabaseAccess): SharedIntake {
  return {
    secret: (drop, made) =>
      database.write(async (client) => {
        await client.query("INSERT INTO intakes (drop_name, secret) VALUES ($1, $2) ON CONFLICT DO NOTHING", [
          drop,
          made,
        ]);
        const { rows } = await client.query<{ secret: Buffer }>("SELECT secret FROM intakes WHERE drop_name = $1", [
          drop,
        ]);
        return rows[0]?.secret ?? made;
      }),
    nextId: (drop) =>
      database.write(async (client) => {
        // An id that was issued and not used has no effect, so the statement does not wait for the disk.
        await client.query("SET LOCAL synchronous_commit = off");
        const { rows } = await client.query<{ id: number }>(
          `UPDATE intakes SET last_id = greatest(last_id + 1, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)
            WHERE drop_name = $1 RETURNING last_id AS id`,
          [drop],
        );
        return rows[0]?.id ?? 0;
      }),
    publish: (drop, body, pieces) => database.write((client) => publish(client, drop, body, pieces)),
    waiting: (drop, after, limit) =>
      database.read(async (client) => {
        const sql = "SELECT id, record FROM intake_receipts WHERE drop_name = $1 AND lying AND id > $2";
        return (await client.query<WaitingBody>(`${sql} ORDER BY id LIMIT $3`, [drop, after, limit])).rows;
      }),
    waitingBytes: (drop) => readNumber(database, "sum(size)", drop),
    allWaitingBytes: () =>
      database.read(async (client) => {
        const sql = "SELECT sum(size) AS total FROM intake_receipts WHERE lying";
        return (await client.query<{ total: number | null }>(sql)).rows[0]?.total ?? 0;
      }),
    newest: (drop) => readNumber(database, "max(id)", drop),
    record: (drop, path) =>
      database.read(async (client) => {
        const sql = "SELECT record FROM intake_receipts WHERE drop_name = $1 AND path = $2";
        return (await client.query<{ record: string }>(sql, [drop, path])).rows[0]?.record ?? null;
      }),
    stat: (drop, path) =>
      database.read(async (client) => {
        const sql = "SELECT size, mtime FROM stored_files WHERE shelf = $1 AND path = $2";
        const { rows } = await client.query<{ size: number; mtime: string }>(sql, [storeOf(drop), path]);
        return rows[0] ?? null;
      }),
    open: (drop, path) =>
      database.read(async (client) => guarded(database, await openFile(client, storeOf(drop), path))),
    remove: (drop, path) => database.write((client) => remove(database, client, drop, path)),
    move: (drop, path, to) => database.write((client) => move(database, client, drop, path, to)),
    below: (drop, folder, after, limit) =>
      database.read(async (client) => {
        const { rows } = await client.query<{ path: string }>(
          `SELECT path FROM stored_files WHERE shelf = $1 AND path > $2 AND starts_with(path, $3)
ORDER BY path LIMIT $4`,
          [storeOf(drop), after, `${folder}/`, limit],
        );
        return rows.map(({ path }) => path);
      }),
    forget: (drop, beforeId) =>
      database.write(
        async (client) =>
          void (await client.query("DELETE FROM intake_receipts WHERE drop_name = $1 AND NOT lying AND id < $2", [
            drop,
            beforeId,
          ])),
      ),
  };
}

async function publish(
  client: Questioned,
  drop: string,
  body: SharedBody,
  pieces: AsyncIterable<Uint8Array>,
): Promise<Published> {
  const { id, path, size, mtime, content, byOperation, keyed, record } = body;
  // Always in this order, which excludes a deadlock.
  if (keyed !== null) await lock(client, KEYED_LOCK, drop, keyed);
  if (byOperation !== null) await lock(client, OPERATION_LOCK, drop, byOperation);
  const repeat = await repeatOf(client, drop, body);
  if (repeat !== null) return repeat;
  await storeFile(client, { store: storeOf(drop), path, size, mtime }, pieces);
  await client.query(
    `INSERT INTO intake_receipts (drop_name, id, path, size, content, told, keyed, record)
      VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`,
    [drop, id, path, size, content, byOperation, keyed, record],
  );
  faultPoint("intake.sharing");
  return { kind: "taken" };
}

async function lock(client: Questioned, kind: number, drop: string, digest: string): Promise<void> {
  await client.query("SELECT pg_advisory_xact_lock($1, hashtext(current_schema() || $2 || $3))", [kind, drop, digest]);
}

async function repeatOf(
  client: Questioned,
  drop: string,
  { keyed, byOperation, content }: SharedBody,
): Promise<Published | null> {
  const first = async (column: "keyed" | "told", digest: string) => {
    const sql = `SELECT content, record FROM intake_receipts
WHERE drop_name = $1 AND ${column} = $2 ORDER BY id LIMIT 1`;
    return (await client.query<{ content: string; record: string }>(sql, [drop, digest])).rows[0];
  };
  const sameKey = keyed === null ? undefined : await first("keyed", keyed);
  if (sameKey !== undefined)
    return sameKey.content === content ? { kind: "repeat", record: sameKey.record } : { kind: "conflict" };
  const same = byOperation === null ? undefined : await first("told", byOperation);
  return same === undefined ? null : { kind: "repeat", record: same.record };
}

async function remove(database: DatabaseAccess, client: Questioned, drop: string, path: string): Promise<void> {
  await client.query("DELETE FROM stored_files WHERE shelf = $1 AND path = $2", [storeOf(drop), path]);
  await leave(database, client, drop, path);
}

async function move(
  database: DatabaseAccess,
  client: Questioned,
  drop: string,
  path: string,
  to: string,
): Promise<boolean> {
  const taken = await client.query("SELECT 1 FROM stored_files WHERE shelf = $1 AND path = $2", [storeOf(drop), to]);
  if (taken.rows.length > 0) return false;
  await client.query("UPDATE stored_files SET path = $3 WHERE shelf = $1 AND path = $2", [storeOf(drop), path, to]);
  await leave(database, client, drop, path);
  return true;
}

async function leave(database: DatabaseAccess, client: Questioned, drop: string, path: string): Promise<void> {
  await client.query("UPDATE intake_receipts SET lying = false WHERE drop_name = $1 AND path = $2", [drop, path]);
  await database.assertSession(client);
}

async function readNumber(database: DatabaseAccess, what: string, drop: string): Promise<number> {
  return await database.read(async (client) => {
    const sql = `SELECT ${what} AS total FROM intake_receipts WHERE drop_name = $1 AND lying`;
    return (await client.query<{ total: number | null }>(sql, [drop])).rows[0]?.total ?? 0;
  });
}

/** Converts faults while a piece is read to those of the ledger. */
function guarded(database: DatabaseAccess, pieces: AsyncIterable<Buffer> | null): AsyncIterable<Buffer> | null {
  if (pieces === null) return null;
  const each = pieces[Symbol.asyncIterator]();
  return {
    [Symbol.asyncIterator]: () => ({
      next: () => database.read(() => each.next()),
      return: async () => (await each.return?.()) ?? { done: true as const, value: undefined },
    }),
  };
}

/** Access to the database, with faults converted to those of the ledger. */
interface DatabaseAccess {
  read<T>(work: (client: Questioned) => Promise<T>): Promise<T>;
  /** One transaction. */
  write<T>(work: (client: Questioned) => Promise<T>): Promise<T>;
  /** Inside a write: fails with `HG-LEDG-010` when the lease of this node has lapsed. */
  assertSession(client: Questioned): Promise<void>;
}
