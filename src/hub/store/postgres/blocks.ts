/** Puts readings into the blocks of their variables, many variables by one statement. */
import { dataOf, type NewBlock, openBlock } from "../blocks/blocks.ts";
import { readable } from "../blocks/codec.ts";
import { hasLabels, type Segment, segmentsOf } from "../blocks/new-points.ts";
import type { Packing } from "../blocks/pack.ts";
import { type BlockKey, neededBlocks, type Part, partsOf, slicesOf } from "../blocks/parts.ts";
import { type Effect, effectOfRows, joinedEffects, planOf, type RowSpan, RUN_MIN } from "../blocks/plan.ts";
import type { FirstNumbers, ReadingColumns } from "../columns.ts";
import type { DamagedPoints } from "../ingest.ts";
import { BIGINTS, type Candidate, readData, readKeys, readRows } from "./block-reads.ts";
import type { CopySql } from "./copy.ts";
import type { Sql } from "./database.ts";
import { drive } from "./driver.ts";
import { boundsOf, byMonth, literal } from "./known.ts";
import type { Partitions } from "./partitions.ts";

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
