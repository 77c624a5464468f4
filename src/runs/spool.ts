/** The gateway's own disk: fetched inputs, segments, and the compressed inputs that are kept for replay. */
import { createReadStream, createWriteStream } from "node:fs";
import { copyFile, mkdir, open, readdir, rm, stat, unlink, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import type { Readable, Transform } from "node:stream";
import { pipeline } from "node:stream/promises";
import { promisify } from "node:util";
import { createGunzip, createGzip, createZstdCompress, gzip, zstdCompress } from "node:zlib";
import type { TargetFacts } from "../model.ts";
import { Chunks } from "../support/chunks.ts";
import { publishDurably, syncDirectory, syncFile } from "../support/durable.ts";
import { ConfigError, systemCode, TransientError, wordsOf } from "../support/errors.ts";
import { ABOUT, type RunAbout, readFacts, writeAbout } from "./about.ts";
import { COMPRESSED, opened } from "./kept-readings.ts";
import type { SpoolOptions } from "./options.ts";

export interface Spool {
  readonly root: string;
  inputPath(runId: string): string;
  segmentPath(runId: string): string;
  hasInput(runId: string): Promise<boolean>;
  hasSegment(runId: string): Promise<boolean>;
  /** Says what the batches of a run are about, so that they can be guarded, and its readings traced to their rows. */
  note(runId: string, about: RunAbout): Promise<void>;
  /** Hands out what was noted of the targets of a run that is not at rest, so many at a time. False when it is not here as a whole. */
  facts(
    runId: string,
    perPart: number,
    take: (part: readonly TargetFacts[]) => Promise<void>,
  ): Promise<boolean>;
  /** Compresses the input, the segment and the row index of a run at rest. Idempotent. */
  retire(runId: string): Promise<void>;
  /** Brings a kept input back, also one of another run of the same file. False when it is not kept any more. */
  restoreInput(runId: string, from?: string): Promise<boolean>;
  /** Makes a synced file beside it the input of a run. */
  takeInput(runId: string, part: string): Promise<void>;
  /** Whether it can be brought back. */
  holdsInput(runId: string): Promise<boolean>;
  /** Copies the input of a run into a file, synced. False when it is not kept any more. */
  copyInput(runId: string, to: string): Promise<boolean>;
  /** The batches of a run, one after another; null when they are not kept any more. */
  openSegment(runId: string): Promise<Readable | null>;
  /** Ids of runs that have an input or a segment here. */
  residents(): Promise<ReadonlySet<string>>;
  /** The input of a run, kept or not; null when it is not here. */
  openInput(runId: string): Promise<Readable | null>;
  /** Ids of runs whose inputs are kept. */
  keptInputs(): Promise<readonly string[]>;
  /** Removes what is damaged. */
  discard(runId: string, what: "input" | "segment" | "kept"): Promise<void>;
  /** Removes what a crash left half-written. Only before anything is written. */
  sweep(): Promise<void>;
  /** Removes kept inputs beyond their age or size, oldest first. Answers how many. */
  prune(nowMs: number): Promise<number>;
}

const SEGMENT = ".segment";
const PART = ".part";
const KEPT = ".gz";
/** The segment, its row index, and both while they are written. */
const BESIDE_SEGMENT = ["", ".rows", ABOUT, PART, `.rows${PART}`, `${ABOUT}${PART}`];

export async function openSpool(options: SpoolOptions): Promise<Spool> {
  const root = resolve(options.path);
  const inputs = join(root, "inputs");
  const segments = join(root, "segments");
  const kept = join(root, "kept");
  try {
    for (const folder of [inputs, segments, kept]) await mkdir(folder, { recursive: true });
    await syncDirectory(root);
  } catch (cause) {
    throw new ConfigError("HG-SPOOL-001", { operation: "open spool", subject: root, cause });
  }
  const inputPath = (runId: string) => join(inputs, runId);
  const segmentPath = (runId: string) => join(segments, `${runId}${SEGMENT}`);
  const keptPath = (runId: string) => join(kept, `${runId}${KEPT}`);
  const places = { input: inputPath, segment: segmentPath, kept: keptPath };

  async function copyInput(runId: string, to: string): Promise<boolean> {
    if (await exists(inputPath(runId))) await copyFile(inputPath(runId), to);
    else if (await exists(keptPath(runId)))
      await pipeline(createReadStream(keptPath(runId)), createGunzip(), createWriteStream(to));
    else return false;
    await syncFile(to);
    return true;
  }

  return guarded({
    root,
    inputPath,
    segmentPath,
    hasInput: (runId) => exists(inputPath(runId)),
    hasSegment: (runId) => exists(segmentPath(runId)),
    async note(runId, about) {
      try {
        await writeAbout(`${segmentPath(runId)}${ABOUT}`, about);
      } catch (cause) {
        throw new TransientError("HG-SPOOL-004", {
          operation: "note targets",
          subject: runId,
          message: `the spool cannot be written: ${wordsOf(cause)}`,
          cause,
        });
      }
    },
    facts: (runId, perPart, take) => readFacts(`${segmentPath(runId)}${ABOUT}`, perPart, take),
    async retire(runId) {
      if (await exists(inputPath(runId))) {
        await squeeze(inputPath(runId), `${keptPath(runId)}${PART}`, GZIP);
        await syncFile(`${keptPath(runId)}${PART}`);
        await publishDurably(`${keptPath(runId)}${PART}`, keptPath(runId));
        await removeIfThere(inputPath(runId));
      }
      const beside = join(kept, runId);
      if (await exists(`${segmentPath(runId)}${ABOUT}`)) {
        for (const end of ["", ".rows"])
          if (await exists(`${segmentPath(runId)}${end}`))
            await squeeze(`${segmentPath(runId)}${end}`, `${beside}${end}${COMPRESSED}`, ZSTD);
        // Last, since a search begins with it.
        await copyFile(`${segmentPath(runId)}${ABOUT}`, `${beside}${ABOUT}`);
      }
      for (const beside of BESIDE_SEGMENT) await removeIfThere(`${segmentPath(runId)}${beside}`);
    },
    takeInput: (runId, part) => publishDurably(part, inputPath(runId)),
    async restoreInput(runId, from = runId) {
      const temporary = `${inputPath(runId)}${PART}`;
      if (!(await copyInput(from, temporary))) return false;
      await publishDurably(temporary, inputPath(runId));
      return true;
    },
    holdsInput: async (runId) => (await exists(inputPath(runId))) || exists(keptPath(runId)),
    copyInput,
    async openSegment(runId) {
      const beside = join(kept, `${runId}${COMPRESSED}`);
      if (await exists(segmentPath(runId))) return opened(segmentPath(runId));
      return (await exists(beside)) ? opened(beside) : null;
    },
    async openInput(runId) {
      if (await exists(inputPath(runId))) return createReadStream(inputPath(runId));
      if (!(await exists(keptPath(runId)))) return null;
      const plain = createGunzip();
      // Its faults are those of what is read.
      pipeline(createReadStream(keptPath(runId)), plain).catch(() => undefined);
      return plain;
    },
    keptInputs: async () =>
      (await readdir(kept)).filter((name) => name.endsWith(KEPT)).map((name) => name.slice(0, -KEPT.length)),
    discard: (runId, what) => rm(places[what](runId), { force: true }),
    async residents() {
      const names = [...(await readdir(inputs)), ...(await readdir(segments))];
      return new Set(names.map((name) => name.split(".")[0] ?? name));
    },
    async sweep() {
      for (const folder of [inputs, segments, kept]) {
        for (const name of await readdir(folder)) {
          if (name.endsWith(PART)) await rm(join(folder, name), { force: true });
        }
      }
    },
    prune: (nowMs) => pruneKept(kept, options.keepInputs, nowMs),
  });
}

/** Whatever the disk says is a fault of the spool that may pass, and no fault of the file that is worked on. */
function guarded(spool: Spool): Spool {
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
  return {
    ...spool,
    hasInput: guard("find input", spool.hasInput),
    hasSegment: guard("find segment", spool.hasSegment),
    note: guard("note targets", spool.note),
    retire: guard("keep input", spool.retire),
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

interface Squeezing {
  readonly stream: () => Transform;
  readonly whole: (bytes: Buffer) => Promise<Buffer>;
}

const GZIP: Squeezing = { stream: createGzip, whole: promisify(gzip) };
const ZSTD: Squeezing = { stream: createZstdCompress, whole: promisify(zstdCompress) };
/** Bytes of a file that is compressed in one piece, since a stream costs more than it gains. */
const PIECE_MAX = 256 * 1024;
const PIECES = new Chunks(PIECE_MAX, 4);

async function squeeze(from: string, to: string, { stream, whole }: Squeezing): Promise<void> {
  const { size } = await stat(from);
  if (size > PIECE_MAX) return await pipeline(createReadStream(from), stream(), createWriteStream(to));
  await PIECES.lend(async (chunk) => writeFile(to, await whole(await readInto(chunk, from))));
}

/** The bytes of a file that fit into the chunk. */
async function readInto(chunk: Buffer, path: string): Promise<Buffer> {
  const handle = await open(path, "r");
  try {
    let at = 0;
    for (let more = true; more && at < chunk.length; ) {
      const { bytesRead } = await handle.read(chunk, at, chunk.length - at, at);
      more = bytesRead > 0;
      at += bytesRead;
    }
    return chunk.subarray(0, at);
  } finally {
    await handle.close();
  }
}

async function removeIfThere(path: string): Promise<void> {
  try {
    await unlink(path);
  } catch (thrown) {
    if (systemCode(thrown) !== "ENOENT") throw thrown;
  }
}

/** What is kept of a run goes together. */
async function pruneKept(folder: string, limits: SpoolOptions["keepInputs"], nowMs: number): Promise<number> {
  const runs = new Map<string, { paths: string[]; bytes: number; modifiedMs: number }>();
  for (const name of await readdir(folder)) {
    const path = join(folder, name);
    const facts = await stat(path);
    const runId = name.split(".")[0] ?? name;
    const run = runs.get(runId) ?? { paths: [], bytes: 0, modifiedMs: 0 };
    run.paths.push(path);
    run.bytes += facts.size;
    run.modifiedMs = Math.max(run.modifiedMs, facts.mtimeMs);
    runs.set(runId, run);
  }
  let total = 0;
  let removed = 0;
  for (const run of [...runs.values()].sort((a, b) => b.modifiedMs - a.modifiedMs)) {
    total += run.bytes;
    if (total <= limits.size && nowMs - run.modifiedMs <= limits.age) continue;
    for (const path of run.paths) await rm(path, { force: true });
    removed += 1;
  }
  return removed;
}

async function exists(path: string): Promise<boolean> {
  try {
    await stat(path);
    return true;
  } catch (thrown) {
    if (systemCode(thrown) === "ENOENT") return false;
    throw thrown;
  }
}
