/** Writes readings into the tables of points, many rows per statement, in the order of the tables. */
import type { DatabaseSync, SQLInputValue, StatementSync } from "node:sqlite";
import { sqliteCode } from "#core/sql/sqlite/faults.ts";
import { dataOf, openBlock } from "../blocks/blocks.ts";
import { readable } from "../blocks/codec.ts";
import type { Packing } from "../blocks/pack.ts";
import { type BlockKey, hasLabels, partsOf, type Segment, segmentsOf } from "../blocks/parts.ts";
import { type Effect, effectOfRows, RUN_MIN } from "../blocks/plan.ts";
import { keyOf, readKeys, storeAtEnd, storeSegment } from "../blocks/store-segment.ts";
import type { FirstNumbers, Labels, ReadingColumns } from "../columns.ts";
import type { DamagedPoints, WrittenReadings } from "../ingest.ts";
import { FAR_MS } from "../point-rows.ts";
import { type Retention, versionsKept } from "../records.ts";
import { type Statements, statements } from "./database.ts";
import { drive } from "./driver.ts";

/** Some 20 MB. */
const ENDS_MAX = 100_000;

const NEWEST_BLOCK = `SELECT variable_id, first_ms, last_ms, points FROM point_block WHERE variable_id = ?
  ORDER BY first_ms DESC LIMIT 1`;
const LATER_ROW = "SELECT 1 FROM point WHERE variable_id = ? AND at_ms > ? LIMIT 1";

/** Measured: more rows per statement gain nothing, fewer lose a fifth. */
const ROWS = 50;
const SQLITE_CONSTRAINT = 19;
const NO_LABELS: Labels = { version: null, tags: null, batchTags: null };
const POINT = ["variable_id", "at_ms", "value", "origin_id"] as const;
const LABELS = ["version", "tags", "batch_tags"] as const;

export interface PointWriter {
  /** Within a transaction. */
  write(readings: ReadingColumns, numbers: FirstNumbers): WrittenReadings;
  /** Must be called when a transaction was undone, and when others may have removed points. */
  forget(): void;
}

export function createPointWriter(database: DatabaseSync, retention: Retention, packing: Packing): PointWriter {
  const bulk = {
    plain: insertMany(database, "point", POINT),
    labelled: insertMany(database, "point", [...POINT, ...LABELS]),
    versions: insertMany(database, "point_version", [...POINT, ...LABELS, "version_us"]),
  };
  const tools = statements(database);
  const blocks = createBlockWriter(tools, packing);
  return {
    write(readings, numbers) {
      const replaced = Array.from({ length: operationsOf(readings) }, () => 0);
      const damaged: DamagedPoints[] = [];
      const order = blocks.write(readings, numbers, { replaced, damaged });
      for (let from = 0; from < order.length; ) {
        const chunk = chunkAt(readings, order, from);
        from += chunk.length;
        if (chunk.length === ROWS && insertNew(bulk, readings, chunk, numbers)) continue;
        for (const index of chunk) {
          const operation = readings.operation[index] ?? 0;
          const variable = readings.variables[readings.variable[index] ?? 0];
          const kept = variable === undefined ? retention.byDefault : versionsKept(variable, retention);
          replaced[operation] = (replaced[operation] ?? 0) + putReading(tools, readings, index, numbers, kept);
        }
      }
      return { replaced, damaged };
    },
    forget: blocks.forget,
  };
}

interface Written {
  readonly replaced: number[];
  readonly damaged: DamagedPoints[];
}

/** Puts readings into blocks. */
function createBlockWriter(tools: Statements, packing: Packing) {
  const ends = new Ends(tools);
  packing.listen((id) => ends.forget(id));
  const open = (readings: ReadingColumns, segment: Segment): Effect => {
    const parts = partsOf(readings, segment, drive(tools, readKeys(segment)));
    const unreadable = new Set<BlockKey>();
    for (const { within } of parts) {
      if (within === null) continue;
      const columns = readable(drive(tools, dataOf(within)));
      if (columns === null) unreadable.add(within);
      else {
        drive(tools, openBlock(within, columns));
        packing.opened(within.variableId, within.firstMs);
      }
    }
    return effectOfRows(segment, parts, unreadable);
  };
  const put = (readings: ReadingColumns, segment: Segment, numbers: FirstNumbers): Effect => {
    const { variable, indices, firstMs } = segment;
    const asRows = { left: indices, replaced: [], hasRun: false, damaged: [] };
    if (variable.isVersioned) return asRows;
    const newest = ends.newestOf(variable.id);
    const isAfter = firstMs > (newest?.lastMs ?? -FAR_MS);
    if (isAfter && packing.waiting(variable.id) + indices.length < RUN_MIN) return asRows;
    if (hasLabels(readings, segment)) {
      if (isAfter) return asRows;
      // Its newest block may become rows.
      ends.forget(variable.id);
      return open(readings, segment);
    }
    const stored =
      isAfter && ends.isLast(variable.id)
        ? drive(tools, storeAtEnd(readings, segment, numbers, newest))
        : { effect: drive(tools, storeSegment(readings, segment, numbers)), newest: null };
    if (stored.newest === null) ends.forget(variable.id);
    else ends.note(variable.id, stored.newest);
    const { effect } = stored;
    if (effect.hasRun) packing.joined(variable.id);
    return effect;
  };
  return {
    /** Within a transaction; returns the readings that are left to be written as rows, in the order of the table. */
    write(readings: ReadingColumns, numbers: FirstNumbers, { replaced, damaged }: Written): Uint32Array {
      const order = readings.order();
      let length = 0;
      for (const segment of segmentsOf(readings, order)) {
        const { left, ...effect } = put(readings, segment, numbers);
        for (const index of effect.replaced) {
          const operation = readings.operation[index] ?? 0;
          replaced[operation] = (replaced[operation] ?? 0) + 1;
        }
        damaged.push(...effect.damaged);
        const { id, isVersioned } = segment.variable;
        if (!isVersioned && left.length > 0) {
          packing.grew(id, left.length, readings.atMs[left[0] ?? 0] ?? 0);
          ends.noteRows(id);
        }
        // Not beyond what was read of the order: nothing is longer than before.
        order.set(left, length);
        length += left.length;
      }
      return order.subarray(0, length);
    },
    forget: () => ends.forgetAll(),
  };
}

function operationsOf(readings: ReadingColumns): number {
  let last = -1;
  for (let index = 0; index < readings.length; index += 1) last = Math.max(last, readings.operation[index] ?? 0);
  return last + 1;
}

/** Up to `ROWS` readings of variables that are either all versioned or all not. */
function chunkAt(readings: ReadingColumns, order: Uint32Array, from: number): Uint32Array {
  const versioned = isVersioned(readings, order[from] ?? 0);
  let end = from + 1;
  while (end < order.length && end < from + ROWS && isVersioned(readings, order[end] ?? 0) === versioned) end += 1;
  return order.subarray(from, end);
}

function isVersioned(readings: ReadingColumns, index: number): boolean {
  return readings.variables[readings.variable[index] ?? 0]?.isVersioned === true;
}

interface Bulk {
  readonly plain: StatementSync;
  readonly labelled: StatementSync;
  readonly versions: StatementSync;
}

function insertMany(database: DatabaseSync, table: string, columns: readonly string[]): StatementSync {
  const row = `(${columns.map(() => "?").join(", ")})`;
  const rows = Array.from({ length: ROWS }, () => row).join(", ");
  return database.prepare(`INSERT INTO ${table} (${columns.join(", ")}) VALUES ${rows}`);
}

/** False, and nothing was written, when one of the points exists already or occurs twice. */
function insertNew(
  { plain, labelled, versions }: Bulk,
  readings: ReadingColumns,
  chunk: Uint32Array,
  { firstUs, firstOrigin }: FirstNumbers,
): boolean {
  const versioned = isVersioned(readings, chunk[0] ?? 0);
  const bare = chunk.every((index) => readings.labelsOf(index) === null);
  const values: SQLInputValue[] = [];
  for (const index of chunk) {
    values.push(idOf(readings, index), readings.atMs[index] ?? 0, readings.value[index] ?? 0);
    values.push(firstOrigin + (readings.operation[index] ?? 0));
    if (!bare) values.push(...labelsOf(readings, index));
  }
  try {
    (bare ? plain : labelled).run(...values);
  } catch (thrown) {
    // Only the statement is undone, not the transaction.
    if (sqliteCode(thrown) === SQLITE_CONSTRAINT) return false;
    throw thrown;
  }
  if (versioned) {
    const rows: SQLInputValue[] = [];
    for (const index of chunk)
      rows.push(
        idOf(readings, index),
        readings.atMs[index] ?? 0,
        readings.value[index] ?? 0,
        firstOrigin + (readings.operation[index] ?? 0),
        ...labelsOf(readings, index),
        firstUs + index,
      );
    versions.run(...rows);
  }
  return true;
}

function idOf(readings: ReadingColumns, index: number): number {
  return readings.variables[readings.variable[index] ?? 0]?.id ?? 0;
}

function labelsOf(readings: ReadingColumns, index: number): [string | null, string | null, string | null] {
  const { version, tags, batchTags } = readings.labelsOf(index) ?? NO_LABELS;
  return [version, tags, batchTags];
}

/** One reading; returns how many values or versions it replaced. */
function putReading(
  tools: Statements,
  readings: ReadingColumns,
  index: number,
  { firstUs, firstOrigin }: FirstNumbers,
  versionsMax: number,
): number {
  const point = {
    id: idOf(readings, index),
    atMs: readings.atMs[index] ?? 0,
    value: readings.value[index] ?? 0,
    labels: labelsOf(readings, index),
    originId: firstOrigin + (readings.operation[index] ?? 0),
  };
  const known = putPoint(tools, point);
  return isVersioned(readings, index) ? putVersion(tools, point, firstUs + index, versionsMax, known) : +known;
}

interface Point {
  readonly id: number;
  readonly atMs: number;
  readonly value: number;
  readonly labels: readonly [string | null, string | null, string | null];
  readonly originId: number;
}

/** A reading that equals the stored one does not change where that came from. */
const UPDATE_POINT = `UPDATE point SET value = ?1, version = ?2, tags = ?3, batch_tags = ?4,
  origin_id = iif((value, version, tags, batch_tags) IS (?1, ?2, ?3, ?4), origin_id, ?5)
  WHERE variable_id = ?6 AND at_ms = ?7`;
const INSERT_POINT = `INSERT INTO point (value, version, tags, batch_tags, origin_id, variable_id, at_ms)
  VALUES (?, ?, ?, ?, ?, ?, ?)`;

/** Returns true when a value was replaced. */
function putPoint({ run }: Statements, { id, atMs, value, labels, originId }: Point): boolean {
  if (run(UPDATE_POINT, value, ...labels, originId, id, atMs).changes === 1) return true;
  run(INSERT_POINT, value, ...labels, originId, id, atMs);
  return false;
}

/**
 * Same tag: that entry is replaced. Otherwise a new version; beyond the limit the oldest of its kind (tagged,
 * untagged) is removed.
 */
function putVersion(
  { run }: Statements,
  { id, atMs, value, labels, originId }: Point,
  versionUs: number,
  versionsMax: number,
  known: boolean,
): number {
  const [version] = labels;
  const replaced =
    known && version !== null
      ? run("DELETE FROM point_version WHERE variable_id = ? AND at_ms = ? AND version = ?", id, atMs, version).changes
      : 0;
  run(
    `INSERT INTO point_version (variable_id, at_ms, version_us, value, version, tags, batch_tags, origin_id)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
    id,
    atMs,
    versionUs,
    value,
    ...labels,
    originId,
  );
  if (known)
    run(
      `DELETE FROM point_version WHERE variable_id = ? AND at_ms = ? AND version_us IN (
        SELECT version_us FROM point_version
        WHERE variable_id = ? AND at_ms = ? AND (version IS NULL) = ? ORDER BY version_us DESC LIMIT -1 OFFSET ?)`,
      id,
      atMs,
      id,
      atMs,
      version === null ? 1 : 0,
      versionsMax,
    );
  return replaced;
}

interface End {
  /** The newest block; null: there is none. */
  readonly newest: BlockKey | null;
  /** Whether no row is later; null: not known. */
  isLast: boolean | null;
}

/**
 * The ends of variables: their newest blocks, and whether a row is later. They stay known between groups, since the
 * writer's connection alone adds points.
 */
class Ends {
  readonly #tools: Statements;
  readonly #ends = new Map<number, End>();

  constructor(tools: Statements) {
    this.#tools = tools;
  }

  /** Null: the variable has no block. */
  newestOf(id: number): BlockKey | null {
    return this.#endOf(id).newest;
  }

  /** Whether the variable has no row later than its newest block. */
  isLast(id: number): boolean {
    const end = this.#endOf(id);
    end.isLast ??= this.#tools.get(LATER_ROW, id, end.newest?.lastMs ?? -FAR_MS) === undefined;
    return end.isLast;
  }

  /** No row is later than this block. */
  note(id: number, newest: BlockKey): void {
    this.#know(id, { newest, isLast: true });
  }

  /** Rows were added, perhaps later ones. */
  noteRows(id: number): void {
    const end = this.#ends.get(id);
    if (end !== undefined) end.isLast = null;
  }

  forget(id: number): void {
    this.#ends.delete(id);
  }

  forgetAll(): void {
    this.#ends.clear();
  }

  #endOf(id: number): End {
    const known = this.#ends.get(id);
    if (known !== undefined) return known;
    const newest = this.#tools.get(NEWEST_BLOCK, id);
    return this.#know(id, { newest: newest === undefined ? null : keyOf(newest), isLast: null });
  }

  #know(id: number, end: End): End {
    const isFull = this.#ends.size >= ENDS_MAX && !this.#ends.has(id);
    const oldest = isFull ? this.#ends.keys().next().value : undefined;
    if (oldest !== undefined) this.#ends.delete(oldest);
    this.#ends.set(id, end);
    return end;
  }
}
