/** Drives the statements that both databases share over one SQLite file. */
import type { Database, Statement, Steps } from "../database.ts";
import type { Apart } from "./apart.ts";
import type { Statements } from "./database.ts";
import { bound, SQLITE } from "./dialect.ts";

/** One transaction; durable when it resolves. */
export type Write = <T>(work: () => T) => Promise<T>;

/** Without `apart` the thread of the caller may be held as long as a statement takes. */
export function sqliteDatabase(tools: Statements, write: Write, apart?: Apart): Database {
  return {
    dialect: SQLITE,
    ask: async (work) => drive(tools, work()),
    askApart: async (accountId, work) => (apart === undefined ? drive(tools, work()) : apart.ask(accountId, work)),
    snapshot: async (work) => inSnapshot(tools, () => drive(tools, work())),
    run: (sql, ...values) => write(() => tools.run(sql, ...values.map(bound)).changes),
    write: (work) => write(() => drive(tools, work())),
  };
}

/** Synchronous; inside the open transaction, if there is one. */
export function drive<T>(tools: Statements, steps: Steps<T>): T {
  let next = steps.next();
  while (next.done !== true) next = steps.next(answer(tools, next.value));
  return next.value;
}

export function answer(tools: Statements, { want, sql, values }: Statement): unknown {
  const given = values.map(bound);
  if (want === "row") return tools.get(sql, ...given);
  if (want === "rows") return tools.all(sql, ...given);
  return tools.run(sql, ...given).changes;
}

/** Another connection may commit between two statements: in here both see the same. */
export function inSnapshot<T>(tools: Statements, work: () => T): T {
  tools.run("BEGIN");
  try {
    return work();
  } finally {
    tools.run("COMMIT");
  }
}
