/** Makes blocks of rows, and of new points that never become rows. */

import { faultPoint } from "#core/faults.ts";
import { isDatabaseTrouble } from "#core/sql/trouble.ts";
import { change, type Database, type Row, row, rows, type Steps, type StoreDialect } from "../database.ts";
import { FAR_MS } from "../point-rows.ts";
import { truth } from "../structure-rows.ts";
import { addBlocks } from "./blocks.ts";
import type { Columns } from "./codec.ts";
import { JOINED_MAX, type RowSpan, RUN_MIN } from "./plan.ts";

/** Rows that one transaction packs: other writers wait only for a moment. */
const PART_ROWS = 20_000;
/** Oldest rows of a variable that are worth a transaction after the start. */
const FOUND_ROWS = JOINED_MAX;
/** New rows that are: only those of few variables do not become part of blocks at once. */
const DUE_ROWS = 512;
/** Variables that are examined at one time after the start. */
const EXAMINED = 200;

const STORED = `at_ms, value, origin_id, version IS NULL AND tags IS NULL AND batch_tags IS NULL AS bare
  FROM point WHERE variable_id = ?`;
const isBare = (stored: Row) => truth(stored["bare"]);

function columnsOf(stored: readonly Row[]): Columns {
  return {
    atMs: Float64Array.from(stored, (one) => Number(one["at_ms"])),
    values: Float64Array.from(stored, (one) => Number(one["value"])),
    origins: Float64Array.from(stored, (one) => Number(one["origin_id"])),
  };
}

/**
 * Makes blocks of the rows of a variable after a date and shortly before it, a part of them. Returns the date after
 * which the next part begins; null after the last.
 */
export function* packRows(id: number, afterMs: number): Steps<number | null> {
  const variable = yield* row("SELECT is_versioned FROM variable WHERE id = ?", id);
  // Versions may have been switched on, or the variable removed, since it was found due.
  if (variable === undefined || truth(variable["is_versioned"])) return null;
  const earlier = yield* row(
    `SELECT min(at_ms) AS first FROM (
      SELECT at_ms FROM point WHERE variable_id = ? AND at_ms <= ? ORDER BY at_ms DESC LIMIT ?) AS earlier`,
    ...[id, afterMs, JOINED_MAX],
  );
  const fromMs = Number(earlier?.["first"] ?? afterMs + 1);
  const stored = yield* rows(`SELECT ${STORED} AND at_ms >= ? ORDER BY at_ms LIMIT ?`, id, fromMs, PART_ROWS);
  const isLast = stored.length < PART_ROWS;
  const [first, last] = [stored[0], stored.at(-1)];
  if (first === undefined || last === undefined) return null;
  const begins = yield* rows(
    "SELECT first_ms FROM point_block WHERE variable_id = ? AND first_ms BETWEEN ? AND ? ORDER BY first_ms",
    ...[id, Number(first["at_ms"]), Number(last["at_ms"])],
  );
  const cuts = begins.map((one) => Number(one["first_ms"]));
  for (const run of runsOf(stored, cuts)) if (run.length >= RUN_MIN) yield* replaceRows(id, run);
  return isLast ? null : Number(last["at_ms"]);
}

/** Rows without labels that follow each other without a block between them. */
function* runsOf(stored: readonly Row[], cuts: readonly number[]): Generator<readonly Row[]> {
  let run: Row[] = [];
  let cut = 0;
  for (const one of stored) {
    const atMs = Number(one["at_ms"]);
    const isCut = (cuts[cut] ?? Number.POSITIVE_INFINITY) < atMs;
    while ((cuts[cut] ?? Number.POSITIVE_INFINITY) < atMs) cut += 1;
    if (isCut || !isBare(one)) {
      yield run;
      run = [];
    }
    if (isBare(one)) run.push(one);
  }
  yield run;
}

function* replaceRows(id: number, run: readonly Row[]): Steps<void> {
  yield* removeRows(id, { firstMs: Number(run[0]?.["at_ms"]), lastMs: Number(run.at(-1)?.["at_ms"]) });
  yield* addBlocks(id, columnsOf(run));
}

export function* removeRows(id: number, { firstMs, lastMs }: RowSpan): Steps<void> {
  yield* change("DELETE FROM point WHERE variable_id = ? AND at_ms BETWEEN ? AND ?", id, firstMs, lastMs);
}

/** Whether the oldest rows of a variable can be packed; those of a later run wait until more points come. */
const IS_WORTH_PACKING = `(SELECT count(*) = ${FOUND_ROWS} AND sum(bare) > 0 FROM (
  SELECT CASE WHEN version IS NULL AND tags IS NULL AND batch_tags IS NULL THEN 1 ELSE 0 END AS bare
  FROM point WHERE variable_id = variable.id ORDER BY at_ms LIMIT ${FOUND_ROWS}) AS oldest)`;

/** Nothing is done while another transaction holds the lane: other work of this node does not wait for it. */
function* packPart(
  dialect: StoreDialect,
  id: number,
  afterMs: number,
): Steps<{ readonly isDone: boolean; readonly afterMs: number | null }> {
  const variable = yield* row("SELECT account_id FROM variable WHERE id = ?", id);
  if (variable === undefined) return { isDone: true, afterMs: null };
  if (!(yield* dialect.tryLane(Number(variable["account_id"])))) return { isDone: false, afterMs };
  return { isDone: true, afterMs: yield* packRows(id, afterMs) };
}

interface Due {
  rows: number;
  fromMs: number;
}

/**
 * Chooses the variables whose rows are packed: those that got many rows, and after the start all of them, since a hub
 * may have ended before it packed theirs.
 */
export class Packing {
  readonly #database: Database;
  readonly #grown = new Map<number, Due>();
  /** From the date after which the rows of a variable are packed. */
  readonly #due = new Map<number, number>();
  /** Id of the last variable that was examined; null: all were. */
  #examined: number | null = 0;
  #packed: (id: number) => void = () => {};

  constructor(database: Database) {
    this.#database = database;
  }

  /** Sets who is called after a variable may have got blocks. */
  listen(packed: (id: number) => void): void {
    this.#packed = packed;
  }

  /** Rows of a variable without versions were added, the earliest at that date. */
  grew(id: number, count: number, fromMs: number): void {
    const known = this.#grown.get(id);
    const grown = known ?? { rows: 0, fromMs };
    grown.rows += count;
    grown.fromMs = Math.min(grown.fromMs, fromMs);
    if (grown.rows < DUE_ROWS) {
      if (known === undefined) this.#grown.set(id, grown);
      return;
    }
    this.#grown.delete(id);
    this.#due.set(id, Math.min(grown.fromMs - 1, this.#due.get(id) ?? FAR_MS));
  }

  /** Rows of a variable that were not packed yet, as far as it is known. */
  waiting(id: number): number {
    return this.#grown.get(id)?.rows ?? 0;
  }

  /** The newest rows of a variable became a block. */
  joined(id: number): void {
    this.#grown.delete(id);
  }

  /** A block became rows again. */
  opened(id: number, fromMs: number): void {
    this.grew(id, DUE_ROWS, fromMs);
  }

  /** Packs a part of the rows of one variable; false: there is nothing to do for now. */
  async next(): Promise<boolean> {
    const [next] = this.#due;
    if (next === undefined) return await this.#examine();
    const [id, afterMs] = next;
    this.#due.delete(id);
    faultPoint("hub.pack.before");
    try {
      const rest = await this.#database.write(() => packPart(this.#database.dialect, id, afterMs));
      faultPoint("hub.pack.after");
      if (rest.afterMs !== null) this.#due.set(id, rest.afterMs);
      return rest.isDone;
    } catch (thrown) {
      // With a full disk for example: the others have their turn first.
      if (isDatabaseTrouble(thrown)) this.#due.set(id, afterMs);
      throw thrown;
    } finally {
      this.#packed(id);
    }
  }

  async #examine(): Promise<boolean> {
    const afterId = this.#examined;
    if (afterId === null) return false;
    const found = await this.#database.ask(() =>
      rows(
        `SELECT id, NOT is_versioned AND ${IS_WORTH_PACKING} AS due FROM variable WHERE id > ? ORDER BY id LIMIT ?`,
        ...[afterId, EXAMINED],
      ),
    );
    for (const variable of found) if (truth(variable["due"])) this.#due.set(Number(variable["id"]), -FAR_MS);
    const last = found.at(-1);
    this.#examined = last === undefined ? null : Number(last["id"]);
    return true;
  }
}
