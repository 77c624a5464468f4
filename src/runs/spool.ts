/** The gateway's own disk: fetched inputs, segments, and the compressed inputs that are kept for replay. */
import { createReadStream, createWriteStream } from "node:fs";
import { mkdir, readdir, rm, stat } from "node:fs/promises";
import { join, resolve } from "node:path";
import { pipeline } from "node:stream/promises";
import { createGunzip, createGzip } from "node:zlib";
import { publishDurably, syncDirectory, syncFile } from "../support/durable.ts";
import { ConfigError, systemCode } from "../support/errors.ts";
import type { SpoolOptions } from "./options.ts";

export interface Spool {
  readonly root: string;
  inputPath(runId: string): string;
  segmentPath(runId: string): string;
  hasInput(runId: string): Promise<boolean>;
  hasSegment(runId: string): Promise<boolean>;
  /** Compresses the input of a run at rest, and removes its segment. Idempotent. */
  retire(runId: string): Promise<void>;
  /** Brings a kept input back. False when it is not kept any more. */
  restoreInput(runId: string): Promise<boolean>;
  /** Ids of runs that have an input or a segment here. */
  residents(): Promise<ReadonlySet<string>>;
  /** Removes what a crash left half-written. Only before anything is written. */
  sweep(): Promise<void>;
  /** Removes kept inputs beyond their age or size, oldest first. Answers how many. */
  prune(nowMs: number): Promise<number>;
}

const SEGMENT = ".segment";
const PART = ".part";
const KEPT = ".gz";
/** The segment, its row index, and both while they are written. */
const BESIDE_SEGMENT = ["", ".rows", PART, `.rows${PART}`];

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
  return {
    root,
    inputPath,
    segmentPath,
    hasInput: (runId) => exists(inputPath(runId)),
    hasSegment: (runId) => exists(segmentPath(runId)),
    async retire(runId) {
      if (await exists(inputPath(runId))) {
        await squeeze(inputPath(runId), keptPath(runId));
        await rm(inputPath(runId), { force: true });
      }
      for (const beside of BESIDE_SEGMENT) await rm(`${segmentPath(runId)}${beside}`, { force: true });
    },
    async restoreInput(runId) {
      if (!(await exists(keptPath(runId)))) return false;
      const temporary = `${inputPath(runId)}${PART}`;
      await pipeline(createReadStream(keptPath(runId)), createGunzip(), createWriteStream(temporary));
      await syncFile(temporary);
      await publishDurably(temporary, inputPath(runId));
      return true;
    },
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
  };
}

async function squeeze(from: string, to: string): Promise<void> {
  const temporary = `${to}${PART}`;
  await pipeline(createReadStream(from), createGzip(), createWriteStream(temporary));
  await syncFile(temporary);
  await publishDurably(temporary, to);
}

async function pruneKept(folder: string, limits: SpoolOptions["keepInputs"], nowMs: number): Promise<number> {
  const files: { path: string; bytes: number; modifiedMs: number }[] = [];
  for (const name of await readdir(folder)) {
    if (!name.endsWith(KEPT)) continue;
    const path = join(folder, name);
    const facts = await stat(path);
    files.push({ path, bytes: facts.size, modifiedMs: facts.mtimeMs });
  }
  files.sort((a, b) => b.modifiedMs - a.modifiedMs);
  let total = 0;
  let removed = 0;
  for (const file of files) {
    total += file.bytes;
    if (total <= limits.size && nowMs - file.modifiedMs <= limits.age) continue;
    await rm(file.path, { force: true });
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
