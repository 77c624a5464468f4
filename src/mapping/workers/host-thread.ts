/**
 * The entrance of a thread of a mapping host. It gives up all rights that mappers must not have before a mapper can be
 * loaded.
 */

import { hash } from "node:crypto";
import { readFileSync } from "node:fs";
import { isDeepStrictEqual } from "node:util";
import { MessageChannel, type MessagePort, parentPort, workerData } from "node:worker_threads";
import { digestOfFileNow } from "#core/digest.ts";
import { ConfigError, TransientError, wordsOf } from "#core/errors.ts";
import { confineThread } from "#core/threads/rights.ts";
import { authorFrames } from "../author-frames.ts";
import { CappedLog, logText, type WriteLine } from "../capped-log.ts";
import type { MapJob, MapResult } from "../contract.ts";
import { loadMapper } from "../load-mapper.ts";
import { mapFile } from "../map-file.ts";
import type { Mapper } from "../mapper.ts";
import { digestMapper } from "../mapper-files.ts";
import { mapRange } from "../ranges/map-range.ts";
import { type MappedRange, type RangeAsk, type RangeHelper, rangeOf } from "../ranges/ranges.ts";
import { shorten } from "../rejections.ts";
import { presentWork, unreadableInput } from "../run-mapper.ts";
import { SHARED_MAX, type Span } from "../segment/layout.ts";
import { readSpan } from "../segment/trailer.ts";
import { type BatchSink, createSegmentPart, SegmentWriter } from "../segment/writer.ts";
import { settingsFault } from "../settings.ts";
import { dropLinks, returnCache } from "./compiled-modules.ts";
import { factsOf } from "./mapper-facts.ts";
import type {
  FromThread,
  JobList,
  LateWords,
  ListedJob,
  ListLine,
  MapperModule,
  RangeAnswer,
  RangeRequest,
  TaskAnswer,
  TaskRequest,
  ThreadStart,
} from "./messages.ts";

/** Without a request, it returns when the thread is loaded. */
export type ThreadTask =
  | { readonly request: TaskRequest; readonly port: MessagePort }
  | { readonly ranged: RangeRequest; readonly meet: MessagePort; readonly port: MessagePort }
  | { readonly request: null; readonly port: null };

/** The function of the thread, before a mapper can change it. */
const postToHost = parentPort?.postMessage.bind(parentPort);
let isLate = false;

/**
 * Slow files gain nothing from a list, and would delay the files that are mapped already; in milliseconds.
 */
const LIST_MS = 1_000;

/** The functions of the thread, before a mapper can change them. */
const endThread = process.exit.bind(process);
const resourcesInUse = process.getActiveResourcesInfo.bind(process);
const loaded = new Map<string, Mapper>();
const before = inUse();
let log = new CappedLog(() => undefined);
const { cachesFolder, own } = workerData as ThreadStart;
const cache = process.env["NODE_COMPILE_CACHE"] ?? "";
delete process.env["NODE_COMPILE_CACHE"];
// A fault of this mapper is reported when a task asks for it.
if (own !== null) await takeOwn(own).catch(() => undefined);
if (cache !== "") returnCache(cache);
// Also in a thread for which no link was left.
if (cachesFolder !== null) dropLinks(cachesFolder);
await confineThread("a mapper");
captureOutput();
watchFaults();
// A thread of a mapper could be started without any limits. Absent when the process was started without permissions.
if (process.permission !== undefined) process.permission.drop("worker");

export async function perform(task: ThreadTask): Promise<void> {
  if ("ranged" in task) await performRange(task.ranged, task.meet, task.port);
  else if (task.request !== null) await performTask(task.request, task.port);
}

// The tasks of a thread of a mapping host: mapping files, and querying a mapper for its facts.

/** A fault between two files belongs to the one whose mapper began what failed. */
function watchFaults(): void {
  process.on("uncaughtExceptionMonitor", comesLate);
}

/** Text that a mapper prints is written to the log of its file. */
function captureOutput(): void {
  const write =
    (level: "info" | "warn") =>
    (...values: unknown[]) =>
      log.add(level, logText(values));
  Object.assign(console, {
    log: write("info"),
    info: write("info"),
    debug: write("info"),
    warn: write("warn"),
    error: write("warn"),
  });
  for (const stream of [process.stdout, process.stderr]) {
    stream.write = (chunk: unknown) => {
      log.add("info", chunk instanceof Uint8Array ? Buffer.from(chunk).toString() : logText([chunk]));
      return true;
    };
  }
}

function keyOf({ modulePath, digest }: MapperModule): string {
  return `${modulePath}?${digest}`;
}

/** The mapper of exactly this version. Once it is loaded, it stays loaded, also when its files change. */
async function exactMapper({ modulePath, digest, origin }: MapperModule): Promise<Mapper> {
  const key = keyOf({ modulePath, digest });
  const known = loaded.get(key);
  if (known !== undefined) return known;
  if ((await digestMapper(modulePath)) !== digest)
    throw new ConfigError("HG-MAP-002", { operation: "load mapper", subject: modulePath });
  const mapper = await loadMapper(modulePath, digest, origin);
  loaded.set(key, mapper);
  return mapper;
}

/**
 * A mapper that comes with Headgate is loaded from its own place: as trustworthy, and compiled before as all
 * the rest is.
 */
async function takeOwn({ modulePath, digest, origin = modulePath }: MapperModule): Promise<void> {
  loaded.set(keyOf({ modulePath, digest }), await exactMapper({ modulePath: origin, digest }));
}

/**
 * `begin` makes the log that printed text is written to from then on. `isClean`: no mapper has left resources
 * behind.
 */
async function answer(request: TaskRequest, write: WriteLine, helper: RangeHelper): Promise<TaskAnswer> {
  const fileLog = begin(write);
  try {
    const mapper = await exactMapper(request);
    switch (request.kind) {
      case "map": {
        const { job, partPath } = request;
        return { kind: "mapped", result: await mapAlone(job, partPath, mapper, { log: fileLog, helper }) };
      }
      case "map list":
        return await mapList(request, mapper, begin, () => left().length === 0);
      case "describe":
        return { kind: "facts", facts: factsOf(mapper) };
      case "settings":
        return { kind: "checked", fault: settingsFault(mapper, request.settings) };
      case "case":
        return { kind: "checked", fault: await caseFault(request) };
    }
  } catch (thrown) {
    if (thrown instanceof TransientError) return { kind: "transient", code: thrown.code, message: thrown.message };
    if (thrown instanceof ConfigError) return { kind: "unusable", code: thrown.code, message: thrown.message };
    throw thrown;
  }
}

async function caseFault(request: Extract<TaskRequest, { kind: "case" }>): Promise<string | null> {
  try {
    // The modules of cases are as large as all others, and a thread that maps files needs none of them.
    const { runCase } = await import("../authoring/cases.ts");
    const { actual, expected } = await runCase(request.modulePath, request.name, request.casesOf);
    if (isDeepStrictEqual(actual, expected)) return null;
    return `expected ${jsonWords(expected)}, but found ${jsonWords(actual)}`;
  } catch (thrown) {
    return wordsOf(thrown);
  }
}

function jsonWords(value: unknown): string {
  return shorten(JSON.stringify(value) ?? "nothing");
}

/**
 * Resources that are in use, by kind; without those that read and close files or send messages, which end by
 * themselves.
 */
function inUse(): Map<string, number> {
  const counts = new Map<string, number>();
  for (const kind of resourcesInUse())
    if (!/^(?:FSReq|CloseReq|Immediate|MessagePort|PipeWrap|(?:Simple)?WriteWrap)/.test(kind))
      counts.set(kind, (counts.get(kind) ?? 0) + 1);
  return counts;
}

/** Kinds of resources that mappers left behind. */
function left(): string[] {
  const kinds = [...inUse()].flatMap(([kind, count]) => (count > (before.get(kind) ?? 0) ? [kind] : []));
  return hasComeLate() ? [...kinds, "readings that came late"] : kinds;
}

function begin(write: WriteLine): CappedLog {
  log = new CappedLog(write);
  return log;
}

/** Asks the host for another thread. */
function helperBy(port: MessagePort, bytesMin: number | undefined): RangeHelper {
  let meet: MessagePort | undefined;
  return {
    rangeOf: (path, size) => rangeOf(path, size, bytesMin),
    ask: (range) => {
      const { port1, port2 } = new MessageChannel();
      meet = port1;
      const asked = new Promise<RangeAnswer>((resolve) => {
        port1.once("message", (answered: RangeAnswer) => resolve(answered));
        // Also when the other thread ends, or there is none.
        port1.once("close", () => resolve(null));
      });
      port.postMessage({ kind: "range", range, meet: port2 } satisfies FromThread, [port2]);
      return asked;
    },
    stop: () => meet?.close(),
  };
}

/**
 * Maps a range for another thread. It ends early when one of the ports is closed: `meet` by that thread, `port` by the
 * host.
 */
async function performRange(request: RangeRequest, meet: MessagePort, port: MessagePort): Promise<void> {
  const stop = new AbortController();
  for (const one of [meet, port]) one.on("message", () => undefined).once("close", () => stop.abort());
  try {
    const mapper = await exactMapper(request);
    let hasPrinted = false;
    begin(() => {
      hasPrinted = true;
    });
    const answered: RangeAnswer = await mapRangeOf(request.job, request.range, mapper, stop.signal);
    // The other thread prints it.
    meet.postMessage(hasPrinted ? null : answered);
  } finally {
    log.end();
    meet.close();
    port.close();
    if (left().length > 0) endThread(0);
  }
}

/** Performs one task, and reports by the port. A fault that the mapper did not await ends the thread. */
async function performTask(request: TaskRequest, port: MessagePort): Promise<void> {
  const send = (message: FromThread) => port.postMessage(message);
  const fault = (thrown: unknown) => {
    comesLate(thrown);
    send({ kind: "ended", ended: { end: "fault", words: shorten(faultWords(thrown)) } });
    endThread(1);
  };
  const events = ["uncaughtException", "unhandledRejection"] as const;
  for (const event of events) process.on(event, fault);
  send({ kind: "begun" });
  try {
    const helper = helperBy(port, request.kind === "map" ? request.rangedBytesMin : undefined);
    const given = await answer(request, (level, message) => send({ kind: "log", level, message }), helper);
    // A rejection that the mapper does not await shows now, and belongs to this task.
    await new Promise((resolve) => setImmediate(resolve));
    log.end();
    const kinds = left();
    send({ kind: "ended", ended: { end: "answered", answer: given, left: kinds } });
    // The pool gives the next task to the first thread that is free, which must not be this one.
    if (kinds.length > 0) endThread(0);
  } catch (thrown) {
    fault(thrown);
  }
  for (const event of events) process.off(event, fault);
  port.close();
}

/** Of a file that was mapped before, this is more than the fault of the present one. */
function comesLate(thrown: unknown): void {
  presentWork()?.comesLate(`what it did not await failed (${shorten(faultWords(thrown))})`);
}

/** With the author's own line, which is more useful than the message alone. */
function faultWords(thrown: unknown): string {
  try {
    const [at] = authorFrames(thrown, 1);
    return at === undefined ? printable(thrown) : `${printable(thrown)} (${at})`;
  } catch {
    return printable(thrown);
  }
}

// How a thread of a mapping host maps files: one, or several one after another.

type Log = Pick<CappedLog, "add">;

/** A mapper gave something after the result of its file: its thread maps no other. */
function hasComeLate(): boolean {
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
function mapRangeOf(job: MapJob, range: RangeAsk, mapper: Mapper, signal: AbortSignal): Promise<MappedRange | null> {
  const { inputPath, fileName, filePath, lookups } = job;
  const { settings } = job.binding;
  return mapRange({ inputPath, fileName, filePath, lookups, settings, version: versionOf(job), mapper, range, signal });
}

/**
 * Rejects with `TransientError` when the input differs from the fetched bytes: a disk may change bytes
 * silently.
 */
async function mapAlone(
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
 * Maps each as if it were alone. A file with any other result than a segment is null and leaves no line in
 * the log: the pool maps it by itself, which finds the reason. So is a file for which no time was left, or
 * whose thread was left unclean before, and all when the disk fails. `begin` creates the log of one file,
 * which also receives printed text.
 */
async function mapList(
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
function printable(value: unknown): string {
  try {
    return typeof value === "string" ? value : wordsOf(value);
  } catch {
    return "a value that cannot be shown";
  }
}
