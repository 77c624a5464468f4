/** A point that is being written, and the columns of its row. */
import type { Labels, ReadingColumns } from "../columns.ts";
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
  return readings.labels[index] ?? NO_LABELS;
}

/** The columns from the value on. */
export function copyReading(rows: CopyRows, readings: ReadingColumns, index: number): void {
  const { version, tags, batchTags } = labelsOf(readings, index);
  rows.double(readings.value[index] ?? 0);
  rows.text(version);
  rows.text(tags);
  rows.text(batchTags);
}
