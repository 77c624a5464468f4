/** A transaction beside the one that writes records: for bytes, which would delay the records. */
import type { Pool, PoolClient } from "pg";
import type { Clock } from "#core/clock.ts";
import { isLost } from "#core/sql/postgres/faults.ts";

const QUESTIONS_MAX = 20;
const QUESTION_EVERY_MS = 250;

export type Questioned = Pick<Pool, "query">;

/** Committed when it resolves. */
export async function inTransaction<T>(pool: Pool, clock: Clock, work: (client: PoolClient) => Promise<T>): Promise<T> {
  const client = await pool.connect();
  let isBroken = false;
  try {
    await client.query("BEGIN ISOLATION LEVEL READ COMMITTED");
    const value = await work(client);
    const { rows } = await client.query<{ id: string | null }>("SELECT pg_current_xact_id_if_assigned()::text AS id");
    try {
      await client.query("COMMIT");
    } catch (thrown) {
      const id = rows[0]?.id ?? null;
      if (!isLost(thrown) || id === null || !(await wasCommitted(pool, id, clock))) throw thrown;
      isBroken = true;
    }
    return value;
  } catch (thrown) {
    const ended = isLost(thrown) ? undefined : await client.query("ROLLBACK").catch(() => undefined);
    isBroken = ended === undefined;
    throw thrown;
  } finally {
    client.release(isBroken);
  }
}

/** Whether a transaction whose connection was lost before the response was committed. */
export async function wasCommitted(asked: Questioned, id: string, clock: Clock): Promise<boolean> {
  for (let question = 1; question <= QUESTIONS_MAX; question += 1) {
    try {
      const { rows } = await asked.query<{ status: string | null }>("SELECT pg_xact_status($1::xid8) AS status", [id]);
      if (rows[0]?.status !== "in progress") return rows[0]?.status === "committed";
    } catch (thrown) {
      if (!isLost(thrown)) return false;
    }
    await clock.sleep(QUESTION_EVERY_MS, new AbortController().signal);
  }
  return false;
}
