/** Maps single files as the gateway does, in a process with its limits, and reads the segment back. */
import { createReadStream } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createLog } from "#core/log.ts";
import { onlyOne } from "#core/promises.ts";
import type { MapJob, MapResult } from "../contract.ts";
import type { BatchSlice } from "../model.ts";
import type { WorkersOptions } from "../options.ts";
import { prepareBundled } from "./bundled.ts";
import { createMappingPool, type LateReadings, lateWords } from "./pool.ts";

/** The options of a configuration without `workers`, since its schema takes longer to load than a file to map. */
export const WORKERS_DEFAULT = { memory: 512_000_000, timeLimit: 600_000, queue: 1, perDrop: "all" } as const;

export interface DryRunMeans {
  readonly workers: Omit<WorkersOptions, "count">;
  /** Absolute folders of mappers. */
  readonly folders: readonly string[];
}

export interface DryRun {
  readonly job: Omit<MapJob, "runId" | "segmentPath">;
  /** Receives the lines that the mapper logs and prints. */
  note(message: string): void;
}

/** The files of a dry run, until they are removed. */
export interface DryRunFiles {
  readonly segmentPath: string;
  /** The bodies of the batches, one by one. */
  bodies(): AsyncGenerator<Buffer>;
}

export interface DryRuns {
  /** Starts the process of this mapper ahead of its first run, if it comes with Headgate; the run reports a fault. */
  prepare(name: string): Promise<void>;
  /**
   * `show` receives the result and the segment; afterwards all files are removed. The mapper runs in a process of its
   * own: in this process a mapper that loops could not be stopped, one that exits would look like a success, and its
   * output would mix with the payload. Throws `TransientError` when the signal is aborted.
   */
  map<Shown>(
    run: DryRun,
    signal: AbortSignal,
    show: (result: MapResult, files: DryRunFiles) => Promise<Shown>,
  ): Promise<Shown>;
  /** Readings that came when their file was written already, until now: each in words. */
  late(): readonly string[];
  /** Ends the processes. Runs in progress fail with `TransientError`. */
  close(): Promise<void>;
}

/** `count`: files that are mapped at the same time; others wait. A mapper of the last run starts faster. */
export async function openDryRuns({ workers, folders }: DryRunMeans, count = 1): Promise<DryRuns> {
  const root = await mkdtemp(join(tmpdir(), "headgate-map-"));
  const notes = new Map<string, (message: string) => void>();
  const log = createLog("info", { write: (line) => deliver(line, notes) });
  const late: string[] = [];
  const onLate = ({ words }: LateReadings) => void late.push(lateWords(words));
  const pool = createMappingPool({ ...workers, count }, folders, log, { writable: [root], onLate });
  let nth = 0;
  return {
    prepare: (name) => prepareBundled(pool, folders, name).catch(() => undefined),
    async map({ job, note }, signal, show) {
      nth += 1;
      const runId = `map${nth}`;
      const segmentPath = join(root, runId);
      notes.set(runId, note);
      try {
        const result = await onlyOne(pool.map([{ ...job, runId, segmentPath }], signal));
        const batches = result.status === "mapped" ? result.batches : [];
        return await show(result, { segmentPath, bodies: () => bodiesOf(segmentPath, batches) });
      } finally {
        notes.delete(runId);
        await rm(segmentPath, { force: true });
      }
    },
    late: () => late,
    async close() {
      await pool.close();
      await rm(root, { recursive: true, force: true });
    },
  };
}

/** Lines about a file go to its run; others, such as those about a process, to every run. */
function deliver(line: string, notes: ReadonlyMap<string, (message: string) => void>): void {
  const { run, msg } = JSON.parse(line) as { readonly run?: string; readonly msg?: unknown };
  for (const [runId, note] of notes) if (run === undefined || run === runId) note(String(msg));
}

async function* bodiesOf(segmentPath: string, batches: readonly BatchSlice[]): AsyncGenerator<Buffer> {
  for (const { offset, length } of batches) {
    const parts: Buffer[] = [];
    for await (const part of createReadStream(segmentPath, { start: offset, end: offset + length - 1 }))
      parts.push(part as Buffer);
    yield Buffer.concat(parts);
  }
}
