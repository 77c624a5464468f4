/**
 * Lookup tables of the configuration, bound to runs by their content (invariant 10). What a run is bound to lies in the spool under its
 * digest, so a table that is edited changes nothing for the runs under way; those claimed after it take the new content.
 */
import { createHash } from "node:crypto";
import { mkdir, readdir, readFile, rm, stat, utimes } from "node:fs/promises";
import { extname, join } from "node:path";
import type { Ledger } from "../ledger/ledger.ts";
import type { LookupFile } from "../mapping/contract.ts";
import type { Binding, BoundLookup } from "../model.ts";
import type { Clock } from "../support/clock.ts";
import { writeDurably } from "../support/durable.ts";
import { HeadgateError, systemCode, TransientError, wordsOf } from "../support/errors.ts";

/** As the configuration has it, with an absolute path. */
export type ConfiguredLookup = Omit<BoundLookup, "format" | "digest" | "fault">;

/** Where nodes keep what any of them may need. */
type SharedTables = Pick<NonNullable<Ledger["shared"]>["content"], "keep" | "find">;

export interface LookupStore {
  /**
   * The tables as they are now, each copied to the spool. One that cannot be read says why; only a mapper that asks for it fails. Rejects
   * with a `TransientError` when the spool cannot be written.
   */
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
  shared: SharedTables | null = null,
): Promise<LookupStore> {
  const folder = join(spoolRoot, "lookups");
  await mkdir(folder, { recursive: true });
  const keptPath = (digest: string) => join(folder, digest);
  const known = new Map<string, Known>();

  let latest: Promise<unknown> = Promise.resolve();

  /** Reads a table that changed since it was read last. */
  async function look(path: string): Promise<{ readonly entry: Known; readonly bytes: Buffer | null }> {
    const stamp = await stampOf(path);
    const entry = known.get(path);
    if (entry?.stamp === stamp) return { entry, bytes: null };
    const { bytes, stamp: read } = await readWhole(path);
    const digest = createHash("sha256").update(bytes).digest("hex");
    return { entry: { stamp: read, digest, touchedMs: Number.NEGATIVE_INFINITY }, bytes };
  }

  async function keep(path: string, entry: Known, bytes: Buffer | null): Promise<void> {
    const nowMs = clock.now().epochMilliseconds;
    try {
      const isKept = bytes === null || (await sizeOf(keptPath(entry.digest))) === bytes.length;
      if (!isKept) await writeDurably(keptPath(entry.digest), bytes);
      if (nowMs - entry.touchedMs >= TOUCH_MS) {
        await utimes(keptPath(entry.digest), nowMs / 1000, nowMs / 1000);
        // Before a run is bound to it: another node may have to go on with the run.
        await shared?.keep("lookup", entry.digest, () => readFile(keptPath(entry.digest)));
      }
    } catch (cause) {
      known.delete(path);
      if (cause instanceof HeadgateError) throw cause;
      throw new TransientError("HG-SPOOL-003", {
        operation: "keep lookup",
        subject: path,
        message: `the lookup table cannot be kept in the spool: ${wordsOf(cause)}`,
        cause,
      });
    }
    if (nowMs - entry.touchedMs >= TOUCH_MS) entry.touchedMs = nowMs;
    known.set(path, entry);
  }

  /** Another node's copy. False when it is not to be had. */
  async function bring(digest: string): Promise<boolean> {
    const bytes = (await shared?.find("lookup", digest)) ?? null;
    if (bytes === null || createHash("sha256").update(bytes).digest("hex") !== digest) return false;
    await writeDurably(keptPath(digest), bytes);
    return true;
  }

  async function bindOne(lookup: ConfiguredLookup): Promise<BoundLookup> {
    const format = extname(lookup.path).toLowerCase() === ".xlsx" ? "xlsx" : "csv";
    let found: Awaited<ReturnType<typeof look>>;
    try {
      found = await look(lookup.path);
    } catch (thrown) {
      known.delete(lookup.path);
      return { ...lookup, format, digest: null, fault: readFault(lookup.path, thrown) };
    }
    // Not the table's fault: the file is claimed when the spool can be written again.
    await keep(lookup.path, found.entry, found.bytes);
    return { ...lookup, format, digest: found.entry.digest };
  }

  async function bindAll(): Promise<readonly BoundLookup[]> {
    const bound: BoundLookup[] = [];
    for (const lookup of configured) bound.push(await bindOne(lookup));
    return bound;
  }

  return {
    bind() {
      // One after another, since several drops claim side by side.
      const mine = latest.then(bindAll, bindAll);
      latest = mine.catch(() => undefined); // Each caller handles its own.
      return mine;
    },
    async filesFor({ lookups = [] }) {
      const files: LookupFile[] = [];
      for (const { digest, ...lookup } of lookups) {
        if (digest === null) {
          files.push({ ...lookup, fault: lookup.fault ?? "it could not be read" });
          continue;
        }
        // A spool that was lost, or another node: the configured file serves as long as it is the same, which the reader verifies.
        const isKept = (await sizeOf(keptPath(digest))) !== null || (await bring(digest));
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
