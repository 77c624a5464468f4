/** The lists of the spool: a thread does the usual runs (`spool-disk-work.ts`), the spool the others, one by one. */

import { systemClock } from "../support/clock.ts";
import { Collector } from "../support/collector.ts";
import { type Settled, settleEach } from "../support/settled.ts";
import { besideModule } from "../support/threads/beside.ts";
import { DiskThread } from "../support/threads/disk-thread.ts";
import type { SpoolAnswer, SpoolOrder } from "./spool-disk-work.ts";

/** Runs of one list. */
const LIST_MAX = 1_000;

export class SpoolDisk {
  readonly #thread: DiskThread<SpoolOrder, SpoolAnswer>;
  readonly #retired: Collector<string, void>;

  /** `retireOne` does what the thread left. */
  constructor(root: string, retireOne: (runId: string) => Promise<void>) {
    this.#thread = new DiskThread({ module: besideModule(import.meta.url, "spool-worker"), data: { root } });
    this.#retired = new Collector((list) => this.#retire(list, retireOne), LIST_MAX);
  }

  /** See `Spool.retire`. Runs that are retired at one moment are one list. */
  retire(runIds: readonly string[]): Promise<readonly Settled<void>[]> {
    return settleEach(runIds, (runId) => this.#retired.add(runId));
  }

  async close(): Promise<void> {
    await this.#thread.close();
  }

  async #retire(
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
}
