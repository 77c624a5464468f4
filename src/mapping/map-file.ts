/** The first phase: one file through one mapper into batches. Runs in a worker, in `headgate map`, and in the cases of mappers. */
import { statSync } from "node:fs";
import type { BatchLimits, BatchSlice, Binding, Place, Reason } from "../model.ts";
import { ConfigError, type ErrorCode, systemCode, TransientError, wordsOf } from "../support/errors.ts";
import { REGISTER } from "../support/register.ts";
import { targetWords } from "../wire/target.ts";
import { authorFrames } from "./author-frames.ts";
import { type BatchTotals, batchBodies, noTotals, OversizeError } from "./batches.ts";
import { createContext } from "./context.ts";
import { writeIso } from "./iso-text.ts";
import type { MapContext, Mapper } from "./mapper.ts";
import type { LookupFile, MappedTarget, MapResult } from "./mapping.ts";
import { placeOf, RowTracker } from "./place.ts";
import { createMapperFile } from "./readers/mapper-file.ts";
import { ReadingIndex } from "./reading-index.ts";
import { boundReason, Rejections, type RowFault, rowFault } from "./rejections.ts";
import { type FileError, isFileError, isRowError, isUnreadable } from "./row-error.ts";
import type { BatchSink } from "./segment-writer.ts";
import { parseSettings } from "./settings.ts";

export interface MapFileRequest {
  /** Local copy of the input, or the file that it is a part of. */
  readonly inputPath: string;
  /** All of a small input, where it was read already. */
  readonly content?: Buffer | undefined;
  /** Base name, and path at the drop. */
  readonly fileName: string;
  readonly filePath: string;
  readonly mapper: Mapper;
  readonly settings: Readonly<Record<string, unknown>>;
  readonly rows: Binding["rows"];
  readonly rejectShare?: Binding["rejectShare"];
  readonly limits: BatchLimits;
  /** Version of readings that have none of their own. */
  readonly version?: string | undefined;
  readonly sink: BatchSink;
  readonly lookups?: readonly LookupFile[] | undefined;
  readonly signal: AbortSignal;
  readonly log?: MapContext<unknown>["log"];
  /** Readings that are held in memory at a time; the bytes that come out do not depend on it. */
  readonly rowsInMemoryMax?: number | undefined;
}

const NO_LOG: MapContext<unknown>["log"] = { info: () => undefined, warn: () => undefined };

/**
 * Maps one file. Faults of the file or the mapper are a `failed` result, and then nothing is published.
 * Rejects with what the signal was aborted with, and with a `TransientError` when the disk fails.
 */
export async function mapFile(request: MapFileRequest): Promise<MapResult> {
  const settings = parseSettings(request.mapper, request.settings);
  const rejections = new Rejections();
  if ("fault" in settings) return failed(reasonOf("HG-MAP-004", settings.fault), rejections);
  const index = new ReadingIndex(request.sink.spillPath, request.rowsInMemoryMax);
  try {
    const unmapped = await runMapper(request, settings.value, index, rejections);
    request.signal.throwIfAborted();
    // A mapper may have caught what the disk said.
    if (index.fault !== undefined) throw unwritable(request, index.fault);
    const reason = unmapped ?? rowsReason(request, index, rejections);
    if (reason !== null) return failed(reason, rejections);
    return await writeBatches(request, index, rejections);
  } finally {
    index.close();
  }
}

function failed(reason: Reason, rejections: Rejections): MapResult {
  return { status: "failed", reason, ...refusals(rejections) };
}

function refusals(
  rejections: Rejections,
): Pick<MapResult, "rejected" | "rejectedCount" | "rejectedByReason"> {
  const { rows, count } = rejections;
  return {
    rejected: rows,
    rejectedCount: count,
    ...(count === 0 ? {} : { rejectedByReason: rejections.byReason() }),
  };
}

/** Why nothing is pushed of a file with refused rows, or null. */
function rowsReason(request: MapFileRequest, index: ReadingIndex, rejections: Rejections): Reason | null {
  const { rows, rejectShare = 1 } = request;
  const [first] = rejections.rows;
  if (first === undefined) return null;
  if (rows === "strict") return strictReason(first, rejections.count);
  if (index.readings > 0 && rejections.share <= rejectShare) return null;
  if (index.readings > 0)
    return {
      ...first,
      code: "HG-MAP-031",
      hint: `${first.hint === undefined ? "" : `${first.hint} `}${REGISTER["HG-MAP-031"].hint}`,
      message: `${rejections.refusedRows} rows were refused, ${percent(rejections.share)} of all, where ${percent(rejectShare)} are tolerated; the first: ${first.message}`,
    };
  return { ...first, code: "HG-MAP-006", message: `every row was refused; the first: ${first.message}` };
}

function percent(share: number): string {
  return `${Number((share * 100).toPrecision(3))} %`;
}

/** Null when `map` ended well, otherwise why the whole file failed. */
async function runMapper(
  request: MapFileRequest,
  settings: unknown,
  index: ReadingIndex,
  rejections: Rejections,
): Promise<Reason | null> {
  const tracker = new RowTracker();
  const size = sizeOf(request);
  const refuse = (row: object, fault: RowFault) => rejections.add(placeOf(row) ?? {}, fault);
  const file = createMapperFile({ ...request, size }, tracker, refuse, request.signal);
  const { log = NO_LOG, lookups, version, signal } = request;
  try {
    await request.mapper.map(
      createContext({ file, settings, index, rejections, tracker, lookups, version, log, signal }),
    );
    return null;
  } catch (thrown) {
    if (signal.aborted) throw signal.reason;
    if (isDiskFault(readable(thrown), request.inputPath)) throw unreadableInput(request, thrown);
    return thrownReason(readable(thrown), tracker, request.mapper.name);
  }
}

/** What a mapper threw, unless it throws as soon as it is looked at. */
function readable(thrown: unknown): unknown {
  try {
    wordsOf(thrown);
    return thrown instanceof Error && `${thrown.name}${thrown.stack}` === "" ? undefined : thrown;
  } catch {
    // That it threw again is all that can be known of it.
    return new Error("a value that cannot be looked at");
  }
}

function sizeOf(request: MapFileRequest): number {
  if (request.content !== undefined) return request.content.length;
  try {
    return statSync(request.inputPath).size;
  } catch (cause) {
    throw unreadableInput(request, cause);
  }
}

/** A fault of the disk under the input, and not of what stands in it. */
function isDiskFault(thrown: unknown, inputPath: string): boolean {
  return (
    systemCode(thrown) === "EIO" || (thrown instanceof Error && "path" in thrown && thrown.path === inputPath)
  );
}

function unreadableInput({ filePath }: MapFileRequest, cause: unknown): TransientError {
  return new TransientError("HG-MAP-016", {
    operation: "read input",
    subject: filePath,
    message: `the input cannot be read: ${wordsOf(cause)}`,
    cause,
  });
}

async function writeBatches(
  request: MapFileRequest,
  index: ReadingIndex,
  rejections: Rejections,
): Promise<MapResult> {
  const { sink, limits, signal } = request;
  const batches: BatchSlice[] = [];
  const totals = noTotals();
  try {
    for (const body of batchBodies(index, limits, totals)) {
      signal.throwIfAborted();
      batches.push(await sink.append(body, (sheet) => index.sheetName(sheet)));
    }
    const held = { targets: targetsOf(index), period: periodOf(totals) };
    await sink.publish(held);
    const { points, superseded } = totals;
    return { status: "mapped", batches, points, superseded, ...held, ...refusals(rejections) };
  } catch (thrown) {
    // The fault that led here is the one to tell; what cannot be removed now is overwritten by the next attempt.
    await sink.discard().catch(() => undefined);
    if (thrown instanceof OversizeError)
      return failed(reasonOf("HG-MAP-012", thrown.message, thrown.place), rejections);
    if (signal.aborted) throw signal.reason;
    if (thrown instanceof TransientError || systemCode(thrown) === undefined) throw thrown;
    throw unwritable(request, thrown);
  }
}

function unwritable({ filePath }: MapFileRequest, cause: unknown): TransientError {
  return new TransientError("HG-MAP-014", {
    operation: "write segment",
    subject: filePath,
    message: `the segment cannot be written: ${wordsOf(cause)}`,
    cause,
  });
}

export function reasonOf(code: ErrorCode, message: string, place?: Place, hint?: string): Reason {
  const words = { code, message, hint: hint ?? REGISTER[code].hint };
  return boundReason(place === undefined ? words : { ...words, place });
}

function strictReason(first: Reason, count: number): Reason {
  if (count === 1) return first;
  return { ...first, message: `${first.message} (and ${count - 1} more row${count === 2 ? "" : "s"})` };
}

function thrownReason(thrown: unknown, tracker: RowTracker, mapper: string): Reason {
  if (isRowError(thrown)) {
    const { message, hint, column, text } = rowFault(thrown, tracker.latest);
    const place = tracker.latest === undefined ? undefined : placeOf(tracker.latest);
    return reasonOf("HG-MAP-005", message, { ...place, column, text }, hint);
  }
  if (isFileError(thrown)) return fileReason(thrown, tracker);
  if (thrown instanceof ConfigError) return reasonOf(thrown.code, thrown.message, undefined, thrown.hint);
  return reasonOf("HG-MAP-007", `the mapper ${mapper} threw: ${wordsOf(thrown)}${framesWords(thrown)}`);
}

function fileReason(thrown: FileError, tracker: RowTracker): Reason {
  const { sheet, row, column, text } = thrown;
  const code = isUnreadable(thrown) ? "HG-MAP-008" : "HG-MAP-015";
  if (row === undefined && column === undefined && text === undefined)
    return reasonOf(code, thrown.message, undefined, thrown.hint);
  // A fault of the whole file that shows at a row, named by its column alone, is at the row that was looked at.
  const at = row === undefined && tracker.latest !== undefined ? placeOf(tracker.latest) : { sheet, row };
  return reasonOf(code, thrown.message, { ...at, column, text }, thrown.hint);
}

const FRAMES_MAX = 3;

function framesWords(thrown: unknown): string {
  const frames = authorFrames(thrown, FRAMES_MAX);
  return frames.length === 0 ? "" : ` (${frames.join(", ")})`;
}

function targetsOf(index: ReadingIndex): MappedTarget[] {
  return index.groups.map(({ kind, target, points, from, to, untagged, unit }) => {
    const declared = unit === undefined ? {} : { unit };
    const facts = { target, points, fromMs: from, toMs: to, untagged, ...declared };
    return { kind, target: targetWords(target), points, ...declared, facts };
  });
}

function periodOf({ points, from, to }: BatchTotals): { from: string; to: string } | null {
  return points === 0 ? null : { from: writeIso(from), to: writeIso(to) };
}
