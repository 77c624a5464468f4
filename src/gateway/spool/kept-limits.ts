/** Removes kept files beyond their age or size. */
import { readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { isUnpacked } from "./kept-packer.ts";
import type { SpoolOptions } from "./options.ts";
import { PART } from "./paths.ts";
import { shareOf } from "./usage.ts";

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
export async function pruneKept(
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
