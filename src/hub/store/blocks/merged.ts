/** Reads points from rows and blocks together, chunk by chunk, each of one snapshot. */
import { bareOf } from "../point-rows.ts";
import type { PointRange, PointRow } from "../records.ts";
import { type Block, partOf } from "./blocks.ts";
import { type Piece, pieceOfBlock, pieceOfRows } from "./pieces.ts";

export interface Bounds {
  readonly lowMs: number;
  /** Included. */
  readonly highMs: number;
}

export interface ChunkAsk extends Bounds {
  readonly order: "ASC" | "DESC";
  readonly rowsMax: number;
  readonly blocksMax: number;
}

/** The first rows and the first blocks of a period, in the order that was asked for. */
export interface Found {
  readonly rows: readonly PointRow[];
  readonly blocks: readonly Block[];
}

/** A chunk has some more points where blocks are read. */
const ROWS = 5_000;
/** Points that the blocks of a chunk have together, by the size of those before. */
const POINTS = 8_000;
const BLOCKS_MAX = 64;
/** Columns take a tenth of the memory. */
const PIECES = 40;
/** Before any block was read: points of the largest, and what most have or exceed. */
const BLOCK_SIZES = { most: 1_000, usual: 250 };

/** The first points of a period. `rest`: the bounds of those that are left; null: there are none. */
interface Chunk {
  readonly points: readonly PointRow[];
  readonly rest: Bounds | null;
}

type BlockSizes = typeof BLOCK_SIZES;

/**
 * The points of a period without its page. `needed`: how many of them are needed at most. `sizes`: of the blocks of the
 * chunk before, since small blocks mostly follow small ones, and a statement for a few of them costs more than their
 * points.
 */
async function readChunk(
  bounds: Bounds & Pick<PointRange, "order">,
  { needed, sizes }: { readonly needed: number; readonly sizes: BlockSizes },
  fetch: (ask: ChunkAsk) => Promise<Found> | Found,
): Promise<Chunk & { readonly sizes: BlockSizes }> {
  const blocksMax = Math.min(BLOCKS_MAX, Math.ceil(POINTS / sizes.most), Math.ceil(needed / sizes.usual));
  const ask = { ...bounds, rowsMax: Math.min(ROWS, needed), blocksMax };
  const found = await fetch(ask);
  return { ...chunkOf(ask, found), sizes: sizesOf(found.blocks) ?? sizes };
}

function sizesOf(blocks: readonly Block[]): BlockSizes | null {
  if (blocks.length === 0) return null;
  const mean = Math.ceil(blocks.reduce((sum, { points }) => sum + points, 0) / blocks.length);
  return { most: mean, usual: Math.min(mean, BLOCK_SIZES.usual) };
}

/** The points of the period beyond which these rows and blocks may lack something. */
export function chunkOf(ask: ChunkAsk, found: Found): Chunk {
  const { covered, rest } = reachOf(ask, found);
  const direction = ask.order === "ASC" ? 1 : -1;
  const points = joined(found, covered).sort((one, other) => direction * (one.atMs - other.atMs));
  return { points, rest };
}

interface Reach {
  readonly covered: Bounds;
  /** The bounds of the points that are left; null: there are none. */
  readonly rest: Bounds | null;
}

/** Beyond the last one of a list that was cut, the other may lack something. */
function reachOf({ lowMs, highMs, order, rowsMax, blocksMax }: ChunkAsk, { rows, blocks }: Found): Reach {
  if (order === "ASC") {
    const lastMs = Math.min(
      highMs,
      rows.length < rowsMax ? highMs : (rows.at(-1)?.atMs ?? highMs),
      blocks.length < blocksMax ? highMs : (blocks.at(-1)?.lastMs ?? highMs),
    );
    return { covered: { lowMs, highMs: lastMs }, rest: lastMs < highMs ? { lowMs: lastMs + 1, highMs } : null };
  }
  const firstMs = Math.max(
    lowMs,
    rows.length < rowsMax ? lowMs : (rows.at(-1)?.atMs ?? lowMs),
    blocks.length < blocksMax ? lowMs : (blocks.at(-1)?.firstMs ?? lowMs),
  );
  return { covered: { lowMs: firstMs, highMs }, rest: firstMs > lowMs ? { lowMs, highMs: firstMs - 1 } : null };
}

function joined({ rows, blocks }: Found, { lowMs, highMs }: Bounds): PointRow[] {
  const points = rows.filter(({ atMs }) => atMs >= lowMs && atMs <= highMs);
  for (const block of blocks) {
    if (block.lastMs < lowMs || block.firstMs > highMs) continue;
    const { atMs, values } = partOf(block, lowMs, highMs);
    for (let index = 0; index < atMs.length; index += 1) points.push(bareOf(atMs[index], values[index]));
  }
  return points;
}

/** All points of a period, in its order: rows between blocks together, and each block alone. */
export async function* readPieces(
  { order, ...bounds }: Bounds & Pick<PointRange, "order">,
  fetch: (ask: ChunkAsk) => Promise<Found> | Found,
  isAhead: boolean,
): AsyncGenerator<Piece> {
  const next = async (left: Bounds) => {
    const ask = { ...left, order, rowsMax: ROWS, blocksMax: PIECES };
    const found = await fetch(ask);
    return { found, ...reachOf(ask, found) };
  };
  let chunk = bounds.lowMs <= bounds.highMs ? next(bounds) : null;
  while (chunk !== null) {
    const { found, covered, rest } = await chunk;
    chunk = rest !== null && isAhead ? next(rest) : null;
    // A reader that stopped never awaits it.
    chunk?.catch(() => undefined);
    yield* piecesOf(found, covered, order);
    if (!isAhead && rest !== null) chunk = next(rest);
  }
}

/** Rows and blocks are in the order that was asked for, and no row is between the dates of a block. */
function* piecesOf({ rows, blocks }: Found, { lowMs, highMs }: Bounds, order: "ASC" | "DESC"): Generator<Piece> {
  const inside = rows.filter(({ atMs }) => atMs >= lowMs && atMs <= highMs);
  let at = 0;
  for (const block of blocks) {
    if (block.lastMs < lowMs || block.firstMs > highMs) continue;
    const from = at;
    const isBefore = ({ atMs }: PointRow) => (order === "ASC" ? atMs < block.firstMs : atMs > block.lastMs);
    for (let row = inside[at]; row !== undefined && isBefore(row); row = inside[at]) at += 1;
    const before = pieceOfRows(inside.slice(from, at));
    if (before !== null) yield before;
    const piece = pieceOfBlock(block, lowMs, highMs, order);
    if (piece !== null) yield piece;
  }
  const rest = pieceOfRows(inside.slice(at));
  if (rest !== null) yield rest;
}

/** The pages of a range, in chunks. `ahead`: the next chunk is fetched while one is being read. */
export async function* readMerged(
  ask: Bounds & Pick<PointRange, "order" | "page">,
  fetch: (ask: ChunkAsk) => Promise<Found> | Found,
  isAhead: boolean,
): AsyncGenerator<readonly PointRow[]> {
  let left = ask.page.limit ?? Number.POSITIVE_INFINITY;
  let skipped = ask.page.offset;
  let sizes = BLOCK_SIZES;
  const next = (bounds: Bounds) => readChunk({ ...bounds, order: ask.order }, { needed: skipped + left, sizes }, fetch);
  let chunk = left > 0 && ask.lowMs <= ask.highMs ? next(ask) : null;
  while (chunk !== null) {
    const { points, rest, sizes: found } = await chunk;
    sizes = found;
    const page = points.slice(skipped, skipped + left);
    skipped -= Math.min(skipped, points.length);
    left -= page.length;
    chunk = rest !== null && left > 0 && isAhead ? next(rest) : null;
    // A reader that stopped never awaits it.
    chunk?.catch(() => undefined);
    if (page.length > 0) yield page;
    if (!isAhead && rest !== null && left > 0) chunk = next(rest);
  }
}
