/**
 * Lookup tables of the configuration, bound to runs by their content (invariant 10). What a run is bound to lies in the spool under its
 * digest, so a table that is edited changes nothing for the runs under way; those claimed after it take the new content.
 */
import { createHash } from "node:crypto";
import { mkdir, readdir, readFile, rm, stat, utimes } from "node:fs/promises";
import { extname, join } from "node:path";
import type { LookupFile } from "../mapping/mapping.ts";
import type { Binding, BoundLookup } from "../model.ts";
import type { Clock } from "../support/clock.ts";
import { writeDurably } from "../support/durable.ts";
import { systemCode, wordsOf } from "../support/errors.ts";

/** As the configuration has it, with an absolute path. */
export type ConfiguredLookup = Omit<BoundLookup, "format" | "digest" | "fault">;

export interface LookupStore {
  /** The tables as they are now, each copied to the spool. One that cannot be read says why; only a mapper that asks for it fails. */
  bind(): Promise<readonly BoundLookup[]>;
  /** Where the worker finds what a run is bound to. */
  filesFor(binding: Binding): Promise<readonly LookupFile[]>;
  /** Removes what was last bound before this time. Answers how many. */
  prune(beforeMs: number): Promise<number>;
}

/** As the reader of tables has it. */
const BYTES_MAX = 64_000_000;
/** How often a table is read again when it changes while it is read. */
const READS_MAX = 3;
/** The time of the last use is written this often. */
const TOUCH_MS = 3_600_000;

interface Known {
  readonly stamp: string;
  readonly digest: string;
  touchedMs: number;
}

export async function openLookupStore(
  configured: readonly ConfiguredLookup[],
  spoolRoot: string,
  clock: Clock,
): Promise<LookupStore> {
  const folder = join(spoolRoot, "lookups");
  await mkdir(folder, { recursive: true });
  const keptPath = (digest: string) => join(folder, digest);
  const known = new Map<string, Known>();

  async function keep(path: string): Promise<string> {
    const nowMs = clock.now().epochMilliseconds;
    const stamp = await stampOf(path);
    let entry = known.get(path);
    if (entry?.stamp !== stamp) {
      const { bytes, stamp: read } = await readWhole(path);
      const digest = createHash("sha256").update(bytes).digest("hex");
      if ((await sizeOf(keptPath(digest))) !== bytes.length) await writeDurably(keptPath(digest), bytes);
      entry = { stamp: read, digest, touchedMs: Number.NEGATIVE_INFINITY };
      known.set(path, entry);
    }
    if (nowMs - entry.touchedMs >= TOUCH_MS) {
      await utimes(keptPath(entry.digest), nowMs / 1000, nowMs / 1000);
      entry.touchedMs = nowMs;
    }
    return entry.digest;
  }

  return {
    async bind() {
      const bound: BoundLookup[] = [];
      for (const lookup of configured) {
        const format = extname(lookup.path).toLowerCase() === ".xlsx" ? "xlsx" : "csv";
        try {
          bound.push({ ...lookup, format, digest: await keep(lookup.path) });
        } catch (thrown) {
          known.delete(lookup.path);
          bound.push({ ...lookup, format, digest: null, fault: readFault(lookup.path, thrown) });
        }
      }
      return bound;
    },
    async filesFor({ lookups = [] }) {
      const files: LookupFile[] = [];
      for (const { digest, ...lookup } of lookups) {
        if (digest === null) {
          files.push({ ...lookup, fault: lookup.fault ?? "it could not be read" });
          continue;
        }
        // A spool that was lost, or another node: the configured file serves as long as it is the same, which the reader verifies.
        const isKept = (await sizeOf(keptPath(digest))) !== null;
        files.push({ ...lookup, digest, path: isKept ? keptPath(digest) : lookup.path });
      }
      return files;
    },
    async prune(beforeMs) {
      let removed = 0;
      for (const name of await readdir(folder)) {
        const { mtimeMs } = await stat(join(folder, name));
        if (mtimeMs >= beforeMs) continue;
        await rm(join(folder, name), { force: true });
        removed += 1;
      }
      // What went is copied again when it is bound again.
      if (removed > 0) known.clear();
      return removed;
    },
  };
}

async function stampOf(path: string): Promise<string> {
  const { size, mtimeMs, ino } = await stat(path);
  if (size > BYTES_MAX) throw new Error(`it has ${size} bytes, more than the limit of ${BYTES_MAX}`);
  return `${size} ${mtimeMs} ${ino}`;
}

/** A table that is being written is read again. */
async function readWhole(path: string): Promise<{ readonly bytes: Buffer; readonly stamp: string }> {
  for (let reads = 1; ; reads += 1) {
    const stamp = await stampOf(path);
    const bytes = await readFile(path);
    if ((await stampOf(path)) === stamp || reads === READS_MAX) return { bytes, stamp };
  }
}

async function sizeOf(path: string): Promise<number | null> {
  try {
    return (await stat(path)).size;
  } catch (thrown) {
    if (systemCode(thrown) === "ENOENT") return null;
    throw thrown;
  }
}

function readFault(path: string, thrown: unknown): string {
  return systemCode(thrown) === "ENOENT"
    ? `there is no file ${path}`
    : `${path} cannot be read: ${wordsOf(thrown)}`;
}
