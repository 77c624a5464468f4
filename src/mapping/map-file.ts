/**
 * The first phase: maps one file through one mapper into batches. Runs in a worker, in `headgate map`, and in the cases
 * of mappers.
 */
import { statSync } from "node:fs";
import type { BatchLimits, BatchSlice, Binding, Reason } from "../model.ts";
import { createMapperFile } from "../readers/mapper-file.ts";
import type { RowFault } from "../readers/refuse.ts";
import { type FileError, isFileError, isRowError, isUnreadable } from "../readers/row-error.ts";
import { placeOf, RowTracker } from "../readers/row-place.ts";
import type { BatchSink } from "../segment/writer.ts";
import { ConfigError, systemCode, TransientError, wordsOf } from "../support/errors.ts";
import { REGISTER } from "../support/register.ts";
import { targetWords } from "../wire/target.ts";
import { authorFrames } from "./author-frames.ts";
import { type BatchTotals, batchBodies, noTotals, OversizeError } from "./batches.ts";
import { Conflicts } from "./conflicts.ts";
import { createContext } from "./context.ts";
import {
  conflictWords,
  cutWords,
  type LookupFile,
  type MapJob,
  type MappedTarget,
  type MapResult,
} from "./contract.ts";
import { thrownWords } from "./denied-access.ts";
import { writeIso } from "./iso-text.ts";
import type { MapContext, Mapper } from "./mapper.ts";
import { ReadingIndex } from "./reading-index.ts";
import { percent, Rejections, reasonOf, rowFault } from "./rejections.ts";
import { parseSettings, withSourceZone } from "./settings.ts";
import { SourceZones } from "./source-zones.ts";

export interface MapFileRequest {
  /** Local copy of the input, or the file that contains it. */
  readonly inputPath: string;
  /** The whole content of a small input, where it was read already. */
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
  /** See `MapJob`. */
  readonly zones?: MapJob["zones"];
  readonly signal: AbortSignal;
  readonly log?: MapContext<unknown>["log"];
  /** Limit on the readings in memory; the resulting bytes do not depend on it. */
  readonly rowsInMemoryMax?: number | undefined;
}

const NO_LOG: MapContext<unknown>["log"] = { info: () => undefined, warn: () => undefined };

/**
 * Maps one file. Faults of the file or the mapper give a `failed` result, and nothing is published. Rejects with the
 * abort reason of the signal, and with a `TransientError` when the disk fails.
 */
export async function mapFile(request: MapFileRequest): Promise<MapResult> {
  const { mapper, zones } = request;
  const given = zones === undefined ? request.settings : withSourceZone(mapper, request.settings);
  const settings = parseSettings(mapper, given);
  const rejections = new Rejections();
  if ("fault" in settings) return failed(reasonOf("HG-MAP-004", settings.fault), rejections);
  const index = new ReadingIndex(request.sink.spillPath, request.rowsInMemoryMax);
  try {
    let cutDate: string | undefined;
    const onCut = (date: string) => {
      cutDate ??= date.slice(0, DATE_CHARACTERS_MAX);
    };
    const unmapped = await runMapper(request, settings.value, { index, rejections, onCut });
    request.signal.throwIfAborted();
    // The mapper may have caught the error of the disk.
    if (index.fault !== undefined) throw unwritable(request, index.fault);
    const reason = unmapped ?? rowsReason(request, index.readings, rejections);
    if (reason !== null) return failed(reason, rejections);
    const conflicts = new Conflicts(settings.conflicts, index, rejections);
    const result = await writeBatches(request, index, rejections, conflicts);
    if (cutDate === undefined || result.status === "failed") return result;
    request.log?.warn(cutWords(cutDate));
    return { ...result, cutDate };
  } finally {
    index.close();
  }
}

/** Limit on the characters of a date that a notice quotes. */
const DATE_CHARACTERS_MAX = 60;

function failed(reason: Reason, rejections: Rejections): MapResult {
  return { status: "failed", reason, ...refusals(rejections) };
}

function refusals(rejections: Rejections): Pick<MapResult, "rejected" | "rejectedCount" | "rejectedByReason"> {
  const { rows, count } = rejections;
  return {
    rejected: rows,
    rejectedCount: count,
    ...(count === 0 ? {} : { rejectedByReason: rejections.byReason() }),
  };
}

/** Why nothing of a file with refused rows is pushed, or null. */
function rowsReason(request: MapFileRequest, readings: number, rejections: Rejections): Reason | null {
  const { rows, rejectShare = 1 } = request;
  const [first] = rejections.rows;
  if (first === undefined) return null;
  if (rows === "strict") return strictReason(first, rejections.count);
  if (readings > 0 && rejections.share <= rejectShare) return null;
  if (readings > 0)
    return {
      ...first,
      code: "HG-MAP-031",
      hint: `${first.hint === undefined ? "" : `${first.hint} `}${REGISTER["HG-MAP-031"].hint}`,
      message:
        `${rejections.refusedRows} rows were refused, ${percent(rejections.share)} of all, where ` +
        `${percent(rejectShare)} are tolerated; the first: ${first.message}`,
    };
  return { ...first, code: "HG-MAP-006", message: `every row was refused; the first: ${first.message}` };
}

interface Taking {
  readonly index: ReadingIndex;
  readonly rejections: Rejections;
  /** Called with each date that is cut to the millisecond. */
  readonly onCut: (date: string) => void;
}

/** Null when `map` succeeded, otherwise why the whole file failed. */
async function runMapper(
  request: MapFileRequest,
  settings: unknown,
  { index, rejections, onCut }: Taking,
): Promise<Reason | null> {
  const tracker = new RowTracker();
  const size = sizeOf(request);
  const refuse = (row: object, fault: RowFault) => rejections.add(placeOf(row) ?? {}, fault);
  const file = createMapperFile({ ...request, size }, tracker, refuse, request.signal);
  const { log = NO_LOG, lookups, version, signal } = request;
  const zones = new SourceZones(request.zones);
  try {
    const { context, finish } = createContext({
      ...{ file, settings, index, rejections, tracker, lookups, zones, version, log, onCut, signal },
    });
    await request.mapper.map(context);
    // The mapper may have caught it.
    if (zones.missing !== undefined) throw zones.missing;
    finish();
    return null;
  } catch (thrown) {
    if (zones.missing !== undefined) return thrownReason(zones.missing, tracker, request.mapper.name);
    if (signal.aborted) throw signal.reason;
    if (isDiskFault(readable(thrown), request.inputPath)) throw unreadableInput(request.filePath, thrown);
    return thrownReason(readable(thrown), tracker, request.mapper.name);
  }
}

/** The value that a mapper threw, unless inspecting it throws. */
function readable(thrown: unknown): unknown {
  try {
    wordsOf(thrown);
    return thrown instanceof Error && `${thrown.name}${thrown.stack}` === "" ? undefined : thrown;
  } catch {
    // The value threw again, so no more is known about it.
    return new Error("a value that cannot be inspected");
  }
}

function sizeOf(request: MapFileRequest): number {
  if (request.content !== undefined) return request.content.length;
  try {
    return statSync(request.inputPath).size;
  } catch (cause) {
    throw unreadableInput(request.filePath, cause);
  }
}

/** A fault of the disk under the input, not of its content. */
function isDiskFault(thrown: unknown, inputPath: string): boolean {
  return systemCode(thrown) === "EIO" || (thrown instanceof Error && "path" in thrown && thrown.path === inputPath);
}

export function unreadableInput(filePath: string, cause: unknown): TransientError {
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
  conflicts: Conflicts,
): Promise<MapResult> {
  const { sink, limits, signal } = request;
  const batches: BatchSlice[] = [];
  const totals = noTotals();
  try {
    for (const body of batchBodies(index, limits, totals, conflicts)) {
      signal.throwIfAborted();
      batches.push(await sink.append(body, (sheet) => index.sheetName(sheet)));
    }
    const reason = conflicts.refused === 0 ? null : rowsReason(request, totals.points, rejections);
    if (reason !== null) {
      await sink.discard();
      return failed(reason, rejections);
    }
    const held = { targets: targetsOf(index), period: periodOf(totals) };
    await sink.publish(held);
    const { points, superseded } = totals;
    warnOf(conflicts, request.log);
    const found = conflicts.count === 0 ? {} : { conflicts: { count: conflicts.count, shown: conflicts.kept } };
    return { status: "mapped", batches, points, superseded, ...found, ...held, ...refusals(rejections) };
  } catch (thrown) {
    // The fault that led here is the one to report; a file that cannot be removed now is overwritten by the next
    // attempt.
    await sink.discard().catch(() => undefined);
    if (thrown instanceof OversizeError)
      return failed(reasonOf("HG-MAP-012", thrown.message, thrown.place), rejections);
    if (signal.aborted) throw signal.reason;
    if (thrown instanceof TransientError || systemCode(thrown) === undefined) throw thrown;
    throw unwritable(request, thrown);
  }
}

function warnOf({ count, kept: [first] }: Conflicts, log = NO_LOG): void {
  if (first === undefined) return;
  const more = count === 1 ? "" : `, and ${count - 1} more`;
  log.warn(`rows of one target and date differ: ${conflictWords(first)}${more}`);
}

function unwritable({ filePath }: MapFileRequest, cause: unknown): TransientError {
  return new TransientError("HG-MAP-014", {
    operation: "write segment",
    subject: filePath,
    message: `the segment cannot be written: ${wordsOf(cause)}`,
    cause,
  });
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
  return reasonOf("HG-MAP-007", `the mapper ${mapper} threw: ${thrownWords(thrown)}${framesWords(thrown)}`);
}

function fileReason(thrown: FileError, tracker: RowTracker): Reason {
  const { sheet, row, column, text } = thrown;
  const code = isUnreadable(thrown) ? "HG-MAP-008" : "HG-MAP-015";
  if (row === undefined && column === undefined && text === undefined)
    return reasonOf(code, thrown.message, undefined, thrown.hint);
  // A fault of the whole file that names only a column is at the row that was read last.
  const at = row === undefined && tracker.latest !== undefined ? placeOf(tracker.latest) : { sheet, row };
  return reasonOf(code, thrown.message, { ...at, column, text }, thrown.hint);
}

const FRAMES_MAX = 3;

function framesWords(thrown: unknown): string {
  const frames = authorFrames(thrown, FRAMES_MAX);
  return frames.length === 0 ? "" : ` (${frames.join(", ")})`;
}

function targetsOf(index: ReadingIndex): MappedTarget[] {
  // A target whose readings were all refused is not pushed.
  const pushed = index.groups.filter(({ points }) => points > 0);
  return pushed.map(({ kind, target, points, from, to, untagged, unit }) => {
    const declared = unit === undefined ? {} : { unit };
    const facts = { target, points, fromMs: from, toMs: to, untagged, ...declared };
    return { kind, target: targetWords(target), points, ...declared, facts };
  });
}

function periodOf({ points, from, to }: BatchTotals): { from: string; to: string } | null {
  return points === 0 ? null : { from: writeIso(from), to: writeIso(to) };
}
