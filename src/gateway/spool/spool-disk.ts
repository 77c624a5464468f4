/**
 * The threads of the spool. One does the usual runs of a list (`spool-disk-work.ts`), and the spool the others, one by
 * one; another compresses what was kept as it is (`kept-packer.ts`).
 */

import { systemClock } from "#core/clock.ts";
import { Collector } from "#core/collector.ts";
import { type Settled, settleEach } from "#core/settled.ts";
import { besideModule } from "#core/threads/beside.ts";
import { DiskThread } from "#core/threads/disk-thread.ts";
import type { PackAnswer, PackOrder } from "./kept-packer.ts";
import { isLarge } from "./kept-segments.ts";
import type { SpoolPlaces } from "./paths.ts";
import type { SpoolAnswer, SpoolOrder } from "./spool-disk-work.ts";

/** Runs of one list. */
const LIST_MAX = 1_000;
/** Milliseconds after which the thread that compresses ends: there is rarely another file soon. */
const PACKING_IDLE_MS = 100;

export class SpoolDisk {
  readonly #thread: DiskThread<SpoolOrder, SpoolAnswer>;
  readonly #packer: DiskThread<PackOrder, PackAnswer>;
  /** Runs with kept files that wait to be compressed. */
  readonly unpacked = new Set<string>();
  readonly #places: SpoolPlaces;
  readonly #retired: Collector<string, void>;

  /** `retireOne` does what the thread left. */
  constructor(places: SpoolPlaces, retireOne: (runId: string) => Promise<void>) {
    this.#places = places;
    this.#thread = new DiskThread({
      module: besideModule(import.meta.url, "spool-worker"),
      data: { root: places.root },
    });
    const packer = besideModule(import.meta.url, "packer-worker");
    this.#packer = new DiskThread({ module: packer, data: null, idleMs: PACKING_IDLE_MS });
    this.#retired = new Collector((list) => this.#retire(list, retireOne), LIST_MAX);
  }

  /** See `Spool.retire`. Runs that are retired at one moment are one list. */
  retire(runIds: readonly string[]): Promise<readonly Settled<void>[]> {
    return settleEach(runIds, (runId) => this.#retired.add(runId));
  }

  /** See `Spool.pack`. */
  async pack(signal: AbortSignal): Promise<void> {
    for (const runId of this.unpacked) {
      const answer = await this.#packer.ask({ kept: this.#places.keptOf(runId) }, signal);
      if (answer === null) return;
      if (answer.fault !== null) throw new Error(answer.fault);
      this.unpacked.delete(runId);
    }
  }

  async close(): Promise<void> {
    await Promise.all([this.#thread.close(), this.#packer.close()]);
  }

  async #retire(
    runIds: readonly string[],
    retireOne: (runId: string) => Promise<void>,
  ): Promise<readonly Settled<void>[]> {
    const nowS = systemClock.now().epochMilliseconds / 1000;
    // A run alone is worth no message to the thread.
    const isAlone = runIds.length < 2;
    const answer = isAlone ? null : await this.#thread.ask({ runIds, nowS });
    // Of a list that the thread did not end, files may be kept by now, and large.
    const large = answer?.large ?? (isAlone ? runIds.filter((runId) => isLarge(runId, this.#places)) : runIds);
    const settled: Settled<void>[] = [];
    for (const [at, runId] of runIds.entries()) {
      const [one] = await Promise.allSettled([answer?.done[at] === true ? undefined : retireOne(runId)]);
      settled.push(one);
    }
    for (const runId of large) this.unpacked.add(runId);
    return settled;
  }
}
