/** What lies where in the spool. The spool's thread loads it too, so it imports next to nothing. */
import { join, sep } from "node:path";
import { ABOUT, ROWS } from "../segment/layout.ts";

export { ABOUT };

/** Kept, by the ends of their names behind the id of the run. */
export const KEPT_ENDS = {
  input: { packed: ".gz", plain: ".input" },
  segment: { packed: ".zst", plain: ".segment" },
  rows: { packed: ".rows.zst", plain: ".segment.rows" },
} as const;

export type KeptKind = keyof typeof KEPT_ENDS;

/** Bytes of a file that is kept as it is. */
export const PLAIN_MAX = 8 * 1024;
/** Bytes of a file that is compressed in one piece, since a stream costs more than it gains. */
export const PIECE_MAX = 256 * 1024;

/** Until it is complete. */
export const PART = ".part";

/** The segment, its row index, and both while they are written. */
export const BESIDE_SEGMENT = ["", ROWS, ABOUT, PART, `${ROWS}${PART}`, `${ABOUT}${PART}`];

export interface SpoolPlaces {
  readonly inputs: string;
  readonly segments: string;
  readonly kept: string;
  input(runId: string): string;
  segment(runId: string): string;
  /** Without the end of the name. */
  keptOf(runId: string): string;
}

/** By full paths. */
export function spoolPlaces(root: string): SpoolPlaces {
  const inputs = join(root, "inputs");
  const segments = join(root, "segments");
  const kept = join(root, "kept");
  return {
    inputs,
    segments,
    kept,
    // Asked for time and again; `join` would look through the whole path each time.
    input: (runId) => `${inputs}${sep}${runId}`,
    segment: (runId) => `${segments}${sep}${runId}.segment`,
    keptOf: (runId) => `${kept}${sep}${runId}`,
  };
}
