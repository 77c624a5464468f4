/**
 * The worker pool: each file or list is a task of a thread in a mapping host, within limits of memory and
 * time. Whatever a mapper does ends its own run and nothing else.
 */
import { availableParallelism } from "node:os";
import { systemClock } from "#core/clock.ts";
import { type ErrorCode, TransientError, wordsOf } from "#core/errors.ts";
import type { Logger } from "#core/log.ts";
import { onlyOne, settleEach } from "#core/promises.ts";
import { randomHex } from "#core/random.ts";
import { FairQueue } from "#core/turns.ts";
import type { MapJob, MappedFile, MappingPool, MapResult } from "../contract.ts";
import { digestMapper, locateMapper } from "../mapper-files.ts";
import type { MapperIdentity, Reason } from "../model.ts";
import type { WorkersOptions } from "../options.ts";
import { reasonOf } from "../rejections.ts";
import { discardPart, publishSegment } from "../segment/publish.ts";
import { isBundled, searchFolders } from "./bundled.ts";
import type { HostLimits } from "./host-process.ts";
import { ListTurns, type Load } from "./list-turns.ts";
import { type Asked, type AskOutcome, type HostReports, MappingHost } from "./mapping-host.ts";
import type { JobList, ListedJob, MapperModule, TaskAnswer } from "./messages.ts";

/** Idle hosts end, since most sites have long pauses between files. */
const IDLE_MS = 60_000;
/** Files of one host. */
const SERVED_MAX = 5_000;
/** Share of the memory of one file that a host may hold while idle, beside that of its threads. */
const GROWN_SHARE_MAX = 0.5;

const BUNDLED = "bundled";

/**
 * Some seconds beyond those after which the thread of a list begins no further file. A list that takes longer has a
 * file that does not end, which would hold the others back for as long as a file may take.
 */
const LIMIT_MS = 6_000;

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

/**
 * Drops of which a file or a list ran to the limit of its time. That ends the process, with what it maps for other
 * drops: so for a while, files of such a drop are mapped each in a process of its own.
 */
class LateDrops {
  readonly #forMs: number;
  readonly #sinceMs = new Map<string, number>();

  /** `forMs`: since the last one that ran to its limit; with 0 no drop is set apart. */
  constructor(forMs: number) {
    this.#forMs = forMs;
  }

  note(drop: string): void {
    this.#sinceMs.set(drop, performance.now());
  }

  has(drop: string): boolean {
    return performance.now() - (this.#sinceMs.get(drop) ?? Number.NEGATIVE_INFINITY) < this.#forMs;
  }
}

// A list of small files that one thread maps one after another into one file, with one message and one sync
// for all of them. Files with a fault are left to the pool, which maps each by itself.

/** Milliseconds for a list of files of which each may take as long as the options say. */
function listLimit({ timeLimit }: Pick<WorkersOptions, "timeLimit">): number {
  return Math.min(timeLimit, LIMIT_MS);
}

/** A unique name, so that a process that is about to end cannot write into the file of the next one. */
function partPathOf(job: MapJob): string {
  return `${job.segmentPath}.${randomHex(4)}.part`;
}

/** Jobs whose inputs are in one file; null when there are not several, or one of them is in another file. */
function listOf(jobs: readonly MapJob[]): JobList | null {
  const [first] = jobs;
  if (first === undefined || jobs.length < 2) return null;
  const listed = jobs.filter((job): job is ListedJob => job.input !== undefined && job.inputPath === first.inputPath);
  return listed.length < jobs.length ? null : { part: first.inputPath, jobs: listed };
}

/**
 * Null for files that are left. `ask` returns the results in the order of its request, or null for none at
 * all.
 */
async function mapJobList(
  { part, jobs }: JobList,
  version: MapperIdentity,
  ask: (jobs: readonly ListedJob[]) => Promise<readonly (MapResult | null)[] | null>,
): Promise<readonly (MapResult | null)[]> {
  const members = membersOf(jobs, version);
  const results: (MapResult | null)[] = jobs.map(() => null);
  const answered = (await ask(members.map(({ job }) => job))) ?? [];
  const written: { readonly nth: number; readonly path: string; readonly result: MappedFile }[] = [];
  for (const [at, { nth, job }] of members.entries()) {
    const result = answered[at];
    if (result?.status !== "mapped") continue;
    if (result.batches.length === 0) results[nth] = result;
    else written.push({ nth, path: job.segmentPath, result });
  }
  if (written.length === 0) return results;
  const paths = written.map(({ path }) => path);
  const published = await publishSegment({ part, paths, isShared: true });
  for (const [at, { nth, result }] of written.entries())
    if (published[at]?.status === "fulfilled") results[nth] = { ...result, holdsInput: true };
  return results;
}

interface Member {
  /** Position among the given jobs. */
  readonly nth: number;
  readonly job: ListedJob;
}

/** The jobs of this version. Equal bindings become one object, which is sent to the process once. */
function membersOf(jobs: readonly ListedJob[], { name, digest }: MapperIdentity): readonly Member[] {
  const shared = new Map<string, unknown>();
  const once = <Value>(value: Value): Value => {
    const key = JSON.stringify(value) ?? "";
    const known = shared.get(key);
    if (known !== undefined) return known as Value;
    shared.set(key, value);
    return value;
  };
  return jobs.flatMap((job, nth) => {
    const { mapper, settings, rows, rejectShare, limits, version } = job.binding;
    if (mapper.name !== name || mapper.digest !== digest) return [];
    const binding = once({ mapper, settings, rows, rejectShare, limits, version });
    return [{ nth, job: { ...job, binding, lookups: once(job.lookups) } }];
  });
}

// The mapping hosts, kept between files, since one takes a fifth of a second to start.
//
// A host serves one mapper, in one version: what a mapper changes in the runtime can only hurt itself. Those that come
// with Headgate share a host. One whose thread was left unclean, or that has grown, is replaced: it receives no further
// task, and ends with its last one.

interface HostPoolMeans {
  readonly log: Logger;
  readonly onLate: HostReports["late"];
}

export class HostPool {
  readonly #idleThreadsMax: number;
  readonly #limits: HostLimits;
  readonly #log: Logger;
  readonly #reports: HostReports;
  /** The host that receives the tasks of a key. */
  readonly #hosts = new Map<string, MappingHost>();
  /** When hosts without a task end; longest idle first. */
  readonly #idle = new Map<MappingHost, NodeJS.Timeout>();
  /** Hosts that have not ended yet. */
  readonly #alive = new Set<MappingHost>();
  /** Hosts that receive no further task. */
  readonly #retired = new WeakSet<MappingHost>();

  /** Hosts without a task are kept while they have at most this number of threads, or for the last one of them. */
  constructor(idleThreadsMax: number, limits: HostLimits, { log, onLate }: HostPoolMeans) {
    this.#idleThreadsMax = idleThreadsMax;
    this.#limits = limits;
    this.#log = log;
    const fault = (words: string) =>
      log.warn({ fault: words }, "a mapper had left work behind that failed between two files");
    this.#reports = { fault, late: onLate };
  }

  /**
   * The host of this mapper, or of those that come with Headgate. `alone`: a new host, for one task; `behind`: the
   * same, which uses the processor when others do not need it.
   */
  take(module: MapperModule, how: "shared" | "alone" | "behind"): MappingHost {
    const key = keyOf(module);
    const known = how === "shared" ? this.#hosts.get(key) : undefined;
    if (known?.isAlive === true) {
      this.#stayAwake(known);
      return known;
    }
    const host = new MappingHost(this.#limits, this.#reports, key === BUNDLED ? module : null);
    this.#alive.add(host);
    if (how === "shared") this.#hosts.set(key, host);
    if (how === "behind") {
      this.#retired.add(host);
      host.fallBehind();
    }
    return host;
  }

  /** Of the host of this key. */
  load(key: string): Load {
    const host = this.#hosts.get(key);
    return host?.isAlive === true ? host : { threads: 0, tasks: 0 };
  }

  /** Starts the host of this mapper ahead of its first file. */
  prepare(module: MapperModule): void {
    const host = this.take(module, "shared");
    if (host.tasks === 0) this.#keepIdle(host);
  }

  /** After a task that was answered. `left`: resources that the mapper left behind. */
  giveBack(host: MappingHost, module: MapperModule, left: string | null): void {
    if (left !== null) this.#log.warn({ left }, "a mapping host is replaced, since its mapper left work behind");
    if (left !== null || this.#retired.has(host) || this.#isWorn(host) || !host.isAlive) {
      this.retire(host);
      return;
    }
    const key = keyOf(module);
    if (this.#hosts.get(key)?.isAlive !== true) this.#hosts.set(key, host);
    if (this.#hosts.get(key) !== host) this.retire(host);
    else if (host.tasks === 0) this.#keepIdle(host);
  }

  /** The host receives no further task, and ends after the last one that it has. */
  retire(host: MappingHost): void {
    this.#retired.add(host);
    this.#stayAwake(host);
    for (const [key, one] of this.#hosts) if (one === host) this.#hosts.delete(key);
    if (host.tasks === 0) void this.#ending(host);
  }

  /** Ends all hosts, also those with tasks. */
  async close(): Promise<void> {
    for (const host of [...this.#idle.keys()]) this.#stayAwake(host);
    this.#hosts.clear();
    await Promise.all([...this.#alive].map((host) => this.#ending(host)));
  }

  #isWorn(host: MappingHost): boolean {
    if (host.served >= SERVED_MAX) return true;
    return host.tasks === 0 && host.grownBytes > this.#limits.memory * GROWN_SHARE_MAX + host.threadBytes;
  }

  #keepIdle(host: MappingHost): void {
    this.#stayAwake(host);
    const timer = setTimeout(() => this.retire(host), IDLE_MS);
    timer.unref();
    this.#idle.set(host, timer);
    const idle = [...this.#idle.keys()];
    let threads = idle.reduce((sum, one) => sum + one.threads, 0);
    for (const oldest of idle) {
      if (threads <= this.#idleThreadsMax || oldest === host) return;
      threads -= oldest.threads;
      this.retire(oldest);
    }
  }

  #stayAwake(host: MappingHost): void {
    clearTimeout(this.#idle.get(host));
    this.#idle.delete(host);
  }

  async #ending(host: MappingHost): Promise<void> {
    await host.kill();
    this.#alive.delete(host);
  }
}

/** Mappers of the same key share a host. */
function keyOf(module: MapperModule): string {
  return isBundled(module.origin ?? module.modulePath) ? BUNDLED : `${module.modulePath}?${module.digest}`;
}
