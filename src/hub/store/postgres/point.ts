/** A point that is being written, and the columns of its row. */
import type { FirstNumbers, Labels, ReadingColumns } from "../columns.ts";
import type { CopyRows } from "./copy.ts";

const NO_LABELS: Labels = { version: null, tags: null, batchTags: null };

/** Readings of one point, in the order of their arrival. */
export interface Point {
  readonly variableId: number;
  readonly atMs: number;
  /** Null: the variable has no versions. */
  readonly versionsMax: number | null;
  readonly indices: readonly number[];
}

export function labelsOf(readings: ReadingColumns, index: number): Labels {
  return readings.labelsOf(index) ?? NO_LABELS;
}

export interface NumberedReadings {
  readonly readings: ReadingColumns;
  readonly numbers: FirstNumbers;
}

export function originOf(readings: ReadingColumns, index: number, { firstOrigin }: FirstNumbers): number {
  return firstOrigin + (readings.operation[index] ?? 0);
}

/**
 * The reading that a point has in the end: of its last readings that are equal the first, since a repeat does not
 * change where a point came from. `isOnly`: there was no other before.
 */
export function lastOf(readings: ReadingColumns, { indices }: Point): { index: number; isOnly: boolean } {
  let at = indices.length - 1;
  while (at > 0 && isEqual(readings, indices[at - 1] ?? 0, indices[at] ?? 0)) at -= 1;
  return { index: indices[at] ?? 0, isOnly: at === 0 };
}

function isEqual(readings: ReadingColumns, one: number, other: number): boolean {
  const [a, b] = [labelsOf(readings, one), labelsOf(readings, other)];
  const isSame = a.version === b.version && a.tags === b.tags && a.batchTags === b.batchTags;
  return isSame && readings.value[one] === readings.value[other];
}

/** The columns from the value on. */
export function copyReading(rows: CopyRows, readings: ReadingColumns, index: number, numbers: FirstNumbers): void {
  const { version, tags, batchTags } = labelsOf(readings, index);
  rows.double(readings.value[index] ?? 0);
  rows.text(version);
  rows.text(tags);
  rows.text(batchTags);
  rows.bigint(originOf(readings, index, numbers));
}
