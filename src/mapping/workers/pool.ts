/**
 * The worker pool: each file or list is a task of a thread in a mapping host, within limits of memory and
 * time. Whatever a mapper does ends its own run and nothing else.
 */

import { availableParallelism } from "node:os";
import { systemClock } from "#core/clock.ts";
import { type ErrorCode, TransientError, wordsOf } from "#core/errors.ts";
import type { Logger } from "#core/log.ts";
import { onlyOne, settleEach } from "#core/settled.ts";
import { FairQueue } from "#core/turns.ts";
import type { MapJob, MappingPool, MapResult } from "../contract.ts";
import { digestMapper, locateMapper } from "../mapper-files.ts";
import type { MapperIdentity, Reason } from "../model.ts";
import type { WorkersOptions } from "../options.ts";
import { reasonOf } from "../rejections.ts";
import { discardPart, publishSegment } from "../segment/publish.ts";
import { searchFolders } from "./bundled.ts";
import { HostPool, keyOf } from "./host-pool.ts";
import { listLimit, listOf, mapJobList, partPathOf } from "./job-list.ts";
import { LateDrops } from "./late-drops.ts";
import { ListTurns } from "./list-turns.ts";
import type { Asked, AskOutcome, HostReports, MappingHost } from "./mapping-host.ts";
import type { JobList, MapperModule, TaskAnswer } from "./messages.ts";

/** How long hosts may take to end, in milliseconds. */
const CLOSE_MS = 5_000;

/**
 * Threads of idle hosts that are kept beyond the number of workers, so that alternating mappers need not start again.
 */
const IDLE_BESIDE = 3;

/** How long the files of a late drop have processes of their own, in milliseconds. */
const LATE_MS = 60_000;

interface Mapped {
  readonly result: MapResult;
  /** Path of its segment until it is published. */
  readonly partPath: string;
}

type ListedResults = readonly (MapResult | null)[];

export interface PoolMeans {
  /** The module of exactly this version of a mapper, or null. Default: the present version on disk. */
  readonly locate?: (name: string, digest: string) => Promise<MapperModule | null>;
  /** The same for a process that starts ahead, while the copy of the mapper may still be written. */
  readonly expected?: (name: string, digest: string) => Promise<MapperModule | null>;
  /** Folders that segments are written in. Default: no restriction. */
  readonly writable?: readonly string[];
  /** See the task `map`. */
  readonly rangedBytesMin?: number;
  /** Workers beyond those of the options, each for a drop that has no other. Default: none. */
  readonly spare?: number;
  /** The mapper of a file gave something, or failed, after the result of the file. */
  readonly onLate?: (late: LateReadings) => void;
}

export type LateReadings = Parameters<HostReports["late"]>[0];

/** `folders` are absolute; the bundled mappers are added. */
export function createMappingPool(
  options: WorkersOptions,
  folders: readonly string[],
  log: Logger,
  means: PoolMeans = {},
): MappingPool {
  const count = options.count === "auto" ? availableParallelism() : options.count;
  const spare = means.spare ?? 0;
  const workers = new FairQueue<string>(count, { spare });
  const turns = new ListTurns(workers);
  const late = new LateDrops(spare > 0 ? LATE_MS : 0);
  const hosts = new HostPool(
    count + IDLE_BESIDE,
    { memory: options.memory, threads: count + spare, writable: means.writable ?? null },
    { log, onLate: means.onLate ?? ((readings) => logLate(readings, log)) },
  );
  const locate = means.locate ?? ((name, digest) => locateOnDisk(searchFolders(folders), name, digest));
  const closing = new AbortController();
  /** Preparations and maps in progress, which `close` waits for. */
  const inProgress = new Set<Promise<unknown>>();

  /**
   * Once, or twice when the host and not the file may be at fault: the second time alone in a host of its
   * own.
   */
  async function mapInHost(job: MapJob, module: MapperModule, signal: AbortSignal): Promise<Mapped> {
    for (let isAgain = false; ; isAgain = true) {
      if (signal.aborted) throw cancelled(job);
      const host = hosts.take(module, late.has(dropOf(job)) ? "behind" : isAgain ? "alone" : "shared");
      const { partPath, ...asked } = await askToMap(host, job, module, signal);
      const { outcome } = asked;
      if (outcome.end === "answered") {
        hosts.giveBack(host, module, leftWords(outcome.left, job));
        return { result: resultOf(outcome.answer, job), partPath };
      }
      hosts.retire(host);
      discardPart(partPath);
      // Closing ends hosts, which is no fault of a file.
      if (outcome.end === "cancelled" || signal.aborted) throw cancelled(job);
      if (outcome.end === "not started") throw notStarted(job, outcome.words);
      const reason = endReason(outcome, job, options);
      if (isAgain || !mayBeInnocent(asked)) {
        if (outcome.end === "late") late.note(dropOf(job));
        return { result: failed(reason), partPath };
      }
      log.warn({ ...jobFacts(job), reason: reason.message }, "mapping is tried once more in a process of its own");
    }
  }

  async function askToMap(host: MappingHost, job: MapJob, module: MapperModule, signal: AbortSignal) {
    const partPath = partPathOf(job);
    const asked = await host.ask(
      { kind: "map", job, partPath, rangedBytesMin: means.rangedBytesMin, ...module },
      {
        signal,
        timeLimit: options.timeLimit,
        log: (level, message) => log[level](jobFacts(job), message),
      },
    );
    return { ...asked, partPath };
  }

  /** Null when no file was mapped. */
  async function askList(list: JobList, module: MapperModule, signal: AbortSignal) {
    const [first] = list.jobs;
    if (first === undefined || signal.aborted || late.has(dropOf(first))) return null;
    const host = hosts.take(module, "shared");
    const say = (job: JobNames, level: "info" | "warn", words: string) => log[level](jobFacts(job), words);
    const { outcome } = await host.ask(
      { kind: "map list", ...list, ...module },
      { signal, timeLimit: listLimit(options), log: (level, message) => say(first, level, message) },
    );
    if (outcome.end !== "answered") {
      if (outcome.end === "late") late.note(dropOf(first));
      hosts.retire(host);
      return null;
    }
    hosts.giveBack(host, module, leftWords(outcome.left, first));
    if (outcome.answer.kind !== "mapped list") return null;
    for (const { nth, level, message } of outcome.answer.lines) say(list.jobs[nth] ?? first, level, message);
    return outcome.answer.results;
  }

  /** Null for jobs that must be mapped by themselves. */
  async function mapListed(jobs: readonly MapJob[], stop: AbortSignal): Promise<ListedResults> {
    const list = listOf(jobs);
    const mapper = jobs[0]?.binding.mapper;
    if (list === null || mapper === undefined || stop.aborted) return [];
    const module = await locate(mapper.name, mapper.digest);
    if (module === null) return [];
    const key = keyOf(module);
    const of = { key, drop: dropOf(jobs[0]), load: hosts.load(key) };
    const ask = (some: JobList["jobs"]) => turns.run(of, () => askList({ ...list, jobs: some }, module, stop), stop);
    return await mapJobList(list, mapper, (some) => ask(some).catch(afterAbort(stop, () => null)));
  }

  async function mapOne(job: MapJob, stop: AbortSignal): Promise<MapResult> {
    if (stop.aborted) throw cancelled(job);
    const { name, digest } = job.binding.mapper;
    const module = await locate(name, digest);
    if (module === null) return failed(absence(await isKnown(folders, name), name));
    // During the sync, the thread has the next file.
    const mapped = workers.run(dropOf(job), () => mapInHost(job, module, stop), stop);
    const { result, partPath } = await mapped.catch(afterAbort(stop, () => Promise.reject(cancelled(job))));
    if (result.status === "mapped" && result.batches.length > 0) await publish(partPath, job);
    return result;
  }

  async function prepare({ name, digest }: Pick<MapperIdentity, "name" | "digest">): Promise<void> {
    const module = await (means.expected ?? locate)(name, digest);
    // A task may have started the host meanwhile; then there is one.
    if (module !== null && workers.isIdle && !closing.signal.aborted) hosts.prepare(module);
  }

  return {
    async prepare(mapper) {
      if (!workers.isIdle || closing.signal.aborted) return;
      // A fault is reported when the file is mapped.
      await keepUntilEnd(prepare(mapper), inProgress);
    },
    map(jobs, signal) {
      const mapped = settleEach(jobs, (job) => mapOne(job, AbortSignal.any([signal, closing.signal])));
      keepUntilEnd(mapped, inProgress);
      return mapped;
    },
    mapList(jobs, signal) {
      const listed = mapListed(jobs, AbortSignal.any([signal, closing.signal]));
      keepUntilEnd(listed, inProgress);
      return settleEach(jobs, async (_, nth) => (await listed)[nth] ?? null);
    },
    async close() {
      closing.abort();
      // A running check of a version may write it to the kept versions.
      await endInTime(Promise.all([hosts.close(), ...inProgress]), log);
    },
  };
}

/** A host that cannot be ended now must not keep the gateway from closing its ledger. */
async function endInTime(ended: Promise<unknown>, log: Logger): Promise<void> {
  const deadline = new AbortController();
  const late = systemClock.sleep(CLOSE_MS, deadline.signal).then((passed) => {
    if (passed) log.warn({ waitedMs: CLOSE_MS }, "a mapping host did not end in time");
  });
  await Promise.race([ended, late]);
  deadline.abort();
}

/** Returns its end, which never rejects: a caller that waits for the result receives the rejection from `work`. */
function keepUntilEnd(work: Promise<unknown>, inProgress: Set<Promise<unknown>>): Promise<unknown> {
  const ended: Promise<unknown> = work.catch(() => undefined).finally(() => inProgress.delete(ended));
  inProgress.add(ended);
  return ended;
}

function notStarted(job: MapJob, words: string) {
  return transient("HG-MAP-017", job, `no process for the mapper could be started: ${words}`);
}

/** Only here, so that a host whose gateway has gone publishes nothing. */
async function publish(partPath: string, job: MapJob): Promise<void> {
  try {
    await onlyOne(publishSegment({ part: partPath, paths: [job.segmentPath], isShared: false }));
  } catch (thrown) {
    throw transient("HG-MAP-014", job, `the segment cannot be written: ${wordsOf(thrown)}`);
  }
}

async function locateOnDisk(places: readonly string[], name: string, digest: string): Promise<MapperModule | null> {
  const modulePath = await locateMapper(places, name);
  return modulePath !== null && (await digestMapper(modulePath)) === digest ? { modulePath, digest } : null;
}

async function isKnown(folders: readonly string[], name: string): Promise<boolean> {
  return (await locateMapper(searchFolders(folders), name)) !== null;
}

function absence(isKnownByName: boolean, name: string): Reason {
  return isKnownByName
    ? reasonOf("HG-MAP-002", `the mapper ${name} is not the one that this run was made with`)
    : reasonOf("HG-MAP-001", `there is no mapper ${name}`);
}

/**
 * An operator or the kernel may have ended it; and files before it or beside it are not this file's fault. Only files
 * beside it can delay it: they may occupy what the whole process has for its calls to the disk.
 */
function mayBeInnocent({ outcome, isShared, hadNeighbour }: Asked): boolean {
  if (outcome.end === "late") return hadNeighbour;
  return isShared || (outcome.end === "gone" && outcome.fromOutside);
}

function resultOf(answer: TaskAnswer, job: MapJob): MapResult {
  if (answer.kind === "mapped") return answer.result;
  if (answer.kind === "transient") throw transient(answer.code, job, answer.message);
  const { name } = job.binding.mapper;
  if (answer.kind !== "unusable")
    return failed(reasonOf("HG-MAP-011", `the process of the mapper ${name} gave an unexpected response`));
  return failed(answer.code === "HG-MAP-002" ? absence(true, name) : reasonOf(answer.code, answer.message));
}

function endReason(outcome: AskOutcome, job: MapJob, options: WorkersOptions): Reason {
  const { name } = job.binding.mapper;
  if (outcome.end === "late")
    return reasonOf("HG-MAP-009", `the mapper ${name} took longer than ${options.timeLimit / 1000} s`);
  if (outcome.end === "memory")
    return reasonOf("HG-MAP-010", `the mapper ${name} took more than ${Math.round(options.memory / 1e6)} MB of memory`);
  if (outcome.end === "fault")
    return reasonOf("HG-MAP-011", `the mapper ${name} left work behind that failed: ${outcome.words}`);
  const words = "words" in outcome ? outcome.words : outcome.end;
  return reasonOf("HG-MAP-011", `the mapper ${name} ${words}`);
}

function leftWords(left: readonly string[], job: JobNames): string | null {
  if (left.length === 0) return null;
  return `the mapper ${job.binding.mapper.name} left ${left.join(", ")} behind after ${job.filePath}`;
}

function logLate({ runId, file, words }: LateReadings, log: Logger): void {
  log.warn({ run: runId, file, code: "HG-MAP-041" }, lateWords(words));
}

/** In the words of the mapping thread. */
export function lateWords(words: string): string {
  return `${words} after the file was written, so what it gives is lost`;
}

/** For a rejection: what `instead` returns when the signal was aborted. */
function afterAbort<T>(signal: AbortSignal, instead: () => T): (thrown: unknown) => T {
  return (thrown) => {
    if (signal.aborted) return instead();
    throw thrown;
  };
}

/** Callers without drops take their turns as one. */
function dropOf(job: Pick<MapJob, "drop"> | undefined): string {
  return job?.drop ?? "";
}

/** The facts of a file in log lines. */
type JobNames = Pick<MapJob, "runId" | "filePath" | "binding">;

function jobFacts(job: JobNames) {
  return { run: job.runId, file: job.filePath, mapper: job.binding.mapper.name };
}

function failed(reason: Reason): MapResult {
  return { status: "failed", reason, findings: [], rejected: [], rejectedCount: 0 };
}

function cancelled(job: JobNames): TransientError {
  return transient("HG-MAP-013", job, "mapping was cancelled");
}

function transient(code: ErrorCode, job: JobNames, message: string): TransientError {
  return new TransientError(code, { operation: "map file", subject: job.filePath, message });
}
