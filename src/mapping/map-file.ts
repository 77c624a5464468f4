/** The first phase: one file through one mapper into batches. Runs in a worker, in `headgate map`, and in the cases of mappers. */
import { stat } from "node:fs/promises";
import type { BatchLimits, BatchSlice, Binding, Place, Reason } from "../model.ts";
import { ConfigError, type ErrorCode, systemCode, TransientError, wordsOf } from "../support/errors.ts";
import { REGISTER } from "../support/register.ts";
import { batchBodies, OversizeError } from "./batches.ts";
import { createContext } from "./context.ts";
import { writeIso } from "./iso-text.ts";
import type { MapContext, Mapper } from "./mapper.ts";
import type { MappedTarget, MapResult } from "./mapping.ts";
import { placeOf, RowTracker } from "./place.ts";
import { createMapperFile } from "./readers/mapper-file.ts";
import { ReadingIndex } from "./reading-index.ts";
import { boundReason, Rejections, rowFault } from "./rejections.ts";
import { type FileError, isFileError, isRowError, isUnreadable } from "./row-error.ts";
import type { BatchSink } from "./segment-writer.ts";
import { parseSettings } from "./settings.ts";

export interface MapFileRequest {
  /** Local copy of the input. */
  readonly inputPath: string;
  /** Base name, and path at the drop. */
  readonly fileName: string;
  readonly filePath: string;
  readonly mapper: Mapper;
  readonly settings: Readonly<Record<string, unknown>>;
  readonly rows: Binding["rows"];
  readonly limits: BatchLimits;
  readonly sink: BatchSink;
  readonly signal: AbortSignal;
  readonly log?: MapContext<unknown>["log"];
}

const NO_LOG: MapContext<unknown>["log"] = { info: () => undefined, warn: () => undefined };

/**
 * Maps one file. Faults of the file or the mapper are a `failed` result, and then nothing is published.
 * Rejects with what the signal was aborted with, and with a `TransientError` when the disk fails.
 */
export async function mapFile(request: MapFileRequest): Promise<MapResult> {
  const index = new ReadingIndex();
  const rejections = new Rejections();
  const failed = (reason: Reason): MapResult => ({
    status: "failed",
    reason,
    rejected: rejections.rows,
    rejectedCount: rejections.count,
  });
  const settings = parseSettings(request.mapper, request.settings);
  if ("fault" in settings) return failed(reasonOf("HG-MAP-004", settings.fault));

  const unmapped = await runMapper(request, settings.value, index, rejections);
  request.signal.throwIfAborted();
  if (unmapped !== null) return failed(unmapped);
  const [first] = rejections.rows;
  if (first !== undefined && request.rows === "strict") return failed(strictReason(first, rejections.count));
  index.finish();
  if (first !== undefined && index.points === 0)
    return failed({
      ...first,
      code: "HG-MAP-006",
      message: `every row was refused; the first: ${first.message}`,
    });
  const batches = await writeBatches(request, index);
  if (!Array.isArray(batches)) return failed(batches);
  return {
    status: "mapped",
    batches,
    points: index.points,
    superseded: index.superseded,
    targets: targetsOf(index),
    period: periodOf(index),
    rejected: rejections.rows,
    rejectedCount: rejections.count,
  };
}

/** Null when `map` ended well, otherwise why the whole file failed. */
async function runMapper(
  request: MapFileRequest,
  settings: unknown,
  index: ReadingIndex,
  rejections: Rejections,
): Promise<Reason | null> {
  const tracker = new RowTracker();
  const size = await sizeOf(request);
  const refuse = (row: object, cells: number, expected: number) =>
    rejections.add(placeOf(row) ?? {}, {
      message: `the row has ${cells} cells where the header has ${expected}`,
      hint:
        cells < expected
          ? "Cells are missing: was the file cut off here, or written only in part?"
          : "A cell that holds the delimiter has to be quoted; the setting of the mapper may also name another delimiter.",
    });
  const file = createMapperFile({ ...request, size }, tracker, refuse, request.signal);
  const { log = NO_LOG, signal } = request;
  try {
    await request.mapper.map(createContext({ file, settings, index, rejections, tracker, log, signal }));
    return null;
  } catch (thrown) {
    if (signal.aborted) throw signal.reason;
    if (isDiskFault(thrown, request.inputPath)) throw unreadableInput(request, thrown);
    return thrownReason(thrown, tracker, request.mapper.name);
  }
}

async function sizeOf(request: MapFileRequest): Promise<number> {
  try {
    return (await stat(request.inputPath)).size;
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

async function writeBatches(request: MapFileRequest, index: ReadingIndex): Promise<BatchSlice[] | Reason> {
  const { sink, limits, signal } = request;
  const batches: BatchSlice[] = [];
  try {
    for (const body of batchBodies(index, limits)) {
      signal.throwIfAborted();
      batches.push(await sink.append(body, (sheet) => index.sheetName(sheet)));
    }
    await sink.publish();
    return batches;
  } catch (thrown) {
    // The fault that led here is the one to tell; what cannot be removed now is overwritten by the next attempt.
    await sink.discard().catch(() => undefined);
    if (thrown instanceof OversizeError) return reasonOf("HG-MAP-012", thrown.message, thrown.place);
    if (signal.aborted) throw signal.reason;
    if (systemCode(thrown) === undefined) throw thrown;
    throw new TransientError("HG-MAP-014", {
      operation: "write segment",
      subject: request.filePath,
      message: `the segment cannot be written: ${wordsOf(thrown)}`,
      cause: thrown,
    });
  }
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
  return reasonOf("HG-MAP-007", `the mapper ${mapper} threw: ${wordsOf(thrown)}${authorFrames(thrown)}`);
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

/** The frames of the stack that are the author's own. */
function authorFrames(thrown: unknown): string {
  if (!(thrown instanceof Error) || thrown.stack === undefined) return "";
  const frames = thrown.stack
    .split("\n")
    .filter((line) => /^\s+at /.test(line) && line.includes("?v="))
    .slice(0, FRAMES_MAX)
    .map((line) =>
      line
        .trim()
        .replace(/\?v=[0-9a-f]+/, "")
        .replace(/file:\/\/\S*\/([^/]+\/[^/]+)$/, "$1"),
    );
  return frames.length === 0 ? "" : ` (${frames.join(", ")})`;
}

function targetsOf(index: ReadingIndex): MappedTarget[] {
  return index.groups().map(({ group, order }) => ({
    kind: group.kind,
    target: group.words,
    points: order?.length ?? group.dates.length,
    ...(group.unit === undefined ? {} : { unit: group.unit }),
  }));
}

function periodOf(index: ReadingIndex): { from: string; to: string } | null {
  const period = index.period();
  return period === null ? null : { from: writeIso(period.from), to: writeIso(period.to) };
}
