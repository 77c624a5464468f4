/** Points that follow each other, of rows or of a block, which is unpacked only when its points are needed. */
import type { PointRow } from "../records.ts";
import { type Block, partOf } from "./blocks.ts";
import { type BlockSums, sumsIn } from "./codec.ts";

export interface Samples {
  readonly atMs: Float64Array;
  readonly values: Float64Array;
}

export interface Piece {
  readonly firstMs: number;
  readonly lastMs: number;
  readonly count: number;
  /** Null: not known. */
  sums(): BlockSums | null;
  /** In the order that was asked for. */
  samples(): Samples;
}

/** Null without rows. */
export function pieceOfRows(rows: readonly PointRow[]): Piece | null {
  const [one, other] = [rows[0]?.atMs, rows.at(-1)?.atMs];
  if (one === undefined || other === undefined) return null;
  return {
    firstMs: Math.min(one, other),
    lastMs: Math.max(one, other),
    count: rows.length,
    sums: () => null,
    samples: () => ({
      atMs: Float64Array.from(rows, ({ atMs }) => atMs),
      values: Float64Array.from(rows, ({ value }) => value),
    }),
  };
}

/** Both ends included; null without points in the period. */
export function pieceOfBlock(block: Block, lowMs: number, highMs: number, order: "ASC" | "DESC"): Piece | null {
  const { firstMs, lastMs, points } = block;
  if (lowMs <= firstMs && lastMs <= highMs) {
    const sums = () => sumsIn(block.data);
    return { firstMs, lastMs, count: points, sums, samples: () => ordered(partOf(block, lowMs, highMs), order) };
  }
  const part = partOf(block, lowMs, highMs);
  const [first, last] = [part.atMs[0], part.atMs.at(-1)];
  if (first === undefined || last === undefined) return null;
  const samples = () => ordered(part, order);
  return { firstMs: first, lastMs: last, count: part.atMs.length, sums: () => null, samples };
}

function ordered({ atMs, values }: Samples, order: "ASC" | "DESC"): Samples {
  return order === "ASC" ? { atMs, values } : { atMs: atMs.toReversed(), values: values.toReversed() };
}
