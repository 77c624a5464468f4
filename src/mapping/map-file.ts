/**
 * The first phase: maps one file through one mapper into batches. Runs in a worker, in `headgate map`, and in the cases
 * of mappers.
 */

import { systemCode, TransientError, wordsOf } from "#core/errors.ts";
import { REGISTER } from "#core/register.ts";
import { targetWords } from "#wire/target.ts";
import { type BatchTotals, batchBodies, noTotals, OversizeError } from "./batches.ts";
import { Conflicts } from "./conflicts.ts";
import { conflictWords, type MappedTarget, type MapResult } from "./contract.ts";
import { writeIso } from "./iso-text.ts";
import type { BatchLimits, BatchSlice, Binding, Reason } from "./model.ts";
import { OddDates } from "./plausible.ts";
import { FirstRange, type RangeHelper } from "./ranges/ranges.ts";
import { openLastLine } from "./readers/file-head.ts";
import { ReadingIndex } from "./reading-index.ts";
import { Findings, percent, Rejections, reasonOf } from "./rejections.ts";
import { MapWork, type RunRequest, runMapper, sizeOf, type Taking } from "./run-mapper.ts";
import type { BatchSink } from "./segment/writer.ts";
import { parseSettings, withSourceZone } from "./settings.ts";

export interface MapFileRequest extends RunRequest {
  readonly rows: Binding["rows"];
  readonly rejectShare?: Binding["rejectShare"];
  readonly limits: BatchLimits;
  readonly sink: BatchSink;
  /** Another thread that may map a part of a large file; the resulting bytes do not depend on it. */
  readonly helper?: RangeHelper | undefined;
  /** Called once when the mapper gives something, or fails, after the result: see `MapWork`. */
  readonly onLate?: ((words: string) => void) | undefined;
}

/**
 * Maps one file. Faults of the file or the mapper give a `failed` result, and nothing is published. Rejects with the
 * abort reason of the signal, and with a `TransientError` when the disk fails.
 */
export async function mapFile(request: MapFileRequest): Promise<MapResult> {
  const { mapper, zones } = request;
  const given = zones === undefined ? request.settings : withSourceZone(mapper, request.settings);
  const settings = parseSettings(mapper, given);
  const notes = { rejections: new Rejections(), findings: new Findings() };
  if ("fault" in settings) return failed(reasonOf("HG-MAP-004", settings.fault), notes);
  const { rejections } = notes;
  const { spillPath } = request.sink;
  const index = new ReadingIndex(spillPath, request.rowsInMemoryMax, undefined, new OddDates(settings.dates));
  const work = new MapWork();
  let first: FirstRange | undefined;
  let onLate = request.onLate ?? (() => undefined);
  try {
    first = firstRange(request, { index, rejections });
    const cut: string[] = [];
    let cutCount = 0;
    const onCut = (date: string) => {
      cut[Math.min(cutCount, 1)] = date;
      cutCount += 1;
    };
    let openLine: string | undefined;
    const onLines = (size: number) => {
      openLine = openLastLine({ path: request.inputPath, size, content: request.content });
    };
    const unmapped = await runMapper(request, settings.value, { index, ...notes, onCut, onLines, range: first, work });
    // The file is refused for what its mapper left running, so nothing of that is lost.
    if (unmapped?.code === "HG-MAP-040") onLate = () => undefined;
    request.signal.throwIfAborted();
    noteCut(cut, cutCount, notes.findings);
    // The mapper may have caught the error of the disk.
    if (index.fault !== undefined) throw unwritable(request, index.fault);
    if (unmapped === null) for (const found of index.judgeDates(rejections)) notes.findings.add(found);
    const reason = unmapped ?? rowsReason(request, index.readings, rejections);
    if (reason !== null) return failed(reason, notes);
    const conflicts = new Conflicts(settings.conflicts, index, rejections);
    const result = await writeBatches(request, index, { ...notes, work }, conflicts);
    return openLine === undefined || result.status === "failed" ? result : { ...result, openLine };
  } finally {
    work.seal(onLate);
    first?.close();
    index.close();
  }
}

/** Undefined when the file is mapped by one thread. */
function firstRange(request: MapFileRequest, parts: Pick<Taking, "index" | "rejections">): FirstRange | undefined {
  const { helper, content, zones, inputPath, sink } = request;
  if (helper === undefined || content !== undefined || zones !== undefined) return undefined;
  const range = helper.rangeOf(inputPath, sizeOf(request));
  return range === null ? undefined : new FirstRange(parts, helper, range, `${sink.spillPath}.later.spill.part`);
}

/** Dates that were cut, the first and the last of them. */
function noteCut(dates: readonly string[], count: number, findings: Findings): void {
  const message = "dates finer than a millisecond are cut to it";
  for (const [at, text] of dates.entries())
    findings.add({ kind: "cutDates", message, place: { text }, count: at === 0 ? 1 : count - 1 });
}

/** Rows that do not count, since others of their target, date and version do. */
function noteSuperseded(superseded: number, { count, kept }: Conflicts, findings: Findings): void {
  if (superseded > count)
    findings.add({
      kind: "repeated",
      message: "rows repeat the target, date and value of another",
      count: superseded - count,
    });
  const message = "rows are replaced by others of their target and date with another value";
  // Of more than are kept in full, the last is not known.
  const [first, ...more] = count > kept.length ? kept.slice(0, 1) : kept;
  for (const [one, times] of [[first, count - more.length] as const, ...more.map((other) => [other, 1] as const)]) {
    if (one === undefined) continue;
    const { row, sheet } = one.left;
    findings.add({ kind: "replaced", message, place: { row, sheet, text: conflictWords(one) }, count: times });
  }
}

/** Refused rows and findings. */
type Notes = Pick<Taking, "rejections" | "findings">;

function failed(reason: Reason, notes: Notes): MapResult {
  return { status: "failed", reason, ...noted(notes) };
}

function noted({
  rejections,
  findings,
}: Notes): Pick<MapResult, "findings" | "rejected" | "rejectedCount" | "rejectedByReason"> {
  const { rows, count } = rejections;
  return {
    findings: findings.list(),
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

async function writeBatches(
  request: MapFileRequest,
  index: ReadingIndex,
  notes: Notes & Pick<Taking, "work">,
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
    conflicts.explain();
    const refused = conflicts.refused === 0 ? null : rowsReason(request, totals.points, notes.rejections);
    const reason = notes.work.lateReason() ?? refused;
    if (reason !== null) {
      await sink.discard();
      return failed(reason, notes);
    }
    const held = { targets: targetsOf(index), period: periodOf(totals) };
    await sink.publish(held);
    const { points, superseded } = totals;
    noteSuperseded(superseded, conflicts, notes.findings);
    const found = conflicts.count === 0 ? {} : { conflicts: { count: conflicts.count, shown: conflicts.kept } };
    return { status: "mapped", batches, points, superseded, ...found, ...held, ...noted(notes) };
  } catch (thrown) {
    // The fault that led here is the one to report; a file that cannot be removed now is overwritten by the next
    // attempt.
    await sink.discard().catch(() => undefined);
    if (thrown instanceof OversizeError) return failed(reasonOf("HG-MAP-012", thrown.message, thrown.place), notes);
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

function strictReason(first: Reason, count: number): Reason {
  if (count === 1) return first;
  return { ...first, message: `${first.message} (and ${count - 1} more row${count === 2 ? "" : "s"})` };
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
