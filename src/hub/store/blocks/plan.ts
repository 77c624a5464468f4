/**
 * The effect of a group of new readings of one variable on its blocks and rows. Readings between the dates of a block
 * are merged into it; those that follow each other between two blocks continue the block before them, together with
 * the rows around them, when they are enough for it, and else become rows.
 */
import type { FirstNumbers, ReadingColumns } from "../columns.ts";
import { BLOCK_POINTS, type Block, blocksOf, type NewBlock } from "./blocks.ts";
import { type Columns, unpacked } from "./codec.ts";
import type { Segment } from "./new-points.ts";

/** Fewer points are cheaper as rows than as the end of a block, which is written again with them. */
export const RUN_MIN = 16;
/** Rows before new points that go into a block with these; more are packed in the background. */
export const JOINED_MAX = 64;
/** Earlier rows and blocks are not continued. */
const NEAR_MS = 31 * 86_400_000;

export type BlockKey = Omit<Block, "data">;

/** Readings that follow each other: places in the indices of their segment. */
export interface Part {
  readonly from: number;
  readonly end: number;
  readonly firstMs: number;
  readonly lastMs: number;
  /** The block between whose dates they are; null: none. */
  readonly within: BlockKey | null;
  /** The block before. */
  readonly after: BlockKey | null;
}

/** `keys`: the block before the first reading, and those that begin up to the last, in order of date. */
export function partsOf(readings: ReadingColumns, { indices }: Segment, keys: readonly BlockKey[]): readonly Part[] {
  const parts: Part[] = [];
  const dateAt = (at: number) => readings.atMs[indices[at] ?? 0] ?? 0;
  let from = 0;
  const add = (untilMs: number, within: BlockKey | null, after: BlockKey | null) => {
    let end = from;
    while (end < indices.length && dateAt(end) < untilMs) end += 1;
    if (end > from) parts.push({ from, end, firstMs: dateAt(from), lastMs: dateAt(end - 1), within, after });
    from = end;
  };
  let after: BlockKey | null = null;
  for (const key of keys) {
    add(key.firstMs, null, after);
    add(key.lastMs + 1, key, after);
    after = key;
  }
  add(Number.POSITIVE_INFINITY, null, after);
  return parts;
}

/** Blocks whose points are needed. */
export function neededBlocks(parts: readonly Part[]): readonly BlockKey[] {
  const needed = new Set<BlockKey>();
  for (const { within, after } of parts) {
    if (within !== null) needed.add(within);
    else if (after !== null && after.points < BLOCK_POINTS) needed.add(after);
  }
  return [...needed];
}

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

export interface Plan {
  /** Blocks that go, also where one with the same first date is added. */
  readonly removed: readonly BlockKey[];
  readonly removedRows: readonly RowSpan[];
  readonly added: readonly NewBlock[];
  /** Readings that are left to be written as rows. */
  readonly left: Uint32Array;
  /** Readings that replaced a point. */
  readonly replaced: readonly number[];
  /** Whether a run continued a block, or became one. */
  readonly hasRun: boolean;
}

interface Grown {
  readonly keys: BlockKey[];
  columns: Columns;
  isChanged: boolean;
}

/** For a segment without labels. */
export function planOf(readings: ReadingColumns, segment: Segment, numbers: FirstNumbers, around: Around): Plan {
  const grown: Grown[] = [];
  const removedRows: RowSpan[] = [];
  const left: number[] = [];
  const replaced: number[] = [];
  let hasRun = false;
  const merge = (stored: Columns, { from, end }: Part) =>
    merged(stored, { readings, indices: segment.indices.subarray(from, end), numbers }, replaced);
  for (const part of around.parts) {
    if (part.within !== null) {
      const { columns, isChanged } = merge(pointsOf(part.within, around), part);
      grown.push({ keys: [part.within], columns, isChanged });
      continue;
    }
    const rows = rowsAround(part, around);
    if (rows === null || rows.joined.length + part.end - part.from < RUN_MIN) {
      for (let at = part.from; at < part.end; at += 1) left.push(segment.indices[at] ?? 0);
      continue;
    }
    hasRun = true;
    const { columns } = merge(columnsOf(rows.joined), part);
    const [first, last] = [rows.joined[0], rows.joined.at(-1)];
    if (first !== undefined && last !== undefined) removedRows.push({ firstMs: first.atMs, lastMs: last.atMs });
    const before = rows.follows ? continued(part.after, grown, around) : null;
    if (before === null) {
      grown.push({ keys: [], columns, isChanged: true });
      continue;
    }
    before.columns = concatenated(before.columns, columns);
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
  };
}

/** The block that new points continue; null: it is full, or there is none. */
function continued(key: BlockKey | null, grown: Grown[], around: Around): Grown | null {
  if (key === null) return null;
  const known = grown.at(-1);
  if (known?.keys.includes(key) === true) return known.columns.atMs.length < BLOCK_POINTS ? known : null;
  if (key.points >= BLOCK_POINTS) return null;
  const opened = { keys: [key], columns: pointsOf(key, around), isChanged: true };
  grown.push(opened);
  return opened;
}

function pointsOf({ firstMs }: BlockKey, { data }: Around): Columns {
  const found = data.get(firstMs);
  if (found === undefined) throw new RangeError("a block that is needed was not read");
  return unpacked(found);
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

function columnsOf(rows: readonly StoredRow[]): Columns {
  return {
    atMs: Float64Array.from(rows, ({ atMs }) => atMs),
    values: Float64Array.from(rows, ({ value }) => value),
    origins: Float64Array.from(rows, ({ origin }) => origin),
  };
}

function concatenated(one: Columns, other: Columns): Columns {
  const joined = (of: (columns: Columns) => Float64Array) => {
    const all = new Float64Array(of(one).length + of(other).length);
    all.set(of(one));
    all.set(of(other), of(one).length);
    return all;
  };
  return {
    atMs: joined(({ atMs }) => atMs),
    values: joined(({ values }) => values),
    origins: joined(({ origins }) => origins),
  };
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
  const [atMs, values, origins] = [0, 1, 2].map(() => new Float64Array(capacity)) as [
    Float64Array,
    Float64Array,
    Float64Array,
  ];
  let [length, at, isChanged] = [0, 0, false];
  const put = (ms: number, value: number, origin: number) => {
    atMs[length] = ms;
    values[length] = value;
    origins[length] = origin;
    length += 1;
  };
  const putStored = () => {
    put(stored.atMs[at] ?? 0, stored.values[at] ?? 0, stored.origins[at] ?? 0);
    at += 1;
  };
  for (const index of indices) {
    const ms = readings.atMs[index] ?? 0;
    while (at < stored.atMs.length && (stored.atMs[at] ?? 0) <= ms) putStored();
    const value = readings.value[index] ?? 0;
    const origin = numbers.firstOrigin + (readings.operation[index] ?? 0);
    if (length === 0 || atMs[length - 1] !== ms) put(ms, value, origin);
    else {
      replaced.push(index);
      if (values[length - 1] === value) continue;
      values[length - 1] = value;
      origins[length - 1] = origin;
    }
    isChanged = true;
  }
  while (at < stored.atMs.length) putStored();
  return {
    columns: {
      atMs: atMs.subarray(0, length),
      values: values.subarray(0, length),
      origins: origins.subarray(0, length),
    },
    isChanged,
  };
}
