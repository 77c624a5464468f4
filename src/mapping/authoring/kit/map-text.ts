/** Maps the input of a test as the gateway would: with the same readers, checks and batches. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { mock } from "node:test";
import type { PushElement } from "#wire/push.ts";
import { conflictWords, lookupFile } from "../../contract.ts";
import { mapFile } from "../../map-file.ts";
import type { Mapper } from "../../mapper.ts";
import type { MappingFinding, Reason, RejectedRow } from "../../model.ts";
import { createMemorySink } from "../../segment/memory-sinks.ts";

export interface MapTestOptions {
  /** As the trigger's `metadata` would give them. */
  readonly settings?: Readonly<Record<string, unknown>>;
  /** Name of the file, as triggers and the mapper see it. Default: the name of the path, or `input.csv`. */
  readonly fileName?: string;
  /** Default `strict`. */
  readonly rows?: "strict" | "lenient";
  /** Lookup tables by name: paths of CSV files or workbooks, keyed by their first column. */
  readonly lookups?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
  /** Called when the mapper gives something, or fails, after the result. */
  readonly onLate?: (words: string) => void;
}

export interface MapTestResult {
  readonly status: "mapped" | "failed";
  /** The elements that would be pushed, in order; empty when the file failed. */
  readonly elements: readonly PushElement[];
  /** The bytes of all batches, one after another. */
  readonly bytes: Buffer;
  /** Number of readings in the elements. */
  readonly points: number;
  /** Number of readings that do not count, since their target, date and version occur again. */
  readonly superseded: number;
  /** The first superseded readings with another value, as text. */
  readonly conflicts: readonly string[];
  /** Findings about the file: counted by kind and message, with the first and the last place. */
  readonly findings: readonly MappingFinding[];
  /** Why the file failed; null when it did not. */
  readonly reason: Reason | null;
  /** The first refused rows with their places. */
  readonly rejected: readonly RejectedRow[];
  readonly rejectedCount: number;
}

/** 2001-01-01T00:00:00Z: far from the dates of any real file, so that a use of the clock by a mapper shows. */
export const FIXED_MS = Date.UTC(2001, 0, 1);

let held = 0;
const LIMITS = { pointsMax: Number.MAX_SAFE_INTEGER, bytesMax: 64_000_000 };

/** Maps a text or bytes as a file. */
export async function mapText(
  mapper: Mapper,
  content: string | Uint8Array,
  options: MapTestOptions = {},
): Promise<MapTestResult> {
  const folder = await mkdtemp(join(tmpdir(), "headgate-"));
  try {
    const fileName = options.fileName ?? "input.csv";
    const path = join(folder, basename(fileName));
    await writeFile(path, content);
    return await mapPath(mapper, path, { ...options, fileName });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Maps a file. Rejects with the abort reason of the signal, and when the file cannot be read at all. */
export async function mapPath(mapper: Mapper, path: string, options: MapTestOptions = {}): Promise<MapTestResult> {
  const { settings = {}, rows = "strict", lookups = {} } = options;
  const fileName = options.fileName ?? basename(path);
  const sink = createMemorySink();
  const result = await withFixedClock(() =>
    mapFile({
      inputPath: path,
      fileName,
      filePath: fileName,
      mapper,
      settings,
      rows,
      limits: LIMITS,
      lookups: Object.entries(lookups).map(([name, table]) => lookupFile({ name, path: table })),
      sink,
      onLate: options.onLate,
      signal: options.signal ?? new AbortController().signal,
    }),
  );
  const failed = result.status === "failed";
  return {
    status: result.status,
    elements: failed ? [] : sink.bodies.flatMap((body) => JSON.parse(body.toString("utf8")) as PushElement[]),
    bytes: Buffer.concat(failed ? [] : sink.bodies),
    points: failed ? 0 : result.points,
    superseded: failed ? 0 : result.superseded,
    conflicts: failed ? [] : (result.conflicts?.shown ?? []).map(conflictWords),
    findings: result.findings,
    reason: failed ? result.reason : null,
    rejected: result.rejected,
    rejectedCount: result.rejectedCount,
  };
}

// A clock that stands still while a mapper is tested: the same bytes have to give the same readings at any time.

/** `Date` shows `atMs` until the work is done; in nested calls the outer clock stays. */
export async function withFixedClock<T>(work: () => Promise<T>, atMs: number = FIXED_MS): Promise<T> {
  if (held === 0) mock.timers.enable({ apis: ["Date"], now: atMs });
  held += 1;
  try {
    return await work();
  } finally {
    held -= 1;
    if (held === 0) mock.timers.reset();
  }
}
