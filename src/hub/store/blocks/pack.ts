/** Makes blocks of rows, and of new points that never become rows. */

import { isDatabaseTrouble } from "../../../sql/trouble.ts";
import { faultPoint } from "../../../support/faults.ts";
import { change, type Database, type Row, row, rows, type Steps, type StoreDialect } from "../database.ts";
import { FAR_MS } from "../point-rows.ts";
import { truth } from "../structure-rows.ts";
import { addBlocks } from "./blocks.ts";
import type { Columns } from "./codec.ts";

/** The newest points stay rows, so that the latest ones are found without opening a block, and corrected in place. */
export const TAIL_POINTS = 200;
/** Shorter runs stay rows. */
const RUN_MIN = 300;
/** Rows that one transaction packs: other writers wait only for a moment. */
const PART_ROWS = 20_000;
/** Rows that are worth a transaction. */
const DUE_ROWS = RUN_MIN + TAIL_POINTS + 700;
/** Rows before those that came that may be in a block with them: the newest ones of the last time, and a short run. */
const EARLIER_ROWS = RUN_MIN + TAIL_POINTS;
/** Rows before new points that go into a block with these. */
const JOINED_MAX = 2_000;
/** Variables that are examined at one time after the start. */
const EXAMINED = 20;

const STORED = `at_ms, value, origin_id, version IS NULL AND tags IS NULL AND batch_tags IS NULL AS bare
  FROM point WHERE variable_id = ?`;
const isBare = (stored: Row) => truth(stored["bare"]);

function columnsOf(stored: readonly Row[]): Columns {
  return {
    atMs: Float64Array.from(stored, (one) => Number(one["at_ms"])),
    values: Float64Array.from(stored, (one) => Number(one["value"])),
    origins: Float64Array.from(stored, (one) => Number(one["origin_id"] ?? 0)),
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
    ...[id, afterMs, EARLIER_ROWS],
  );
  const fromMs = Number(earlier?.["first"] ?? afterMs + 1);
  const stored = yield* rows(`SELECT ${STORED} AND at_ms >= ? ORDER BY at_ms LIMIT ?`, id, fromMs, PART_ROWS);
  const isLast = stored.length < PART_ROWS;
  const settled = isLast ? stored.slice(0, -TAIL_POINTS) : stored;
  const [first, last] = [settled[0], settled.at(-1)];
  if (first === undefined || last === undefined) return null;
  const begins = yield* rows(
    "SELECT first_ms FROM point_block WHERE variable_id = ? AND first_ms BETWEEN ? AND ? ORDER BY first_ms",
    ...[id, Number(first["at_ms"]), Number(last["at_ms"])],
  );
  const cuts = begins.map((one) => Number(one["first_ms"]));
  for (const run of runsOf(settled, cuts)) if (run.length >= RUN_MIN) yield* replaceRows(id, run);
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
  yield* removeRows(id, Number(run[0]?.["at_ms"]), Number(run.at(-1)?.["at_ms"]));
  yield* addBlocks(id, columnsOf(run));
}

function* removeRows(id: number, firstMs: number, lastMs: number): Steps<void> {
  yield* change("DELETE FROM point WHERE variable_id = ? AND at_ms BETWEEN ? AND ?", id, firstMs, lastMs);
}

/** Adds new points, between whose dates nothing is stored, as blocks, together with the rows right before them. */
export function* packNew(id: number, fresh: Columns): Steps<void> {
  const firstMs = fresh.atMs[0] ?? 0;
  const block = yield* row(
    "SELECT last_ms FROM point_block WHERE variable_id = ? AND first_ms < ? ORDER BY first_ms DESC LIMIT 1",
    ...[id, firstMs],
  );
  const before = yield* rows(
    `SELECT ${STORED} AND at_ms > ? AND at_ms < ? ORDER BY at_ms DESC LIMIT ?`,
    ...[id, Number(block?.["last_ms"] ?? -FAR_MS), firstMs, JOINED_MAX],
  );
  const labelled = before.findIndex((one) => !isBare(one));
  const joined = (labelled < 0 ? before : before.slice(0, labelled)).toReversed();
  if (joined.length === 0) return yield* addBlocks(id, fresh);
  yield* removeRows(id, Number(joined[0]?.["at_ms"]), Number(joined.at(-1)?.["at_ms"]));
  const { atMs, values, origins } = columnsOf(joined);
  yield* addBlocks(id, {
    atMs: Float64Array.from([...atMs, ...fresh.atMs]),
    values: Float64Array.from([...values, ...fresh.values]),
    origins: Float64Array.from([...origins, ...fresh.origins]),
  });
}

/** Whether the oldest rows of a variable can be packed; those of a later run wait until more points come. */
function* isWorthPacking(id: number): Steps<boolean> {
  const oldest = yield* rows(`SELECT ${STORED} ORDER BY at_ms LIMIT ?`, id, DUE_ROWS);
  return oldest.length === DUE_ROWS && oldest.slice(0, -TAIL_POINTS).some(isBare);
}

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
 * Chooses the variables whose rows are packed: those that got many rows, and after the start all of them, so that
 * stores of earlier versions become compact.
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
      rows("SELECT id, is_versioned FROM variable WHERE id > ? ORDER BY id LIMIT ?", afterId, EXAMINED),
    );
    for (const variable of found) {
      const id = Number(variable["id"]);
      if (!truth(variable["is_versioned"]) && (await this.#database.ask(() => isWorthPacking(id))))
        this.#due.set(id, -FAR_MS);
    }
    const last = found.at(-1);
    this.#examined = last === undefined ? null : Number(last["id"]);
    return true;
  }
}
