/** Puts readings into the blocks of their variables, many variables by one statement. */
import { type NewBlock, openBlock } from "../blocks/blocks.ts";
import { unpacked } from "../blocks/codec.ts";
import { hasLabels, type Segment, segmentsOf, touchedBlocks } from "../blocks/new-points.ts";
import type { Packing } from "../blocks/pack.ts";
import {
  type Around,
  type BlockKey,
  type Bounds,
  neededBlocks,
  neededRows,
  type Part,
  type Plan,
  partsOf,
  planOf,
  type RowSpan,
  RUN_MIN,
  type StoredRow,
} from "../blocks/plan.ts";
import { keyOf, storedRowOf } from "../blocks/store-segment.ts";
import type { FirstNumbers, ReadingColumns } from "../columns.ts";
import type { CopySql } from "./copy.ts";
import type { Sql } from "./database.ts";
import { drive } from "./driver.ts";
import { byMonth, literal } from "./known.ts";
import type { Partitions } from "./partitions.ts";

const SEGMENTS_AT_ONCE = 500;
/** They are in memory at one time. */
const BLOCKS_AT_ONCE = 1_000;

interface Written {
  readonly readings: ReadingColumns;
  readonly numbers: FirstNumbers;
  readonly partitions: Partitions;
  readonly packing: Packing;
  /** Counts readings that replaced a point. */
  count(indices: Iterable<number>): void;
}

/** Readings that may be put into blocks. */
interface Candidate {
  readonly segment: Segment;
  readonly parts: readonly Part[];
  readonly blocks: readonly BlockKey[];
}

/** Returns the readings that are left to be written as rows, in the order of the table. */
export async function writeBlocks(sql: CopySql, written: Written): Promise<Uint32Array> {
  const { readings, packing, count } = written;
  const order = readings.order();
  let length = 0;
  const leave = ({ variable }: Segment, left: Uint32Array) => {
    if (!variable.isVersioned) packing.grew(variable.id, left.length, readings.atMs[left[0] ?? 0] ?? 0);
    // Not beyond what was read of the order: nothing is longer than before.
    order.set(left, length);
    length += left.length;
  };
  for (const segments of chunksOf(segmentsOf(readings, order))) {
    const found = await candidatesOf(sql, written, segments);
    const plans = new Map<Segment, Plan>();
    for (const some of boundedOf(found))
      for (const [segment, plan] of await applyPlans(sql, written, some)) plans.set(segment, plan);
    for (const segment of segments) {
      const plan = plans.get(segment);
      if (plan?.hasRun === true) packing.joined(segment.variable.id);
      if (plan !== undefined) count(plan.replaced);
      leave(segment, plan?.left ?? segment.indices);
    }
  }
  return order.subarray(0, length);
}

function* chunksOf(segments: Iterable<Segment>): Generator<readonly Segment[]> {
  let chunk: Segment[] = [];
  for (const segment of segments) {
    chunk.push(segment);
    if (chunk.length < SEGMENTS_AT_ONCE) continue;
    yield chunk;
    chunk = [];
  }
  if (chunk.length > 0) yield chunk;
}

function* boundedOf(candidates: readonly Candidate[]): Generator<readonly Candidate[]> {
  let some: Candidate[] = [];
  let blocks = 0;
  for (const one of candidates) {
    if (some.length > 0 && blocks + one.blocks.length > BLOCKS_AT_ONCE) {
      yield some;
      some = [];
      blocks = 0;
    }
    some.push(one);
    blocks += one.blocks.length;
  }
  if (some.length > 0) yield some;
}

/** Segments whose readings may be put into blocks; blocks between whose dates other readings are become rows. */
async function candidatesOf(
  sql: CopySql,
  { readings, packing, partitions }: Written,
  segments: readonly Segment[],
): Promise<readonly Candidate[]> {
  const plain = segments.filter(({ variable }) => !variable.isVersioned);
  const keys = await readKeys(sql, plain);
  const candidates: Candidate[] = [];
  for (const segment of plain) {
    const { id } = segment.variable;
    const parts = partsOf(readings, segment, keys.get(id) ?? []);
    const isApart = parts.every(({ within }) => within === null);
    if (isApart && packing.waiting(id) + segment.indices.length < RUN_MIN) continue;
    if (!hasLabels(readings, segment)) candidates.push({ segment, parts, blocks: neededBlocks(parts) });
    else if (!isApart)
      for (const block of await drive(sql, touchedBlocks(readings, segment))) {
        await partitions.ensure("point", unpacked(block.data).atMs);
        await drive(sql, openBlock(block));
        packing.opened(id, block.firstMs);
      }
  }
  return candidates;
}

const BIGINTS = "CAST(? AS BIGINT[])";

/** By variable, in order of date: the block before its readings, and all that begin among them. */
async function readKeys({ all }: Sql, segments: readonly Segment[]): Promise<ReadonlyMap<number, readonly BlockKey[]>> {
  if (segments.length === 0) return new Map();
  const rows = await all(
    `SELECT span.id AS variable_id, key.first_ms, key.last_ms, key.points
      FROM unnest(${BIGINTS}, ${BIGINTS}, ${BIGINTS}) AS span (id, low, high)
      CROSS JOIN LATERAL (SELECT first_ms, last_ms, points FROM point_block
        WHERE variable_id = span.id AND first_ms <= span.high AND first_ms >= coalesce(
          (SELECT max(first_ms) FROM point_block WHERE variable_id = span.id AND first_ms <= span.low), span.low)
        ) AS key ORDER BY 1, 2`,
    literal(segments, ({ variable }) => variable.id),
    literal(segments, ({ firstMs }) => firstMs),
    literal(segments, ({ lastMs }) => lastMs),
  );
  return Map.groupBy(rows.map(keyOf), ({ variableId }) => variableId);
}

async function applyPlans(
  sql: CopySql,
  { readings, numbers }: Written,
  candidates: readonly Candidate[],
): Promise<ReadonlyMap<Segment, Plan>> {
  const data = await readData(sql, candidates);
  const rows = await readRows(sql, candidates);
  const plans = new Map<Segment, Plan>();
  const spans: (RowSpan & { readonly id: number })[] = [];
  for (const { segment, parts } of candidates) {
    const { id } = segment.variable;
    const around = rows.get(id) ?? { rows: [], fromMs: segment.firstMs };
    const plan = planOf(readings, segment, numbers, { parts, data: data.get(id) ?? new Map(), ...around });
    plans.set(segment, plan);
    for (const span of plan.removedRows) spans.push({ id, ...span });
  }
  const all = [...plans.values()];
  await removeBlocks(
    sql,
    all.flatMap(({ removed }) => removed),
  );
  for (const some of byMonth(spans, ({ firstMs }) => firstMs)) await removeRows(sql, some);
  await copyBlocks(
    sql,
    all.flatMap(({ added }) => added),
  );
  return plans;
}

async function readData(
  { all }: Sql,
  candidates: readonly Candidate[],
): Promise<ReadonlyMap<number, ReadonlyMap<number, Uint8Array>>> {
  const blocks = candidates.flatMap((one) => one.blocks);
  const data = new Map<number, Map<number, Uint8Array>>();
  if (blocks.length === 0) return data;
  const rows = await all(
    `SELECT variable_id, first_ms, data FROM unnest(${BIGINTS}, ${BIGINTS}) AS wanted (id, first)
      JOIN point_block ON variable_id = id AND first_ms = first`,
    literal(blocks, ({ variableId }) => variableId),
    literal(blocks, ({ firstMs }) => firstMs),
  );
  for (const row of rows) {
    const id = Number(row["variable_id"]);
    const known = data.get(id) ?? new Map<number, Uint8Array>();
    known.set(Number(row["first_ms"]), row["data"] as Uint8Array);
    data.set(id, known);
  }
  return data;
}

async function readRows(
  { all }: Sql,
  candidates: readonly Candidate[],
): Promise<ReadonlyMap<number, Pick<Around, "rows" | "fromMs">>> {
  const wanted = candidates.flatMap(({ segment, parts }) => {
    const bounds = neededRows(parts);
    return bounds === null ? [] : [{ id: segment.variable.id, ...bounds }];
  });
  const found = new Map<number, StoredRow[]>(wanted.map(({ id }) => [id, []]));
  for (const some of byMonth(wanted, ({ lowMs }) => lowMs)) {
    const rows = await all(
      `SELECT wanted.id, near.*
        FROM unnest(${BIGINTS}, ${BIGINTS}, ${BIGINTS}, ${BIGINTS}) AS wanted (id, low, high, most)
        CROSS JOIN LATERAL (SELECT at_ms, value, origin_id,
            version IS NULL AND tags IS NULL AND batch_tags IS NULL AS bare
          FROM point WHERE variable_id = wanted.id AND at_ms BETWEEN wanted.low AND wanted.high
            AND at_ms BETWEEN ? AND ? ORDER BY at_ms DESC LIMIT wanted.most) AS near ORDER BY at_ms`,
      ...columnsOf(some),
      ...boundsOf(some, ({ lowMs, highMs }) => [lowMs, highMs]),
    );
    for (const row of rows) found.get(Number(row["id"]))?.push(storedRowOf(row));
  }
  return new Map(
    wanted.map(({ id, lowMs, rowsMax }) => {
      const rows = found.get(id) ?? [];
      return [id, { rows, fromMs: rows.length < rowsMax ? lowMs : (rows[0]?.atMs ?? lowMs) }];
    }),
  );
}

function columnsOf(wanted: readonly (Bounds & { readonly id: number })[]): readonly string[] {
  return [
    literal(wanted, ({ id }) => id),
    literal(wanted, ({ lowMs }) => lowMs),
    literal(wanted, ({ highMs }) => highMs),
    literal(wanted, ({ rowsMax }) => rowsMax),
  ];
}

function boundsOf<Item>(items: readonly Item[], of: (item: Item) => [number, number]): [number, number] {
  const all = items.map(of);
  return [
    all.reduce((least, [low]) => Math.min(least, low), Number.MAX_SAFE_INTEGER),
    all.reduce((most, [, high]) => Math.max(most, high), Number.MIN_SAFE_INTEGER),
  ];
}

async function removeBlocks({ run }: Sql, blocks: readonly BlockKey[]): Promise<void> {
  if (blocks.length === 0) return;
  await run(
    `DELETE FROM point_block USING unnest(${BIGINTS}, ${BIGINTS}) AS gone (id, first)
      WHERE variable_id = gone.id AND first_ms = gone.first`,
    literal(blocks, ({ variableId }) => variableId),
    literal(blocks, ({ firstMs }) => firstMs),
  );
}

async function removeRows({ run }: Sql, spans: readonly (RowSpan & { readonly id: number })[]): Promise<void> {
  await run(
    `DELETE FROM point USING unnest(${BIGINTS}, ${BIGINTS}, ${BIGINTS}) AS gone (id, low, high)
      WHERE variable_id = gone.id AND at_ms BETWEEN gone.low AND gone.high AND at_ms BETWEEN ? AND ?`,
    literal(spans, ({ id }) => id),
    literal(spans, ({ firstMs }) => firstMs),
    literal(spans, ({ lastMs }) => lastMs),
    ...boundsOf(spans, ({ firstMs, lastMs }) => [firstMs, lastMs]),
  );
}

async function copyBlocks(sql: CopySql, blocks: readonly NewBlock[]): Promise<void> {
  if (blocks.length === 0) return;
  let next = 0;
  await sql.copy("point_block (variable_id, first_ms, last_ms, points, data, last_value)", 6, (rows) => {
    const block = blocks[next];
    if (block === undefined) return false;
    next += 1;
    rows.row();
    for (const number of [block.variableId, block.firstMs, block.lastMs, block.points]) rows.bigint(number);
    rows.binary(block.data);
    rows.double(block.lastValue);
    return true;
  });
}
