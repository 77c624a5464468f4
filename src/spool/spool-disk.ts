/** The lists of the spool: a thread does the usual runs (`spool-disk-work.ts`), the spool the others, one by one. */
import { systemClock } from "../support/clock.ts";
import { DiskThread } from "../support/disk-thread.ts";
import type { Settled } from "../support/settled.ts";
import type { SpoolAnswer, SpoolOrder } from "./spool-disk-work.ts";

export class SpoolDisk {
  readonly #thread: DiskThread<SpoolOrder, SpoolAnswer>;

  constructor(root: string) {
    // Compiled, this file is JavaScript and so is the worker beside it.
    const file = import.meta.url.endsWith(".ts") ? "./spool-worker.ts" : "./spool-worker.js";
    this.#thread = new DiskThread({ module: new URL(file, import.meta.url), data: { root } });
  }

  /** See `Spool.retire`; `retireOne` does what the thread left. */
  async retire(
    runIds: readonly string[],
    retireOne: (runId: string) => Promise<void>,
  ): Promise<readonly Settled<void>[]> {
    const nowS = systemClock.now().epochMilliseconds / 1000;
    // A run alone is worth no message to the thread.
    const answer = runIds.length < 2 ? null : await this.#thread.ask({ runIds, nowS });
    const settled: Settled<void>[] = [];
    for (const [at, runId] of runIds.entries()) {
      const [one] = await Promise.allSettled([answer?.[at] === true ? undefined : retireOne(runId)]);
      settled.push(one);
    }
    return settled;
  }

  close(): Promise<void> {
    return this.#thread.close();
  }
}
