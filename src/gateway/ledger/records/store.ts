/**
 * The store that the ledger's statements use (`sql/statements.ts`); each database implements it. Where the
 * databases differ, the `Dialect` provides the text.
 */
import type { Clock } from "#core/clock.ts";
import { execute, type Steps, type Value } from "#core/sql/statements.ts";
import type { Arrival, IsoInstant, LedgerEvent } from "../../model.ts";
import type { LedgerFault } from "../ledger.ts";

/** The file of an event. */
export type EventFile = Pick<Arrival, "drop" | "path">;

/** An event that is not passed to the observer yet. */
export interface Announced {
  readonly event: LedgerEvent;
  readonly file: EventFile | undefined;
}

export interface Store {
  readonly clock: Clock;
  readonly dialect: Dialect;
  now(): IsoInstant;
  /** Greater than that of every earlier run. */
  nextRunId(): Steps<string>;
  /**
   * The fence of this node: a step that begins under one fence must not continue under another. Null for a
   * process that is not a node, and for a lone owner.
   */
  readonly session: number | null;
  /** For use inside a write: fails with `HG-LEDG-010` while another node works on the run. */
  assertRun(id: string): Steps<void>;
  /** For use inside a write: fails with `HG-LEDG-010` unless the session polls the drop. */
  assertDrop(drop: string, session: number | null): Steps<void>;
  /** A condition on `runs`: this node may work on them. */
  ours(): { readonly where: string; readonly values: readonly Value[] };
  /**
   * Passes an event to the observer, once the transaction is committed. The file is read when it is not
   * given.
   */
  announce(event: LedgerEvent, file?: EventFile): void;
  /** One statement, or several that need not see one state. */
  look<T>(work: () => Steps<T>): Promise<T>;
  /** Several reads of one state of the ledger. */
  read<T>(work: () => Steps<T>): Promise<T>;
  /** One transaction. `what` names the fault points `ledger.<what>.before` and `.after` the commit. */
  write<T>(what: string | readonly string[], work: () => Steps<T>): Promise<T>;
}

/** The SQL that differs between the databases. Each text takes the values of its `?`. */
export interface Dialect {
  /** True when `column` is in a JSON array of texts, which is the one value. */
  among(column: string): string;
  /** Demands an index, for a planner that accepts hints. */
  indexedBy(index: string): string;
  /** A field of a column that holds a JSON object, as text. */
  jsonField(column: string, field: string): string;
  /** All values of a column as one JSON array. */
  jsonArray(column: string): string;
  /** Milliseconds from one instant to another, both as the ledger writes them; null when one of them is. */
  msBetween(from: string, to: string): string;
  contains(column: string): string;
  /** Takes the beginning as two values. */
  startsWith(expression: string): string;
  /** Takes a pattern of LIKE, in which a backslash escapes; ASCII letters match in either case. */
  isLike(expression: string): string;
  /** Demands the order of the primary key, for a planner that accepts hints. */
  readonly byRowId: string;
  /** Takes the end as two values. */
  endsWith(expression: string): string;
  /** Damage that the database itself finds in its files. */
  damage(most: number): Steps<readonly LedgerFault[]>;
}

/**
 * Separates the path of a container from that of an entry. The name of a file at a drop may contain it as
 * well.
 */
const ENTRY_MARK = "!/";

/** Builds a text once for each dialect, rather than for each query. */
export function perDialect(build: (dialect: Dialect) => string): (store: Store) => string {
  const texts = new WeakMap<Dialect, string>();
  return ({ dialect }) => {
    const text = texts.get(dialect) ?? build(dialect);
    texts.set(dialect, text);
    return text;
  };
}

/**
 * For use inside a write: an entry has changed, so its container is checked again when it had come to rest.
 */
export function* reopenContainer(arrivalId: number, path: Arrival["path"]): Steps<void> {
  if (!path.includes(ENTRY_MARK)) return;
  yield* execute(
    `UPDATE runs SET settled = 0 WHERE state = 'opened' AND settled = 1 AND finished_at IS NULL
      AND id = (SELECT container.run_id FROM arrivals AS entry
        JOIN arrivals AS container ON container.id = entry.parent_id WHERE entry.id = ?)`,
    arrivalId,
  );
}
