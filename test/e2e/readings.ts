/** Files of readings, and what must be stored of them. */
import type { StoredPoint } from "./rig.ts";

export interface Readings {
  readonly variableId: number;
  readonly points: readonly StoredPoint[];
  /** A standard data file. */
  readonly csv: string;
}

const QUARTER_MS = 900_000;
const FIRST_MS = Date.UTC(2026, 2, 1);

/** `count` readings, one a quarter of an hour, with values that tell which file they came from. */
export function readingsOf(variableId: number, count: number, base = 0, fromQuarter = 0): Readings {
  const points = Array.from({ length: count }, (_, index) => ({
    date: new Date(FIRST_MS + (fromQuarter + index) * QUARTER_MS).toISOString(),
    value: base + index / 4,
    version: null,
  }));
  const rows = points.map(({ date, value }) => `${date},${value},${variableId}`);
  return { variableId, points, csv: `date,value,variable_id\n${rows.join("\n")}\n` };
}
