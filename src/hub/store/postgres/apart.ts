/** Statements that may take long, on connections of their own, which the server ends with the time of a statement. */
import { isCancelled } from "#core/sql/postgres/faults.ts";
import { FairQueue } from "#core/turns.ts";
import type { Database } from "../database.ts";
import { LongFilter } from "../filter.ts";
import { createPool, type PostgresOptions, sqlOn } from "./database.ts";
import { drive } from "./driver.ts";

const CONNECTIONS = 2;

export function createApart(options: PostgresOptions, limitMs: number) {
  const settings = { jit: "off", statement_timeout: String(limitMs) };
  const pool = createPool(options, { max: CONNECTIONS, settings });
  const turns = new FairQueue<number>(CONNECTIONS, { ofOne: 1 });
  const sql = sqlOn(pool);
  const ask: Database["askApart"] = (accountId, work) =>
    turns.run(accountId, async () => {
      try {
        return await drive(sql, work());
      } catch (thrown) {
        throw isCancelled(thrown) ? new LongFilter(limitMs) : thrown;
      }
    });
  return { ask, close: () => pool.end() };
}
