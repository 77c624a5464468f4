/** Reads the blocks and the rows around new readings, of many variables by one statement. */
import type { Segment } from "../blocks/new-points.ts";
import type { BlockKey, Part } from "../blocks/parts.ts";
import { type Around, type Bounds, neededRows, type StoredRow } from "../blocks/plan.ts";
import { keyOf, storedRowOf } from "../blocks/store-segment.ts";
import type { Sql } from "./database.ts";
import { boundsOf, byMonth, literal } from "./known.ts";

/** Readings that may be put into blocks: a slice of a segment. */
export interface Candidate {
  readonly segment: Segment;
  readonly parts: readonly Part[];
  readonly blocks: readonly BlockKey[];
}

export const BIGINTS = "CAST(? AS BIGINT[])";

/** By variable, in order of date: the block before its readings, and all that begin among them. */
export async function readKeys(
  { all }: Sql,
  segments: readonly Segment[],
): Promise<ReadonlyMap<number, readonly BlockKey[]>> {
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

export async function readData(
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

export async function readRows(
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
