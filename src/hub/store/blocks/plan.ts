/**
 * The effect of a group of new readings of one variable on its blocks and rows. Readings between the dates of a block
 * are merged into it; those that follow each other between two blocks continue the block before them, together with
 * the rows around them, when they are enough for it, and else become rows.
 */
import type { FirstNumbers, ReadingColumns } from "../columns.ts";
import type { DamagedPoints } from "../ingest.ts";
import { BLOCK_POINTS, blocksOf, type NewBlock } from "./blocks.ts";
import { type Columns, columnsFor, readable, sliced } from "./codec.ts";
import type { BlockKey, Part, Segment } from "./parts.ts";

/** Fewer points are cheaper as rows than as the end of a block, which is written again with them. */
export const RUN_MIN = 16;
/** Rows before new points that go into a block with these; more are packed in the background. */
export const JOINED_MAX = 64;
/** Earlier rows and blocks are not continued. */
const NEAR_MS = 31 * 86_400_000;

export interface Bounds {
  readonly lowMs: number;
  readonly highMs: number;
  /** The newest ones. */
  readonly rowsMax: number;
}

/** The rows that are needed; null: none. */
export function neededRows(parts: readonly Part[]): Bounds | null {
  const between = parts.filter(({ within }) => within === null);
  const [first, last] = [between[0], between.at(-1)];
  if (first === undefined || last === undefined) return null;
  const lowMs = Math.max(first.after === null ? -Infinity : first.after.lastMs + 1, first.firstMs - NEAR_MS);
  const count = between.reduce((sum, { from, end }) => sum + end - from, 0);
  return { lowMs, highMs: last.lastMs, rowsMax: JOINED_MAX + count };
}

export interface StoredRow {
  readonly atMs: number;
  readonly value: number;
  /** 0: none is known. */
  readonly origin: number;
  readonly isBare: boolean;
}

/** Stored points around a segment. */
export interface Around {
  readonly parts: readonly Part[];
  /** By first date. */
  readonly data: ReadonlyMap<number, Uint8Array>;
  /** In order of date. */
  readonly rows: readonly StoredRow[];
  /** From there on `rows` has all rows of the variable that are no later than the last reading. */
  readonly fromMs: number;
}

export interface RowSpan {
  readonly firstMs: number;
  readonly lastMs: number;
}

/** The effect of a segment, or of a slice of it. */
export interface Effect {
  /** Readings that are left to be written as rows. */
  readonly left: Uint32Array;
  /** Readings that replaced a point. */
  readonly replaced: readonly number[];
  /** Whether a run continued a block, or became one. */
  readonly hasRun: boolean;
  readonly damaged: readonly DamagedPoints[];
}

export interface Plan extends Effect {
  /** Blocks that go, also where one with the same first date is added. */
  readonly removed: readonly BlockKey[];
  readonly removedRows: readonly RowSpan[];
  readonly added: readonly NewBlock[];
}

interface Grown {
  readonly keys: BlockKey[];
  columns: Columns;
  isChanged: boolean;
}

interface Planning {
  readonly around: Around;
  readonly grown: Grown[];
  readonly damaged: DamagedPoints[];
}

/** Of the slices of a segment, in order. */
export function joinedEffects(effects: readonly Effect[]): Effect {
  const [first] = effects;
  if (first !== undefined && effects.length === 1) return first;
  const left = new Uint32Array(effects.reduce((sum, one) => sum + one.left.length, 0));
  let length = 0;
  for (const one of effects) {
    left.set(one.left, length);
    length += one.left.length;
  }
  return {
    left,
    replaced: effects.flatMap(({ replaced }) => replaced),
    hasRun: effects.some(({ hasRun }) => hasRun),
    damaged: effects.flatMap(({ damaged }) => damaged),
  };
}

/** The effect of a segment with labels when the blocks that it touches became rows, but for those that are damaged. */
export function effectOfRows({ indices }: Segment, parts: readonly Part[], unreadable: ReadonlySet<BlockKey>): Effect {
  if (unreadable.size === 0) return { left: indices, replaced: [], hasRun: false, damaged: [] };
  const damaged: DamagedPoints[] = [];
  const left = indices.slice();
  let length = 0;
  for (const { from, end, within } of parts) {
    const readings = indices.subarray(from, end);
    if (within !== null && unreadable.has(within)) damaged.push(damagedOf(within, readings.slice()));
    else {
      left.set(readings, length);
      length += readings.length;
    }
  }
  return { left: left.subarray(0, length), replaced: [], hasRun: false, damaged };
}

/** For a slice of a segment without labels. */
export function planOf(readings: ReadingColumns, segment: Segment, numbers: FirstNumbers, around: Around): Plan {
  const planning: Planning = { around, grown: [], damaged: [] };
  const { grown, damaged } = planning;
  const removedRows: RowSpan[] = [];
  const left: number[] = [];
  const replaced: number[] = [];
  let hasRun = false;
  const merge = (stored: Columns, { from, end }: Part) =>
    merged(stored, { readings, indices: segment.indices.subarray(from, end), numbers }, replaced);
  for (const part of around.parts) {
    if (part.within !== null) {
      const stored = pointsOf(part.within, around);
      if (stored === null) {
        damaged.push(damagedOf(part.within, segment.indices.slice(part.from, part.end)));
        continue;
      }
      const { columns, isChanged } = merge(stored, part);
      grown.push({ keys: [part.within], columns, isChanged });
      continue;
    }
    const rows = rowsAround(part, around);
    if (rows === null || rows.joined.length + part.end - part.from < RUN_MIN) {
      for (let at = part.from; at < part.end; at += 1) left.push(segment.indices[at] ?? 0);
      continue;
    }
    hasRun = true;
    const [first, last] = [rows.joined[0], rows.joined.at(-1)];
    if (first !== undefined && last !== undefined) removedRows.push({ firstMs: first.atMs, lastMs: last.atMs });
    const before = rows.follows ? continued(part.after, planning) : null;
    const stored = columnsOf(rows.joined);
    if (before === null) {
      grown.push({ keys: [], columns: merge(stored, part).columns, isChanged: true });
      continue;
    }
    const earlier = first === undefined ? before.columns : concatenated(before.columns, stored);
    before.columns = merge(earlier, part).columns;
    before.isChanged = true;
  }
  const changed = grown.filter(({ isChanged }) => isChanged);
  return {
    removed: changed.flatMap(({ keys }) => keys),
    removedRows,
    added: changed.flatMap(({ columns }) => blocksOf(segment.variable.id, columns)),
    left: Uint32Array.from(left),
    replaced,
    hasRun,
    damaged,
  };
}

/**
 * The block that new points continue; null: it is full, damaged, or there is none. After a damaged one, another block
 * begins.
 */
function continued(key: BlockKey | null, { around, grown, damaged }: Planning): Grown | null {
  if (key === null) return null;
  const known = grown.at(-1);
  if (known?.keys.includes(key) === true) return known.columns.atMs.length < BLOCK_POINTS ? known : null;
  if (key.points >= BLOCK_POINTS) return null;
  if (damaged.at(-1)?.firstMs === key.firstMs) return null;
  const columns = pointsOf(key, around);
  if (columns === null) {
    damaged.push(damagedOf(key, new Uint32Array()));
    return null;
  }
  const opened = { keys: [key], columns, isChanged: true };
  grown.push(opened);
  return opened;
}

/** Null: the block is damaged. */
function pointsOf({ firstMs }: BlockKey, { data }: Around): Columns | null {
  const found = data.get(firstMs);
  if (found === undefined) throw new RangeError("a block that is needed was not read");
  return readable(found);
}

function damagedOf({ variableId, firstMs, lastMs }: BlockKey, refused: Uint32Array): DamagedPoints {
  return { variableId, firstMs, lastMs, refused };
}

/**
 * The rows between the dates of a part and those right before it. `follows`: no other row is between them and the
 * block before. Null: rows that must not be in a block are between the dates, or may be.
 */
function rowsAround(
  { firstMs, lastMs, after }: Part,
  { rows, fromMs }: Around,
): { readonly joined: readonly StoredRow[]; readonly follows: boolean } | null {
  if (fromMs > firstMs) return null;
  const lowMs = after?.lastMs ?? Number.NEGATIVE_INFINITY;
  let end = rows.length;
  while (end > 0 && (rows[end - 1]?.atMs ?? 0) > lastMs) end -= 1;
  let from = end;
  for (let row = rows[from - 1]; row !== undefined && row.atMs > lowMs; row = rows[from - 1]) {
    if (!row.isBare) {
      if (row.atMs >= firstMs) return null;
      return { joined: rows.slice(from, end), follows: false };
    }
    from -= 1;
  }
  return { joined: rows.slice(from, end), follows: fromMs <= lowMs + 1 };
}

const NO_COLUMNS = columnsFor(0);

function columnsOf(rows: readonly StoredRow[]): Columns {
  if (rows.length === 0) return NO_COLUMNS;
  return {
    atMs: Float64Array.from(rows, ({ atMs }) => atMs),
    values: Float64Array.from(rows, ({ value }) => value),
    origins: Float64Array.from(rows, ({ origin }) => origin),
  };
}

// Columns of points that become one: stored ones, and readings that are merged into them.

function concatenated(one: Columns, other: Columns): Columns {
  const { length } = one.atMs;
  const all = columnsFor(length + other.atMs.length);
  copyInto(all, one, 0);
  copyInto(all, other, length);
  return all;
}

function copyInto(all: Columns, one: Columns, place: number): void {
  all.atMs.set(one.atMs, place);
  all.values.set(one.values, place);
  all.origins.set(one.origins, place);
}

interface Fresh {
  readonly readings: ReadingColumns;
  /** In order of date and arrival. */
  readonly indices: Uint32Array;
  readonly numbers: FirstNumbers;
}

/** As though one after another: a reading that equals the stored one does not change where that came from. */
function merged(
  stored: Columns,
  { readings, indices, numbers }: Fresh,
  replaced: number[],
): { readonly columns: Columns; readonly isChanged: boolean } {
  const capacity = stored.atMs.length + indices.length;
  const { atMs, values, origins } = columnsFor(capacity);
  const isAfter = (stored.atMs.at(-1) ?? Number.NEGATIVE_INFINITY) < (readings.atMs[indices[0] ?? 0] ?? 0);
  if (isAfter) copyInto({ atMs, values, origins }, stored, 0);
  let length = isAfter ? stored.atMs.length : 0;
  let at = length;
  let isChanged = false;
  /** All stored ones up to that date. */
  const putStored = (untilMs: number) => {
    for (; at < stored.atMs.length && (stored.atMs[at] ?? 0) <= untilMs; at += 1, length += 1) {
      atMs[length] = stored.atMs[at] ?? 0;
      values[length] = stored.values[at] ?? 0;
      origins[length] = stored.origins[at] ?? 0;
    }
  };
  for (let place = 0; place < indices.length; place += 1) {
    const index = indices[place] ?? 0;
    const ms = readings.atMs[index] ?? 0;
    putStored(ms);
    const value = readings.value[index] ?? 0;
    const isKnown = length > 0 && atMs[length - 1] === ms;
    if (isKnown) {
      replaced.push(index);
      if (values[length - 1] === value) continue;
      length -= 1;
    }
    atMs[length] = ms;
    values[length] = value;
    origins[length] = numbers.firstOrigin + (readings.operation[index] ?? 0);
    length += 1;
    isChanged = true;
  }
  putStored(Number.POSITIVE_INFINITY);
  return { columns: sliced({ atMs, values, origins }, 0, length), isChanged };
}
