/** Typed reads of prepared statements, with faults converted to those of the ledger. */
import type { StatementSync } from "node:sqlite";
import type { Value } from "../records/store.ts";
import { isPassing, readFault } from "./faults.ts";

/** A row in the shape of the caller's SELECT. */
export function row<Row>(statement: StatementSync, ...values: Value[]): Row | undefined {
  return readable(() => statement.get(...values) as unknown as Row | undefined);
}

export function readable<T>(work: () => T): T {
  try {
    return work();
  } catch (thrown) {
    throw isPassing(thrown) ? readFault(thrown) : thrown;
  }
}
