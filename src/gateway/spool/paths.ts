/** The places of files in the spool. The thread of the spool loads this module, so it imports next to nothing. */
import { join, sep } from "node:path";

/** Kept, by the ends of their names behind the id of the run. */
export const KEPT_ENDS = {
  input: { packed: ".input.zst", plain: ".input" },
  segment: { packed: ".zst", plain: ".segment" },
  rows: { packed: ".rows.zst", plain: ".segment.rows" },
  /** Never compressed: a search reads it of each run. */
  about: { packed: ".about", plain: ".about" },
} as const;

export type KeptKind = keyof typeof KEPT_ENDS;

/** Kinds of files that are compressed later when they are large. */
export const PACKABLE: readonly KeptKind[] = ["input", "segment"];

/** Bytes of a file that is kept as it is. */
export const PLAIN_MAX = 8 * 1024;
/** Bytes of a file that is compressed when its run comes to rest; a larger one is moved, and compressed later. */
export const PIECE_MAX = 256 * 1024;

/** Whether a file of so many bytes is kept as it is when its run comes to rest. */
export function isKeptPlain(kind: KeptKind, size: number): boolean {
  return size <= PLAIN_MAX || size > PIECE_MAX || KEPT_ENDS[kind].packed === KEPT_ENDS[kind].plain;
}

/** Until it is complete. */
export const PART = ".part";

export interface SpoolPlaces {
  readonly root: string;
  readonly inputs: string;
  readonly segments: string;
  readonly kept: string;
  /** Files that people try mappers with. */
  readonly samples: string;
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
  const samples = join(root, "samples");
  return {
    root,
    inputs,
    segments,
    kept,
    samples,
    // Called often; `join` would parse the whole path each time.
    input: (runId) => `${inputs}${sep}${runId}`,
    segment: (runId) => `${segments}${sep}${runId}.segment`,
    keptOf: (runId) => `${kept}${sep}${runId}`,
  };
}
