/** What the gateway needs of mapping, joined: the versions of mappers, and the pool that runs them. */
import { join } from "node:path";
import type { MappingPool } from "../mapping/contract.ts";
import type { MappersOptions, WorkersOptions } from "../mapping/options.ts";
import type { Clock } from "../support/clock.ts";
import type { Logger } from "../support/log.ts";
import { createInspector } from "./inspector.ts";
import type { SharedMappers } from "./mapper-copies.ts";
import { KeptVersions } from "./mapper-versions.ts";
import { createMappingPool } from "./pool.ts";

/** A changed mapper that hangs keeps no gateway from starting: the version before it goes on. */
const FIRST_LOOK_MS = 10_000;

export interface OpenMapping {
  readonly versions: KeptVersions;
  readonly pool: MappingPool;
  /** Looks at the mappers that triggers name, and again whenever they change; called again, at these instead. Waits for the first look, but not for ever. */
  start(names: readonly string[]): Promise<void>;
  close(): Promise<void>;
}

export interface MappingMeans {
  readonly log: Logger;
  readonly clock: Clock;
  /** Where other nodes find the versions that runs are bound to; nowhere when there are none. */
  readonly ledger?: { readonly shared: { readonly content: SharedMappers } | null };
}

/** Where mappers may write, and their versions are kept. */
export interface MappingPlace {
  readonly root: string;
}

export function openMapping(
  options: { readonly workers: WorkersOptions; readonly mappers: MappersOptions },
  { root }: MappingPlace,
  { log, clock, ledger }: MappingMeans,
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
    writable: [root],
  });
  let stopWatching: (() => Promise<void>) | null = null;
  /** Read anew at each look. */
  const watched: string[] = [];
  /** What came while nobody was here is mapped as soon as it is listed: a process starts meanwhile, and ends if there is nothing for it. */
  async function lookAt(names: readonly string[]): Promise<void> {
    await versions.refresh(names);
    for (const name of names) {
      // What is wrong with one was said.
      const mapper = await versions.here(name).catch(() => null);
      if (mapper !== null) return pool.prepare(mapper);
    }
  }
  return {
    versions,
    pool,
    async start(names) {
      watched.splice(0, watched.length, ...names);
      const enough = new AbortController();
      const looked = lookAt(names).finally(() => enough.abort());
      await clock.sleep(FIRST_LOOK_MS, enough.signal);
      stopWatching ??= versions.watch(watched, looked);
    },
    async close() {
      await inspector.close();
      await stopWatching?.();
      await pool.close();
    },
  };
}
