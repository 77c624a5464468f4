/** The side of the spool that hands parties of runs to its thread (`spool-party.ts`). What that does not do is done alone. */
import type { PackPart } from "../segment/layout.ts";
import { systemClock } from "../support/clock.ts";
import { DiskThread } from "../support/disk-thread.ts";
import type { SpoolAnswer, SpoolOrder } from "./spool-party.ts";

export class SpoolTogether {
  readonly #thread: DiskThread<SpoolOrder, SpoolAnswer>;

  constructor(root: string) {
    // Compiled, this file is JavaScript and so is the worker beside it.
    const file = import.meta.url.endsWith(".ts") ? "./spool-worker.ts" : "./spool-worker.js";
    this.#thread = new DiskThread({ module: new URL(file, import.meta.url), data: { root } });
  }

  /** See `Spool.publishPack`. */
  async publish(pack: PackPart): Promise<readonly boolean[]> {
    const answer = await this.#thread.ask({ kind: "publish", pack });
    return pack.paths.map((_, at) => answer?.[at] === true);
  }

  /** See `Spool.retireTogether`. */
  async retire(runIds: readonly string[], alone: (runId: string) => Promise<void>): Promise<void> {
    if (runIds.length === 0) return;
    const nowS = systemClock.now().epochMilliseconds / 1000;
    const answer = await this.#thread.ask({ kind: "retire", runIds, nowS });
    await eachAlone(
      runIds.filter((_, at) => answer?.[at] !== true),
      alone,
    );
  }

  close(): Promise<void> {
    return this.#thread.close();
  }
}

/** All of them, also when one fails; then throws what the first of those threw. */
async function eachAlone<Item>(items: readonly Item[], work: (item: Item) => Promise<void>): Promise<void> {
  const thrown: unknown[] = [];
  for (const item of items) await work(item).catch((fault: unknown) => thrown.push(fault));
  if (thrown.length > 0) throw thrown[0];
}
