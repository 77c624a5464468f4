/** How a thread of a mapping host maps files: one, or several one after another. */

import { hash } from "node:crypto";
import { readFileSync } from "node:fs";
import { parentPort } from "node:worker_threads";
import { digestOfFileNow } from "#core/digest.ts";
import { TransientError, wordsOf } from "#core/errors.ts";
import { type CappedLog, logText, type WriteLine } from "../capped-log.ts";
import type { MapJob, MapResult } from "../contract.ts";
import { mapFile } from "../map-file.ts";
import type { Mapper } from "../mapper.ts";
import { mapRange } from "../ranges/map-range.ts";
import type { MappedRange, RangeAsk, RangeHelper } from "../ranges/ranges.ts";
import { shorten } from "../rejections.ts";
import { unreadableInput } from "../run-mapper.ts";
import { SHARED_MAX, type Span } from "../segment/layout.ts";
import { readSpan } from "../segment/trailer.ts";
import { type BatchSink, createSegmentPart, SegmentWriter } from "../segment/writer.ts";
import type { JobList, LateWords, ListedJob, ListLine, TaskAnswer } from "./messages.ts";

type Log = Pick<CappedLog, "add">;

/** The function of the thread, before a mapper can change it. */
const postToHost = parentPort?.postMessage.bind(parentPort);
let isLate = false;

/** A mapper gave something after the result of its file: its thread maps no other. */
export function hasComeLate(): boolean {
  return isLate;
}

function reportLate({ runId, filePath }: Pick<MapJob, "runId" | "filePath">, words: string): void {
  isLate = true;
  postToHost?.({ kind: "late", runId, file: filePath, words: shorten(words) } satisfies LateWords);
}

interface Source {
  readonly inputPath: string;
  readonly content?: Buffer;
}

function mapJob(
  job: Omit<MapJob, "inputPath">,
  source: Source,
  sink: BatchSink,
  mapper: Mapper,
  log: Log,
  helper?: RangeHelper,
): Promise<MapResult> {
  const { settings, rows, rejectShare, limits } = job.binding;
  return mapFile({
    ...source,
    fileName: job.fileName,
    filePath: job.filePath,
    mapper,
    settings,
    rows,
    rejectShare,
    limits,
    version: versionOf(job),
    helper,
    lookups: job.lookups,
    zones: job.zones,
    sink,
    onLate: (words) => reportLate(job, words),
    // A cancelled task ends with its thread.
    signal: new AbortController().signal,
    log: {
      info: (message) => log.add("info", logText([message])),
      warn: (message) => log.add("warn", logText([message])),
    },
  });
}

function versionOf({ runId, binding: { version } }: Pick<MapJob, "runId" | "binding">): string | undefined {
  return version === "run" ? runId : version?.tag;
}

/** For the thread that maps the rest of the file, and reports its faults. */
export function mapRangeOf(
  job: MapJob,
  range: RangeAsk,
  mapper: Mapper,
  signal: AbortSignal,
): Promise<MappedRange | null> {
  const { inputPath, fileName, filePath, lookups } = job;
  const { settings } = job.binding;
  return mapRange({ inputPath, fileName, filePath, lookups, settings, version: versionOf(job), mapper, range, signal });
}

/**
 * Rejects with `TransientError` when the input differs from the fetched bytes: a disk may change bytes
 * silently.
 */
export async function mapAlone(
  job: MapJob,
  partPath: string,
  mapper: Mapper,
  { log, helper }: { readonly log: Log; readonly helper: RangeHelper },
): Promise<MapResult> {
  const { inputPath, input, inputSha256 = null } = job;
  const content = input === undefined ? undefined : contentAt(job, input);
  if (inputSha256 !== null) {
    const sha256 = content === undefined ? inputDigest(job) : hash("sha256", content);
    if (sha256 !== inputSha256) throw damagedInput(job, sha256);
  }
  const source = content === undefined ? { inputPath } : { inputPath, content };
  return await mapJob(job, source, createSegmentPart(partPath), mapper, log, helper);
}

function contentAt({ inputPath, filePath }: MapJob, input: Span): Buffer {
  try {
    return readSpan(inputPath, input);
  } catch (cause) {
    throw unreadableInput(filePath, cause);
  }
}

function inputDigest({ inputPath, filePath }: MapJob): string {
  try {
    return digestOfFileNow(inputPath);
  } catch (cause) {
    throw unreadableInput(filePath, cause);
  }
}

function damagedInput({ filePath, inputSha256 }: MapJob, sha256: string): TransientError {
  return new TransientError("HG-SPOOL-007", {
    operation: "verify input",
    subject: filePath,
    message: `the input has the digest ${sha256.slice(0, 12)}…, but ${inputSha256?.slice(0, 12)}… was fetched`,
  });
}

/**
 * Slow files gain nothing from a list, and would delay the files that are mapped already; in milliseconds.
 */
const LIST_MS = 1_000;

/**
 * Maps each as if it were alone. A file with any other result than a segment is null and leaves no line in
 * the log: the pool maps it by itself, which finds the reason. So is a file for which no time was left, or
 * whose thread was left unclean before, and all when the disk fails. `begin` creates the log of one file,
 * which also receives printed text.
 */
export async function mapList(
  { part, jobs }: JobList,
  mapper: Mapper,
  begin: (write: WriteLine) => CappedLog,
  isClean: () => boolean,
): Promise<Extract<TaskAnswer, { kind: "mapped list" }>> {
  const inputs = onDisk(() => readFileSync(part));
  const segment = new SegmentWriter(part, { begin: inputs?.length ?? 0, bytesMax: SHARED_MAX });
  const results: (MapResult | null)[] = [];
  const lines: ListLine[] = [];
  const begunMs = performance.now();
  for (const [nth, job] of jobs.entries()) {
    if (inputs === null || performance.now() - begunMs > LIST_MS || !isClean()) {
      results.push(null);
      continue;
    }
    const said: ListLine[] = [];
    const log = begin((level, message) => said.push({ nth, level, message }));
    const result = await mappedOrNull(withOwnSettings(job), { inputs, segment, part }, mapper, log);
    log.end();
    results.push(result);
    if (result !== null) lines.push(...said);
  }
  if (onDisk(() => segment.end() || true) !== null) return { kind: "mapped list", results, lines };
  return { kind: "mapped list", results: jobs.map(() => null), lines: [] };
}

/** Null when the disk fails. */
function onDisk<Value>(work: () => Value): Value | null {
  try {
    return work();
  } catch {
    // The pool meets the fault again with each of them, and reports it.
    return null;
  }
}

/** The settings were sent once for all, and a mapper may change its settings. */
function withOwnSettings(job: ListedJob): ListedJob {
  return { ...job, binding: { ...job.binding, settings: structuredClone(job.binding.settings) } };
}

async function mappedOrNull(
  job: ListedJob,
  { inputs, segment, part }: { readonly inputs: Buffer; readonly segment: SegmentWriter; readonly part: string },
  mapper: Mapper,
  log: Log,
): Promise<MapResult | null> {
  try {
    const content = inputs.subarray(job.input.offset, job.input.offset + job.input.length);
    const { inputSha256 = null } = job;
    // The pool reports it.
    if (inputSha256 !== null && hash("sha256", content) !== inputSha256) return null;
    const source = { inputPath: part, content };
    const result = await mapJob(job, source, segment.sinkOf(job), mapper, log);
    return result.status === "mapped" ? result : null;
  } catch {
    return null; // The pool meets the fault again, and reports it.
  }
}

/** Text of any value; a value may even throw when it is converted. */
export function printable(value: unknown): string {
  try {
    return typeof value === "string" ? value : wordsOf(value);
  } catch {
    return "a value that cannot be shown";
  }
}
