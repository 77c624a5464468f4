/**
 * What the statements of a ledger are written against (`sql/statements.ts`): the store of each database drives them. Where the databases
 * differ, the text is put together by the `Dialect`.
 */
import type { Arrival, IsoInstant, LedgerEvent } from "../../model.ts";
import type { Steps, Value } from "../../sql/statements.ts";
import type { Clock } from "../../support/clock.ts";
import type { LedgerFault } from "../ledger.ts";

export {
  type ColumnType,
  cells,
  change,
  type EachStatement,
  execute,
  executeEach,
  NO_LIMIT,
  type OneStatement,
  row,
  rowEach,
  rows,
  type Statement,
  type Steps,
  type Value,
} from "../../sql/statements.ts";

/** The file that an event is about. */
export type EventFile = Pick<Arrival, "drop" | "path">;

/** An event that is not told yet. */
export interface Announced {
  readonly event: LedgerEvent;
  readonly file: EventFile | undefined;
}

export interface Store {
  readonly clock: Clock;
  readonly dialect: Dialect;
  now(): IsoInstant;
  /** Greater than that of every run before it. */
  nextRunId(): Steps<string>;
  /** The fence of this node: what begins under one fence must not go on under another. Null for who is none, and a lone owner. */
  readonly session: number | null;
  /** Inside a write: fails with `HG-LEDG-010` while another node works on the run. */
  assertRun(id: string): Steps<void>;
  /** Inside a write: fails with `HG-LEDG-010` unless the session polls the drop. */
  assertDrop(drop: string, session: number | null): Steps<void>;
  /** A condition on `runs`: this node may work on them. */
  ours(): { readonly where: string; readonly values: readonly Value[] };
  /** Tells the observer of an event, once the transaction is committed. The file is looked up when it is not given. */
  announce(event: LedgerEvent, file?: EventFile): void;
  /** One statement, or several that need not see one state. */
  look<T>(work: () => Steps<T>): Promise<T>;
  /** Several reads of one state of the ledger. */
  read<T>(work: () => Steps<T>): Promise<T>;
  /** One transaction. `what` names the fault points `ledger.<what>.before` and `.after` the commit. */
  write<T>(what: string | readonly string[], work: () => Steps<T>): Promise<T>;
}

/** What the databases say differently. Each text takes the values that its `?` show. */
export interface Dialect {
  /** `column` is one of the texts of a JSON array, which is the one value. */
  among(column: string): string;
  /** Insists on an index, where the planner can be told. */
  indexedBy(index: string): string;
  /** A field of a column that holds a JSON object, as text. */
  jsonField(column: string, field: string): string;
  /** All values of a column as one JSON array. */
  jsonArray(column: string): string;
  contains(column: string): string;
  /** Takes the end twice. */
  endsWith(expression: string): string;
  /** What the database itself finds broken in its files. */
  damage(most: number): Steps<readonly LedgerFault[]>;
}

/** A text that is put together once for each dialect, and not each time that it is asked. */
export function perDialect(build: (dialect: Dialect) => string): (store: Store) => string {
  const texts = new WeakMap<Dialect, string>();
  return ({ dialect }) => {
    const text = texts.get(dialect) ?? build(dialect);
    texts.set(dialect, text);
    return text;
  };
}
