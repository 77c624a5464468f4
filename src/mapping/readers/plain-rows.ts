/** Rows that are plain lines: made one by one, or read from their bytes without being made. */
import type { PlainLines } from "./csv-block.ts";

/** The columns of rows by names. */
export interface NamedColumns {
  /** By position; empty for a column without a name. */
  readonly names: readonly string[];
  /** Positions of columns that must be empty, since they have no name. */
  readonly unnamed: readonly number[];
}

export class PlainRows<Row extends object> {
  readonly lines: PlainLines;
  /** Makes the row of a line. Undefined when the row was refused. Throws for a fault that ends the file. */
  readonly make: (cells: string[], line: number) => Row | undefined;
  /** Absent for rows without names. */
  readonly columns: NamedColumns | undefined;

  constructor(
    lines: PlainLines,
    make: (cells: string[], line: number) => Row | undefined,
    columns?: NamedColumns | undefined,
  ) {
    this.lines = lines;
    this.make = make;
    this.columns = columns;
  }

  /** All rows. */
  all(): Row[] {
    const { cells, lines } = this.lines.records();
    const rows: Row[] = [];
    for (let nth = 0; nth < cells.length; nth += 1) {
      const row = this.make(cells[nth] ?? [], lines[nth] ?? 0);
      if (row !== undefined) rows.push(row);
    }
    return rows;
  }
}

/** Rows as a reader gives them, some of them not made yet. */
type Blocks = AsyncIterable<object[] | PlainRows<object>>;

const blocksOfRows = new WeakMap<object, Blocks>();

/** Chunks of rows for mappers, from the blocks of a reader. */
export async function* madeRows<Row extends object>(
  blocks: AsyncIterable<Row[] | PlainRows<Row>>,
): AsyncGenerator<Row[]> {
  for await (const block of blocks) {
    const rows = block instanceof PlainRows ? block.all() : block;
    if (rows.length > 0) yield rows;
  }
}

/** Records the blocks of which chunks of rows are made. */
export function keepBlocks(rows: object, blocks: Blocks): void {
  blocksOfRows.set(rows, blocks);
}

/**
 * The blocks of chunks of rows, to be read in their place, since both read one file: chunks that were read before are
 * left out. Undefined for chunks of another kind.
 */
export function blocksOf<Row extends object>(
  rows: AsyncIterable<readonly Row[]>,
): AsyncIterable<Row[] | PlainRows<Row>> | undefined {
  return blocksOfRows.get(rows) as AsyncIterable<Row[] | PlainRows<Row>> | undefined;
}
