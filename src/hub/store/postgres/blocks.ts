/** Puts readings into the blocks of their variables, many variables by one statement. */
import { dataOf, type NewBlock, openBlock } from "../blocks/blocks.ts";
import { readable } from "../blocks/codec.ts";
import type { Packing } from "../blocks/pack.ts";
import {
  type BlockKey,
  hasLabels,
  neededBlocks,
  type Part,
  partsOf,
  type Segment,
  segmentsOf,
  slicesOf,
} from "../blocks/parts.ts";
import {
  type Around,
  type Bounds,
  type Effect,
  effectOfRows,
  joinedEffects,
  neededRows,
  planOf,
  type RowSpan,
  RUN_MIN,
  type StoredRow,
} from "../blocks/plan.ts";
import { keyOf, storedRowOf } from "../blocks/store-segment.ts";
import type { FirstNumbers, ReadingColumns } from "../columns.ts";
import type { DamagedPoints } from "../ingest.ts";
import type { CopySql } from "./copy.ts";
import type { Sql } from "./database.ts";
import { drive } from "./driver.ts";
import { boundsOf, byMonth, literal } from "./known.ts";
import type { Partitions } from "./partitions.ts";

const BIGINTS = "CAST(? AS BIGINT[])";
const SEGMENTS_AT_ONCE = 500;
/** They are in memory at one time, 33 KB each. */
const BLOCKS_AT_ONCE = 500;

interface Written {
  readonly readings: ReadingColumns;
  readonly numbers: FirstNumbers;
  readonly partitions: Partitions;
  readonly packing: Packing;
  readonly damaged: DamagedPoints[];
  /** Counts readings that replaced a point. */
  count(indices: Iterable<number>): void;
}

/** Returns the readings that are left to be written as rows, in the order of the table. */
export async function writeBlocks(sql: CopySql, written: Written): Promise<Uint32Array> {
  const { readings, packing, damaged, count } = written;
  const order = readings.order();
  let length = 0;
  const leave = ({ variable }: Segment, left: Uint32Array) => {
    if (!variable.isVersioned) packing.grew(variable.id, left.length, readings.atMs[left[0] ?? 0] ?? 0);
    // Not beyond what was read of the order: nothing is longer than before.
    order.set(left, length);
    length += left.length;
  };
  for (const segments of chunksOf(segmentsOf(readings, order))) {
    const { candidates, opened } = await candidatesOf(sql, written, segments);
    const effects = new Map<Segment, Effect[]>();
    for (const [segment, effect] of opened) effects.set(segment, [effect]);
    for (const some of boundedOf(candidates)) {
      const applied = await applyPlans(sql, written, some);
      for (const [index, { segment }] of some.entries()) {
        const known = effects.get(segment);
        const effect = applied[index] as Effect;
        if (known === undefined) effects.set(segment, [effect]);
        else known.push(effect);
      }
    }
    for (const segment of segments) {
      const known = effects.get(segment);
      const effect = known === undefined ? null : joinedEffects(known);
      if (effect?.hasRun === true) packing.joined(segment.variable.id);
      if (effect !== null) count(effect.replaced);
      damaged.push(...(effect?.damaged ?? []));
      leave(segment, effect?.left ?? segment.indices);
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

interface Candidates {
  readonly candidates: readonly Candidate[];
  /** Segments for which blocks became rows. */
  readonly opened: ReadonlyMap<Segment, Effect>;
}

/** Readings that may be put into blocks; blocks between whose dates other readings are become rows. */
async function candidatesOf(sql: CopySql, written: Written, segments: readonly Segment[]): Promise<Candidates> {
  const { readings, packing } = written;
  const plain = segments.filter(({ variable }) => !variable.isVersioned);
  const keys = await readKeys(sql, plain);
  const candidates: Candidate[] = [];
  const opened = new Map<Segment, Effect>();
  for (const segment of plain) {
    const { id } = segment.variable;
    const parts = partsOf(readings, segment, keys.get(id) ?? []);
    const isApart = parts.every(({ within }) => within === null);
    if (isApart && packing.waiting(id) + segment.indices.length < RUN_MIN) continue;
    if (!hasLabels(readings, segment))
      for (const slice of slicesOf(parts)) candidates.push({ segment, parts: slice, blocks: neededBlocks(slice) });
    else if (!isApart) opened.set(segment, await openBlocks(sql, written, segment, parts));
  }
  return { candidates, opened };
}

async function openBlocks(
  sql: CopySql,
  { packing, partitions }: Written,
  segment: Segment,
  parts: readonly Part[],
): Promise<Effect> {
  const unreadable = new Set<BlockKey>();
  for (const { within } of parts) {
    if (within === null) continue;
    const columns = readable(await drive(sql, dataOf(within)));
    if (columns === null) unreadable.add(within);
    else {
      await partitions.ensure("point", columns.atMs);
      await drive(sql, openBlock(within, columns));
      packing.opened(within.variableId, within.firstMs);
    }
  }
  return effectOfRows(segment, parts, unreadable);
}

/** In the order of the candidates. */
async function applyPlans(
  sql: CopySql,
  { readings, numbers }: Written,
  candidates: readonly Candidate[],
): Promise<readonly Effect[]> {
  const data = await readData(sql, candidates);
  const rows = await readRows(sql, candidates);
  const plans = candidates.map((candidate) => {
    const { segment, parts } = candidate;
    const around = rows.get(candidate) ?? { rows: [], fromMs: Number.POSITIVE_INFINITY };
    return planOf(readings, segment, numbers, { parts, data: data.get(segment.variable.id) ?? new Map(), ...around });
  });
  const spans = candidates.flatMap(({ segment }, index) =>
    (plans[index]?.removedRows ?? []).map((span) => ({ id: segment.variable.id, ...span })),
  );
  await removeBlocks(
    sql,
    plans.flatMap(({ removed }) => removed),
  );
  for (const some of byMonth(spans, ({ firstMs }) => firstMs)) await removeRows(sql, some);
  await copyBlocks(
    sql,
    plans.flatMap(({ added }) => added),
  );
  return plans.map(({ left, replaced, hasRun, damaged }) => ({ left, replaced, hasRun, damaged }));
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
    ...boundsOf(
      spans,
      ({ firstMs }) => firstMs,
      ({ lastMs }) => lastMs,
    ),
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

// Reads the blocks and the rows around new readings, of many variables by one statement.

/** Readings that may be put into blocks: a slice of a segment. */
interface Candidate {
  readonly segment: Segment;
  readonly parts: readonly Part[];
  readonly blocks: readonly BlockKey[];
}

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
): Promise<ReadonlyMap<Candidate, Pick<Around, "rows" | "fromMs">>> {
  const wanted = candidates.flatMap((candidate, index) => {
    const bounds = neededRows(candidate.parts);
    return bounds === null ? [] : [{ candidate, index, id: candidate.segment.variable.id, ...bounds }];
  });
  const found = new Map<number, StoredRow[]>(wanted.map(({ index }) => [index, []]));
  for (const some of byMonth(wanted, ({ lowMs }) => lowMs)) {
    const rows = await all(
      `SELECT wanted.place, near.*
        FROM unnest(${BIGINTS}, ${BIGINTS}, ${BIGINTS}, ${BIGINTS}, ${BIGINTS}) AS wanted (place, id, low, high, most)
        CROSS JOIN LATERAL (SELECT at_ms, value, origin_id,
            version IS NULL AND tags IS NULL AND batch_tags IS NULL AS bare
          FROM point WHERE variable_id = wanted.id AND at_ms BETWEEN wanted.low AND wanted.high
            AND at_ms BETWEEN ? AND ? ORDER BY at_ms DESC LIMIT wanted.most) AS near ORDER BY at_ms`,
      ...columnsOf(some),
      ...boundsOf(
        some,
        ({ lowMs }) => lowMs,
        ({ highMs }) => highMs,
      ),
    );
    for (const row of rows) found.get(Number(row["place"]))?.push(storedRowOf(row));
  }
  return new Map(
    wanted.map(({ candidate, index, lowMs, rowsMax }) => {
      const rows = found.get(index) ?? [];
      return [candidate, { rows, fromMs: rows.length < rowsMax ? lowMs : (rows[0]?.atMs ?? lowMs) }];
    }),
  );
}

interface Wanted extends Bounds {
  /** Among the candidates. */
  readonly index: number;
  /** Of the variable. */
  readonly id: number;
}

function columnsOf(wanted: readonly Wanted[]): readonly string[] {
  return [
    literal(wanted, ({ index }) => index),
    literal(wanted, ({ id }) => id),
    literal(wanted, ({ lowMs }) => lowMs),
    literal(wanted, ({ highMs }) => highMs),
    literal(wanted, ({ rowsMax }) => rowsMax),
  ];
}
