/** The gateway's own disk: fetched inputs, segments, and the files of runs at rest that are kept for replay. */
import { constants, createWriteStream, unlinkSync, utimesSync } from "node:fs";
import { copyFile, mkdir, open, readdir, rm, stat } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import type { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { systemClock } from "#core/clock.ts";
import { Collector } from "#core/collector.ts";
import { digestOfFile } from "#core/digest.ts";
import { publishDurably, syncDirectory, syncFile, writeDurably } from "#core/durable.ts";
import { systemCode, TransientError, wordsOf } from "#core/errors.ts";
import { PRIVATE_FOLDER } from "#core/private-files.ts";
import { resultOf, type Settled, settleEach } from "#core/promises.ts";
import { randomHex } from "#core/random.ts";
import { startFault } from "#core/start-fault.ts";
import { besideModule } from "#core/threads/beside.ts";
import { DiskThread } from "#core/threads/disk-thread.ts";
import { FOOTER_MAX, type Span } from "#mapping/segment/layout.ts";
import type { SegmentRead } from "#mapping/segment/payloads.ts";
import { readSpan } from "#mapping/segment/trailer.ts";
import type { TargetFacts } from "../model.ts";
import { keepFile, keptPlace, openKept, sizeOf } from "./kept-files.ts";
import { isUnpacked, type PackAnswer, type PackOrder } from "./kept-packer.ts";
import { filesToKeep, isLarge, moveToKept } from "./kept-segments.ts";
import type { SpoolOptions } from "./options.ts";
import { KEPT_ENDS, PART, type SpoolPlaces, spoolPlaces } from "./paths.ts";
import { type FilePart, keptSegmentFiles, type SegmentFiles, segmentFiles } from "./segment-files.ts";
import type { SpoolAnswer, SpoolOrder } from "./spool-disk-work.ts";
import { readFacts } from "./target-index.ts";
import { shareOf } from "./usage.ts";

export interface Spool {
  readonly root: string;
  inputPath(runId: string): string;
  segmentPath(runId: string): string;
  /** Whether its input has a file of its own here, so that it can be mapped. */
  hasInput(runId: string): Promise<boolean>;
  /** Whether that file has the SHA-256 with which it was fetched (null: any). A file that has not is removed. */
  hasWholeInput(runId: string, sha256: string | null): Promise<boolean>;
  hasSegment(runId: string): Promise<boolean>;
  /** Full path of a segment whose first run is this, until it has its names. */
  newSegment(runId: string): string;
  /**
   * Hands out the targets of a run that is not at rest, a number of them at a time. False when its target index is
   * missing or damaged.
   */
  facts(runId: string, perPart: number, take: (part: readonly TargetFacts[]) => Promise<void>): Promise<boolean>;
  /**
   * Moves the inputs and the segments of runs at rest to the kept files, where large ones wait to be compressed.
   * Idempotent. Returns a result for each in the order given; does not reject.
   */
  retire(runIds: readonly string[]): Promise<readonly Settled<void>[]>;
  /** Compresses the kept files that wait for it, until it is aborted. Rejects with the first fault; its file waits. */
  pack(signal: AbortSignal): Promise<void>;
  /** Runs that could not be retired when that was requested. */
  readonly left: ReadonlySet<string>;
  /**
   * Copies the input of a run to a file of its own, from wherever the spool has it; `from`: another run of the same
   * file. False when it is no longer available, or has another SHA-256 (null: any).
   */
  restoreInput(runId: string, from?: string, sha256?: string | null): Promise<boolean>;
  /** Copies the input of a run out of a file with the inputs of several runs. */
  cutInput(runId: string, from: string, span: Span): Promise<void>;
  /** Renames a synced file beside it to the input of a run. */
  takeInput(runId: string, part: string): Promise<void>;
  /** Whether the spool has the input, in any place. */
  holdsInput(runId: string): Promise<boolean>;
  /** Copies the input of a run into a file, synced. False when it is no longer available. */
  copyInput(runId: string, to: string): Promise<boolean>;
  /** Reads the batches of a run; null when they are no longer available. */
  openSegment(runId: string): Promise<SegmentRead | null>;
  /** Segment and indexes of a run, kept or not. */
  filesOf(runId: string): SegmentFiles;
  /** Ids of runs that have an input or a segment here. */
  residents(): Promise<ReadonlySet<string>>;
  /** The input of a run, kept or not unless one of both is requested; null when it is missing. */
  openInput(runId: string, side?: InputSide): Promise<Readable | null>;
  /** Ids of runs whose inputs are kept. */
  keptInputs(): Promise<readonly string[]>;
  /**
   * Removes a damaged or unwanted file: a segment with all that is in it; an input, without the segment that it may be
   * in.
   */
  discard(runId: string, what: "input" | "segment" | "kept"): Promise<void>;
  /** Removes half-written files of a crash, and samples. Only before any file is written. */
  sweep(): Promise<void>;
  /** Removes kept inputs beyond their age or size, oldest first. Returns how many. */
  prune(nowMs: number): Promise<number>;
  /** Ends the threads of the spool; later calls do their work without, and compress nothing. */
  close(): Promise<void>;
}

/** Runs of one list. */
const LIST_MAX = 1_000;
/** Milliseconds after which the thread that compresses ends: there is rarely another file soon. */
const PACKING_IDLE_MS = 100;

export async function openSpool(options: SpoolOptions): Promise<Spool> {
  const root = resolve(options.path);
  const names = spoolPlaces(root);
  const { segments, kept, input: inputPath, segment: segmentPath } = names;
  const folders = [names.inputs, segments, kept];
  try {
    for (const folder of folders) await mkdir(folder, { recursive: true, mode: PRIVATE_FOLDER });
    await syncDirectory(root);
  } catch (cause) {
    throw startFault("HG-SPOOL-001", { operation: "open spool", subject: root, cause });
  }
  const inputs = new SpoolInputs(names);
  const disk = new SpoolDisk(names, (runId) => retireOne(runId, names));
  const left = new Set<string>();
  return guarded(left, {
    root,
    left,
    inputPath,
    segmentPath,
    hasInput: async (runId) => exists(inputPath(runId)),
    hasWholeInput: (runId, sha256) => inputs.isWhole(runId, sha256),
    hasSegment: async (runId) => exists(segmentPath(runId)),
    async facts(runId, perPart, take) {
      const { about } = segmentFiles(segmentPath(runId));
      return about !== null && (await readFacts(about, perPart, take));
    },
    cutInput: async (runId, from, span) => writeDurably(inputPath(runId), readSpan(from, span)),
    takeInput: (runId, part) => publishDurably(part, inputPath(runId)),
    restoreInput: (runId, from = runId, sha256 = null) => inputs.restore(runId, from, sha256),
    holdsInput: async (runId) => inputs.find(runId) !== null,
    copyInput: (runId, to) => inputs.copy(runId, to),
    async openSegment(runId) {
      const path = segmentPath(runId);
      const find = () => (exists(path) ? path : keptPlace(names.keptOf(runId), "segment"));
      // Found at each read: meanwhile the run may have come to rest, and its segment been kept or compressed.
      return find() === null ? null : (span) => openKept(find() ?? path, span);
    },
    filesOf: (runId) =>
      exists(segmentPath(runId)) ? segmentFiles(segmentPath(runId)) : keptSegmentFiles(names.keptOf(runId)),
    async openInput(runId, side) {
      const found = inputs.find(runId, side);
      return found === null ? null : openKept(found.path, found.span);
    },
    keptInputs: () => inputs.kept(),
    async discard(runId, what) {
      if (what !== "segment") return inputs.remove(runId, what === "kept" ? "kept" : "in progress");
      await rm(segmentPath(runId), { force: true });
    },
    async residents() {
      const found = [...(await readdir(names.inputs)), ...(await readdir(segments))];
      return new Set(found.map((name) => name.split(".")[0] ?? name));
    },
    async sweep() {
      for (const folder of folders)
        for (const name of await readdir(folder))
          if (name.includes(PART)) await rm(join(folder, name), { force: true });
      await rm(names.samples, { recursive: true, force: true });
    },
    prune: (nowMs) => pruneKept(kept, options.keepInputs, nowMs, disk.unpacked),
    newSegment: (runId) => `${segmentPath(runId)}.${randomHex(4)}${PART}`,
    retire: (runIds) => disk.retire(runIds),
    pack: (signal) => disk.pack(signal),
    close: () => disk.close(),
  });
}

async function retireOne(runId: string, names: SpoolPlaces): Promise<void> {
  const [input, segment, place] = [names.input(runId), names.segment(runId), names.keptOf(runId)];
  // Its age counts from here.
  const now = systemClock.now().epochMilliseconds / 1000;
  if (exists(input)) utimesSync(input, now, now);
  const size = sizeOf(input);
  if (size !== null) {
    await keepFile({ from: input, kind: "input", size }, place, true);
    await syncDirectory(names.kept);
    removeIfThere(input);
  }
  const files = filesToKeep(segment);
  for (const file of files) {
    if ("kind" in file) await keepFile(file, place, false);
    else moveToKept(file, place, now);
  }
  // An input without a file of its own is moved with the segment.
  if (size === null && files.length > 0) await syncDirectory(names.kept);
  // A replay that a crash ended may have left the second.
  for (const path of [segment, `${segment}${PART}`]) removeIfThere(path);
}

/** A disk error is a fault of the spool that may pass, and no fault of the run. */
function guarded(left: Set<string>, spool: Spool): Spool {
  const guard =
    <Args extends readonly unknown[], Value>(operation: string, work: (...args: Args) => Promise<Value>) =>
    async (...args: Args): Promise<Value> => {
      try {
        return await work(...args);
      } catch (cause) {
        if (systemCode(cause) === undefined) throw cause;
        throw new TransientError("HG-SPOOL-004", {
          operation,
          subject: spool.root,
          message: `the spool cannot be used now: ${wordsOf(cause)}`,
          cause,
        });
      }
    };
  const keeping = guard("keep input", (work: () => Promise<void>) => work());
  return {
    ...spool,
    hasInput: guard("find input", spool.hasInput),
    hasWholeInput: guard("verify input", spool.hasWholeInput),
    hasSegment: guard("find segment", spool.hasSegment),
    async retire(runIds) {
      for (const runId of runIds) left.add(runId);
      const retired = await spool.retire(runIds);
      return await settleEach(runIds, async (runId, at) => {
        await keeping(async () => resultOf(retired[at]));
        left.delete(runId);
      });
    },
    cutInput: guard("store input", spool.cutInput),
    takeInput: guard("take input", spool.takeInput),
    restoreInput: guard("restore input", spool.restoreInput),
    holdsInput: guard("find input", spool.holdsInput),
    copyInput: guard("copy input", spool.copyInput),
    residents: guard("list spool", spool.residents),
    keptInputs: guard("list spool", spool.keptInputs),
    discard: guard("remove from spool", spool.discard),
    sweep: guard("sweep spool", spool.sweep),
    prune: guard("prune spool", spool.prune),
  };
}

function removeIfThere(path: string): void {
  if (exists(path)) unlinkSync(path);
}

function exists(path: string): boolean {
  return sizeOf(path) !== null;
}

// Removes kept files beyond their age or size.

interface KeptRun {
  readonly paths: string[];
  /** Of files with one name. */
  bytes: number;
  /** Inodes of files that have more names. */
  readonly shared: Set<number>;
  modifiedMs: number;
}

/**
 * The kept files of a run are removed at one time. A segment of several runs stays as long as one of its names, so that
 * it counts with the newest of them, and not with the others. Adds the runs with files that were not compressed yet.
 */
async function pruneKept(
  folder: string,
  limits: SpoolOptions["keepInputs"],
  nowMs: number,
  unpacked: Set<string>,
): Promise<number> {
  const runs = new Map<string, KeptRun>();
  /** Bytes of files with more names by their inodes, as far as these names are here. */
  const shared = new Map<number, number>();
  for (const name of await readdir(folder)) {
    // It is being written, and is about to have another name.
    if (name.endsWith(PART)) continue;
    const path = join(folder, name);
    const facts = await stat(path);
    const runId = name.split(".")[0] ?? name;
    if (isUnpacked(name, facts)) unpacked.add(runId);
    const run = runs.get(runId) ?? { paths: [], bytes: 0, shared: new Set(), modifiedMs: 0 };
    run.paths.push(path);
    if (facts.nlink > 1) {
      run.shared.add(facts.ino);
      shared.set(facts.ino, (shared.get(facts.ino) ?? 0) + shareOf(facts));
    } else run.bytes += facts.size;
    run.modifiedMs = Math.max(run.modifiedMs, facts.mtimeMs);
    runs.set(runId, run);
  }
  let total = 0;
  let removed = 0;
  for (const run of [...runs.values()].sort((a, b) => b.modifiedMs - a.modifiedMs)) {
    total += run.bytes;
    for (const inode of run.shared) {
      total += shared.get(inode) ?? 0;
      shared.delete(inode);
    }
    if (total <= limits.size && nowMs - run.modifiedMs <= limits.age) continue;
    for (const path of run.paths) await rm(path, { force: true });
    removed += 1;
  }
  return removed;
}

/**
 * The threads of the spool. One does the usual runs of a list (`spool-disk-work.ts`), and the spool the others, one by
 * one; another compresses what was kept as it is (`kept-packer.ts`).
 */
class SpoolDisk {
  readonly #thread: DiskThread<SpoolOrder, SpoolAnswer>;
  readonly #packer: DiskThread<PackOrder, PackAnswer>;
  /** Runs with kept files that wait to be compressed. */
  readonly unpacked = new Set<string>();
  readonly #places: SpoolPlaces;
  readonly #retired: Collector<string, void>;

  /** `retireOne` does what the thread left. */
  constructor(places: SpoolPlaces, retireOne: (runId: string) => Promise<void>) {
    this.#places = places;
    this.#thread = new DiskThread({
      module: besideModule(import.meta.url, "spool-worker"),
      data: { root: places.root },
    });
    const packer = besideModule(import.meta.url, "packer-worker");
    this.#packer = new DiskThread({ module: packer, data: null, idleMs: PACKING_IDLE_MS });
    this.#retired = new Collector((list) => this.#retire(list, retireOne), LIST_MAX);
  }

  /** See `Spool.retire`. Runs that are retired at one moment are one list. */
  retire(runIds: readonly string[]): Promise<readonly Settled<void>[]> {
    return settleEach(runIds, (runId) => this.#retired.add(runId));
  }

  /** See `Spool.pack`. */
  async pack(signal: AbortSignal): Promise<void> {
    for (const runId of this.unpacked) {
      const answer = await this.#packer.ask({ kept: this.#places.keptOf(runId) }, signal);
      if (answer === null) return;
      if (answer.fault !== null) throw new Error(answer.fault);
      this.unpacked.delete(runId);
    }
  }

  async close(): Promise<void> {
    await Promise.all([this.#thread.close(), this.#packer.close()]);
  }

  async #retire(
    runIds: readonly string[],
    retireOne: (runId: string) => Promise<void>,
  ): Promise<readonly Settled<void>[]> {
    const nowS = systemClock.now().epochMilliseconds / 1000;
    // A run alone is worth no message to the thread.
    const isAlone = runIds.length < 2;
    const answer = isAlone ? null : await this.#thread.ask({ runIds, nowS });
    // Of a list that the thread did not end, files may be kept by now, and large.
    const large = answer?.large ?? (isAlone ? runIds.filter((runId) => isLarge(runId, this.#places)) : runIds);
    const settled: Settled<void>[] = [];
    for (const [at, runId] of runIds.entries()) {
      const [one] = await Promise.allSettled([answer?.done[at] === true ? undefined : retireOne(runId)]);
      settled.push(one);
    }
    for (const runId of large) this.unpacked.add(runId);
    return settled;
  }
}

// Where the input of a run is: a file of its own, or its segment (`segment/layout.ts`), kept or not.

/** Whether a run is in progress, or at rest. */
type InputSide = "in progress" | "kept";

class SpoolInputs {
  readonly #places: SpoolPlaces;

  constructor(places: SpoolPlaces) {
    this.#places = places;
  }

  /** Returns null when the input is no longer available. */
  find(runId: string, side?: InputSide): FilePart | null {
    const current = side === "kept" ? null : this.#inProgress(runId);
    return current ?? (side === "in progress" ? null : this.#kept(runId));
  }

  #inProgress(runId: string): FilePart | null {
    const path = this.#places.input(runId);
    return sizeOf(path) === null ? segmentFiles(this.#places.segment(runId)).input : { path };
  }

  #kept(runId: string): FilePart | null {
    const kept = this.#places.keptOf(runId);
    const path = keptPlace(kept, "input");
    return path === null ? keptSegmentFiles(kept).input : { path };
  }

  /** See `Spool.hasWholeInput`. */
  async isWhole(runId: string, sha256: string | null): Promise<boolean> {
    const path = this.#places.input(runId);
    if (sizeOf(path) === null) return false;
    if (sha256 === null || (await digestOfFile(path)) === sha256) return true;
    await rm(path, { force: true });
    return false;
  }

  /** Copies the input to another file, synced. Returns false when the input is no longer available. */
  async copy(runId: string, to: string): Promise<boolean> {
    const from = this.find(runId);
    if (from === null) return false;
    if (from.path === this.#places.input(runId)) await copyFile(from.path, to);
    else await pipeline(openKept(from.path, from.span), createWriteStream(to));
    await syncFile(to);
    return true;
  }

  /** See `Spool.restoreInput`. */
  async restore(runId: string, from: string, sha256: string | null): Promise<boolean> {
    const path = this.#places.input(runId);
    const part = `${path}${PART}`;
    if (!(await this.copy(from, part))) return false;
    const isSame = sha256 === null || (await digestOfFile(part)) === sha256;
    if (isSame) await publishDurably(part, path);
    else await rm(part);
    return isSame;
  }

  /** Ids of the runs whose inputs are kept. */
  async kept(): Promise<readonly string[]> {
    const names = await readdir(this.#places.kept);
    const idsOf = (end: string) => names.flatMap((name) => (name.endsWith(end) ? [name.slice(0, -end.length)] : []));
    const ids = new Set(Object.values(KEPT_ENDS.input).flatMap(idsOf));
    for (const id of idsOf(KEPT_ENDS.segment.plain)) if (this.#kept(id) !== null) ids.add(id);
    return [...ids];
  }

  /** Removes the input that is found, durably, and nothing else of its run. */
  async remove(runId: string, side: InputSide): Promise<void> {
    const found = this.find(runId, side);
    if (found?.span === undefined) {
      if (found === null) return;
      await rm(found.path, { force: true });
      await syncDirectory(dirname(found.path));
      return;
    }
    const { segment, keptOf } = this.#places;
    const files = side === "kept" ? keptSegmentFiles(keptOf(runId)) : segmentFiles(segment(runId));
    await removeInput(files, found);
  }
}

/**
 * Gives a run whose segment has its input a file of its own, with the same offsets and a footer by which the
 * input has no bytes. The batches stay: they may be all that is left of the file, and other runs have the
 * rest of the segment. A crash leaves either.
 */
async function removeInput({ about }: SegmentFiles, { path, span }: FilePart): Promise<void> {
  if (about?.span === undefined || span === undefined) return;
  const footerAt = about.span.offset + about.span.length;
  const [line = ""] = readSpan(path, { offset: footerAt, length: FOOTER_MAX }).toString("utf8").split("\n", 1);
  const footer = { ...(JSON.parse(line) as object), input: [span.offset, 0] };
  const part = `${path}${PART}`;
  const { atime, mtime } = await stat(path);
  try {
    // The name may be a link that a crash left: the file behind it stays as it is.
    await rm(part, { force: true });
    await copyFile(path, part, constants.COPYFILE_EXCL);
    const file = await open(part, "r+");
    try {
      // As many bytes as before, so that the bytes after it keep their offsets.
      await file.write(JSON.stringify(footer).padEnd(line.length), footerAt);
      // Retention counts from the time of the original.
      await file.utimes(atime, mtime);
      await file.sync();
    } finally {
      await file.close();
    }
    await publishDurably(part, path);
  } catch (thrown) {
    await rm(part, { force: true }); // A full disk must not be filled further.
    throw thrown;
  }
}
