/** The mapping services of the gateway: the versions of mappers, and the pool that runs them. */
import { join } from "node:path";
import type { Clock } from "#core/clock.ts";
import type { Logger } from "#core/log.ts";
import type { MappingPool } from "../contract.ts";
import type { MappersOptions, WorkersOptions } from "../options.ts";
import { prepareBundled } from "./bundled.ts";
import { createInspector } from "./inspector.ts";
import type { SharedMappers } from "./mapper-copies.ts";
import { KeptVersions } from "./mapper-versions.ts";
import { createMappingPool, type PoolMeans } from "./pool.ts";

/** A changed mapper that hangs does not keep the gateway from starting: the former version continues. */
const FIRST_LOOK_MS = 10_000;

export interface OpenMapping {
  readonly versions: KeptVersions;
  readonly pool: MappingPool;
  /**
   * Starts the process of one of these mappers while the gateway starts, if it comes with Headgate: others are checked
   * first.
   */
  prepare(names: readonly string[]): void;
  /**
   * Checks the mappers that triggers name, and checks them again whenever they change; a further call
   * replaces them. Waits for the first check, for a limited time.
   */
  start(names: readonly string[]): Promise<void>;
  close(): Promise<void>;
}

export interface MappingMeans {
  readonly log: Logger;
  readonly clock: Clock;
  /** The store in which other nodes find the versions that runs are bound to; absent without other nodes. */
  readonly ledger?: { readonly shared: { readonly content: SharedMappers } | null };
  readonly onLate?: PoolMeans["onLate"];
  /** See `PoolMeans`. */
  readonly spare?: number;
}

/** The folders that mappers may write, and that of the versions. */
export interface MappingPlace {
  readonly root: string;
}

export function openMapping(
  options: { readonly workers: WorkersOptions; readonly mappers: MappersOptions },
  { root }: MappingPlace,
  { log, clock, ledger, onLate, spare = 0 }: MappingMeans,
): OpenMapping {
  const { folders } = options.mappers;
  const inspector = createInspector();
  const versions = new KeptVersions({
    folders,
    root: join(root, "mappers"),
    inspector,
    log,
    clock,
    shared: ledger?.shared?.content,
  });
  const pool = createMappingPool(options.workers, folders, log, {
    locate: (name, digest) => versions.locate(name, digest),
    expected: (name, digest) => versions.expected(name, digest),
    writable: [root],
    spare,
    ...(onLate === undefined ? {} : { onLate }),
  });
  let stopWatching: (() => Promise<void>) | null = null;
  /** Read at each check. */
  const watched: string[] = [];
  /**
   * Files that arrived while the gateway was stopped are mapped as soon as they are listed: a process starts
   * meanwhile, and ends if it has no task.
   */
  async function check(names: readonly string[]): Promise<void> {
    await versions.refresh(names);
    for (const name of names) {
      // The fault of a mapper was reported already.
      const mapper = await versions.here(name).catch(() => null);
      if (mapper !== null) return void pool.prepare(mapper);
    }
  }
  return {
    versions,
    pool,
    prepare([name]) {
      // The check of the mappers reports a fault.
      if (name !== undefined) prepareBundled(pool, folders, name).catch(() => undefined);
    },
    async start(names) {
      watched.splice(0, watched.length, ...names);
      const enough = new AbortController();
      const checked = check(names).finally(() => enough.abort());
      await clock.sleep(FIRST_LOOK_MS, enough.signal);
      stopWatching ??= versions.watch(watched, checked);
    },
    async close() {
      await inspector.close();
      await stopWatching?.();
      await pool.close();
    },
  };
}
