/**
 * Lookup tables of the configuration, bound to runs by their content (invariant 10). The spool keeps each
 * content under its digest, so an edited table changes nothing for the runs in progress; runs claimed later
 * take the new content.
 */
import { createHash } from "node:crypto";
import { mkdir, readdir, readFile, rm, stat, utimes } from "node:fs/promises";
import { extname, join } from "node:path";
import type { Clock } from "#core/clock.ts";
import { writeDurably } from "#core/durable.ts";
import { HeadgateError, systemCode, TransientError, unlessMissing, wordsOf } from "#core/errors.ts";
import type { LookupFile, ZoneFile } from "#mapping/contract.ts";
import type { Ledger } from "../ledger/ledger.ts";
import type { Binding, BoundLookup } from "../model.ts";

/** A lookup table of the configuration, with an absolute path. */
export type ConfiguredLookup = Omit<BoundLookup, "format" | "digest" | "fault">;

/** The store that all nodes share. */
type SharedTables = Pick<NonNullable<Ledger["shared"]>["content"], "keep" | "find">;

export interface LookupStore {
  /**
   * Copies the tables as they are now to the spool. A table that cannot be read has a `fault`; only a mapper
   * that asks for it fails. Rejects with a `TransientError` when the spool cannot be written.
   */
  bind(): Promise<readonly BoundLookup[]>;
  /** Returns where the worker finds the tables that a run is bound to. */
  filesFor(binding: Binding): Promise<readonly LookupFile[]>;
  /** Keeps a text under its digest, which it returns. Rejects with a `TransientError` when the spool is full. */
  keepText(text: string): Promise<string>;
  /** The table of zones that a run is bound to, as `MapJob` takes it. */
  zonesFor(binding: Pick<Binding, "zones">): Promise<ZoneFile | null | undefined>;
  /** Removes contents that were last bound before this time. Returns how many. */
  prune(beforeMs: number): Promise<number>;
}

/** The limit of the reader of tables. */
const BYTES_MAX = 64_000_000;
/** Attempts to read a table that changes while it is read. */
const READS_MAX = 3;
/** The time of the last use is written this often. */
export const LOOKUP_TOUCH_MS = 3_600_000;

interface Known {
  readonly stamp: string;
  readonly digest: string;
  touchedMs: number;
}

interface ReadTable {
  readonly entry: Known;
  /** Null when the table is unchanged. */
  readonly bytes: Buffer | null;
}

export async function openLookupStore(
  configured: readonly ConfiguredLookup[],
  spoolRoot: string,
  clock: Clock,
  shared: SharedTables | null = null,
): Promise<LookupStore> {
  const folder = join(spoolRoot, "lookups");
  await mkdir(folder, { recursive: true });
  return new SpooledLookups(configured, folder, clock, shared);
}

class SpooledLookups implements LookupStore {
  readonly #configured: readonly ConfiguredLookup[];
  readonly #folder: string;
  readonly #clock: Clock;
  readonly #shared: SharedTables | null;
  readonly #known = new Map<string, Known>();
  #latest: Promise<unknown> = Promise.resolve();

  constructor(configured: readonly ConfiguredLookup[], folder: string, clock: Clock, shared: SharedTables | null) {
    this.#configured = configured;
    this.#folder = folder;
    this.#clock = clock;
    this.#shared = shared;
  }

  bind(): Promise<readonly BoundLookup[]> {
    // Calls run one after another, since several drops claim side by side.
    const bindAll = () => this.#bindAll();
    const mine = this.#latest.then(bindAll, bindAll);
    this.#latest = mine.catch(() => undefined); // Each caller handles its own.
    return mine;
  }

  async filesFor({ lookups = [] }: Binding): Promise<readonly LookupFile[]> {
    const files: LookupFile[] = [];
    for (const { digest, ...lookup } of lookups) {
      if (digest === null) {
        files.push({ ...lookup, fault: lookup.fault ?? "it could not be read" });
        continue;
      }
      const kept = this.#keptPath(digest);
      // When the spool was lost, or another node had it, the configured file serves if it is the same, which the
      // reader verifies.
      const isKept = (await sizeOf(kept)) !== null || (await this.#fetchShared(digest));
      files.push({ ...lookup, digest, path: isKept ? kept : lookup.path });
    }
    return files;
  }

  async keepText(text: string): Promise<string> {
    const bytes = Buffer.from(text);
    const digest = digestOf(bytes);
    await this.#store(digest, { bytes, isStale: true });
    return digest;
  }

  async zonesFor({ zones: digest }: Pick<Binding, "zones">): Promise<ZoneFile | null | undefined> {
    if (digest === null || digest === undefined) return digest;
    const path = this.#keptPath(digest);
    // The mapping reports a table that no node has.
    if ((await sizeOf(path)) === null) await this.#fetchShared(digest);
    return { path, digest };
  }

  async prune(beforeMs: number): Promise<number> {
    let removed = 0;
    for (const name of await readdir(this.#folder)) {
      const { mtimeMs } = await stat(join(this.#folder, name));
      if (mtimeMs >= beforeMs) continue;
      await rm(join(this.#folder, name), { force: true });
      removed += 1;
    }
    // A removed content is copied again when it is bound again.
    if (removed > 0) this.#known.clear();
    return removed;
  }

  #keptPath(digest: string): string {
    return join(this.#folder, digest);
  }

  async #bindAll(): Promise<readonly BoundLookup[]> {
    const bound: BoundLookup[] = [];
    for (const lookup of this.#configured) bound.push(await this.#bindOne(lookup));
    return bound;
  }

  async #bindOne(lookup: ConfiguredLookup): Promise<BoundLookup> {
    const format = extname(lookup.path).toLowerCase() === ".xlsx" ? "xlsx" : "csv";
    let found: ReadTable;
    try {
      found = await this.#readChanged(lookup.path);
    } catch (thrown) {
      this.#known.delete(lookup.path);
      return { ...lookup, format, digest: null, fault: readFault(lookup.path, thrown) };
    }
    // A failure here is the spool's: the file is claimed when the spool can be written again.
    await this.#keep(lookup.path, found);
    return { ...lookup, format, digest: found.entry.digest };
  }

  /** Reads a table, unless it is unchanged since the last time. */
  async #readChanged(path: string): Promise<ReadTable> {
    const stamp = await stampOf(path);
    const entry = this.#known.get(path);
    if (entry?.stamp === stamp) return { entry, bytes: null };
    const { bytes, stamp: read } = await readWhole(path);
    return { entry: { stamp: read, digest: digestOf(bytes), touchedMs: Number.NEGATIVE_INFINITY }, bytes };
  }

  async #keep(path: string, { entry, bytes }: ReadTable): Promise<void> {
    const nowMs = this.#clock.now().epochMilliseconds;
    const isStale = nowMs - entry.touchedMs >= LOOKUP_TOUCH_MS;
    try {
      await this.#store(entry.digest, { bytes, isStale });
    } catch (thrown) {
      this.#known.delete(path);
      throw thrown;
    }
    if (isStale) entry.touchedMs = nowMs;
    this.#known.set(path, entry);
  }

  async #store(
    digest: string,
    { bytes, isStale }: { readonly bytes: Buffer | null; readonly isStale: boolean },
  ): Promise<void> {
    const kept = this.#keptPath(digest);
    const nowMs = this.#clock.now().epochMilliseconds;
    try {
      const isKept = bytes === null || (await sizeOf(kept)) === bytes.length;
      if (!isKept) await writeDurably(kept, bytes);
      if (!isStale) return;
      await utimes(kept, nowMs / 1000, nowMs / 1000);
      // Before a run is bound to it: another node may have to resume the run.
      await this.#shared?.keep("lookup", digest, () => readFile(kept));
    } catch (cause) {
      if (cause instanceof HeadgateError) throw cause;
      throw new TransientError("HG-SPOOL-003", {
        operation: "keep lookup",
        subject: kept,
        message: `the table cannot be kept in the spool: ${wordsOf(cause)}`,
        cause,
      });
    }
  }

  /** Fetches another node's copy. Returns false when no node has one. */
  async #fetchShared(digest: string): Promise<boolean> {
    const bytes = (await this.#shared?.find("lookup", digest)) ?? null;
    if (bytes === null || digestOf(bytes) !== digest) return false;
    await writeDurably(this.#keptPath(digest), bytes);
    return true;
  }
}

function digestOf(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
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
  return (await unlessMissing(stat(path), null))?.size ?? null;
}

function readFault(path: string, thrown: unknown): string {
  return systemCode(thrown) === "ENOENT" ? `there is no file ${path}` : `${path} cannot be read: ${wordsOf(thrown)}`;
}
