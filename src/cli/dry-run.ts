/** Maps one file as the gateway does, in a process with its limits, and reads the segment back. */
import { createReadStream } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { MapJob, MapResult } from "../mapping/contract.ts";
import type { WorkersOptions } from "../mapping/options.ts";
import type { BatchSlice } from "../model.ts";
import { createLog } from "../support/log.ts";
import { onlyOne } from "../support/settled.ts";
import { createMappingPool } from "../workers/pool.ts";

export interface DryRun {
  readonly job: Omit<MapJob, "runId" | "segmentPath">;
  readonly workers: WorkersOptions;
  /** Absolute folders of mappers. */
  readonly folders: readonly string[];
  /** Receives the lines that the mapper logs and prints. */
  note(message: string): void;
}

/**
 * `show` receives the result, and the bodies of the batches one by one; afterwards all files are removed. The mapper
 * runs in a process of its own: in this process a mapper that loops could not be stopped, one that exits would look
 * like a success, and its output would mix with the payload.
 */
export async function mapApart<Shown>(
  { job, workers, folders, note }: DryRun,
  signal: AbortSignal,
  show: (result: MapResult, bodies: () => AsyncGenerator<Buffer>) => Promise<Shown>,
): Promise<Shown> {
  const folder = await mkdtemp(join(tmpdir(), "headgate-map-"));
  const segmentPath = join(folder, "segment");
  const log = createLog("info", {
    write: (line) => note(String((JSON.parse(line) as { msg?: unknown }).msg)),
  });
  const pool = createMappingPool({ ...workers, count: 1 }, folders, log, { writable: [folder] });
  try {
    const result = await onlyOne(pool.map([{ ...job, runId: "map", segmentPath }], signal));
    const batches = result.status === "mapped" ? result.batches : [];
    return await show(result, () => bodiesOf(segmentPath, batches));
  } finally {
    await pool.close();
    await rm(folder, { recursive: true, force: true });
  }
}

async function* bodiesOf(segmentPath: string, batches: readonly BatchSlice[]): AsyncGenerator<Buffer> {
  for (const { offset, length } of batches) {
    const parts: Buffer[] = [];
    for await (const part of createReadStream(segmentPath, { start: offset, end: offset + length - 1 }))
      parts.push(part as Buffer);
    yield Buffer.concat(parts);
  }
}
