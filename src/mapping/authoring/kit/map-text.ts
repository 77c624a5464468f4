/** Maps the input of a test as the gateway would: with the same readers, checks and batches. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import type { PushElement } from "#wire/push.ts";
import { conflictWords, lookupFile } from "../../contract.ts";
import { mapFile } from "../../map-file.ts";
import type { Mapper } from "../../mapper.ts";
import type { MappingFinding, Reason, RejectedRow } from "../../model.ts";
import { createMemorySink } from "../../segment/memory-sinks.ts";
import { withFixedClock } from "./fixed-clock.ts";

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
