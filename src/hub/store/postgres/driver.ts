/** Drives the statements that both databases share over the connections to PostgreSQL. */
import type pg from "pg";
import type { Database, Steps } from "../database.ts";
import { type Sql, sqlOn, transact } from "./database.ts";
import { POSTGRES } from "./dialect.ts";

export function postgresDatabase(pool: pg.Pool, askApart?: Database["askApart"]): Database {
  const sql = sqlOn(pool);
  return {
    dialect: POSTGRES,
    ask: (work) => drive(sql, work()),
    askApart: askApart ?? ((_, work) => drive(sql, work())),
    snapshot: (work) =>
      transact(pool, async (transaction) => {
        await transaction.run("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY");
        return await drive(transaction, work());
      }),
    run: sql.run,
    write: (work) => transact(pool, (transaction) => drive(transaction, work())),
  };
}

/** On one connection, inside its open transaction. */
export async function drive<T>({ get, all, run }: Sql, steps: Steps<T>): Promise<T> {
  let next = steps.next();
  while (next.done !== true) {
    const { want, sql, values } = next.value;
    if (want === "row") next = steps.next(await get(sql, ...values));
    else if (want === "rows") next = steps.next(await all(sql, ...values));
    else next = steps.next(await run(sql, ...values));
  }
  return next.value;
}
