/** The gateway's own disk: fetched inputs, segments, and the files of runs at rest that are kept for replay. */

import { unlinkSync, utimesSync } from "node:fs";
import { mkdir, readdir, rm } from "node:fs/promises";
import { join, resolve } from "node:path";
import type { Readable } from "node:stream";
import { systemClock } from "#core/clock.ts";
import { publishDurably, syncDirectory, writeDurably } from "#core/durable.ts";
import { systemCode, TransientError, wordsOf } from "#core/errors.ts";
import { PRIVATE_FOLDER } from "#core/private-files.ts";
import { randomHex } from "#core/random.ts";
import { resultOf, type Settled, settleEach } from "#core/settled.ts";
import { startFault } from "#core/start-fault.ts";
import type { Span } from "#mapping/segment/layout.ts";
import type { SegmentRead } from "#mapping/segment/payloads.ts";
import { readSpan } from "#mapping/segment/trailer.ts";
import type { TargetFacts } from "../model.ts";
import { type InputSide, SpoolInputs } from "./inputs.ts";
import { keepFile, keptPlace, openKept, sizeOf } from "./kept-files.ts";
import { pruneKept } from "./kept-limits.ts";
import { filesToKeep, moveToKept } from "./kept-segments.ts";
import type { SpoolOptions } from "./options.ts";
import { PART, type SpoolPlaces, spoolPlaces } from "./paths.ts";
import { keptSegmentFiles, type SegmentFiles, segmentFiles } from "./segment-files.ts";
import { SpoolDisk } from "./spool-disk.ts";
import { readFacts } from "./target-index.ts";

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
