/** Carries a migration out: the gateway over its files, until all of them are at rest or somebody stops it. */
import { createWriteStream } from "node:fs";
import { join } from "node:path";
import type { GatewayConfig } from "../../config/gateway-config.ts";
import { type FileEvent, type Gateway, startGateway } from "../../gateway.ts";
import type { Ledger } from "../../ledger/ledger.ts";
import { allRuns } from "../../migration/delivered.ts";
import type { HistoryFile } from "../../migration/listing.ts";
import type { RunState } from "../../model.ts";
import { systemClock } from "../../support/clock.ts";
import { createLog } from "../../support/log.ts";
import { type Amount, FILES_SHOWN, progressView, type Reached } from "./progress.ts";

export interface Ended {
  readonly how: "done" | "stopped";
  readonly gateway: Gateway;
  /** Also of what earlier calls did. */
  readonly reached: Reached;
}

const LOOK_EVERY_MS = 200;
const STOP_GRACE_MS = 30_000;
const AT_REST: readonly RunState[] = [
  "accepted",
  "confirmed",
  "empty",
  "discarded",
  "quarantined",
  "held",
  "cancelled",
  "opened",
];
const IN_WORK: readonly RunState[] = ["delivering", "mapped", "mapping", "fetched"];

/** `say` takes lines of progress; null: bars on the terminal. `work` is given the gateway while it still runs. */
export async function carryOut<Value>(
  config: GatewayConfig,
  files: readonly HistoryFile[],
  folder: string,
  stop: AbortSignal,
  say: ((line: string) => void) | null,
  work: (ended: Ended) => Promise<Value>,
): Promise<Value> {
  const file = createWriteStream(join(folder, "migration.log"), { flags: "a" });
  const log = createLog(config.log.level, file);
  const watch = new Watch(files);
  const gateway = await startGateway(config, { log, onEvent: (event) => watch.take(event) });
  try {
    await watch.recall(gateway.ledger);
    const view = progressView(watch.total, systemClock, say);
    let how: Ended["how"] | null = null;
    while (how === null) {
      view.show(await watch.look(gateway.ledger));
      if (stop.aborted) how = "stopped";
      else if (await gateway.isIdle()) how = "done";
      else await systemClock.sleep(LOOK_EVERY_MS, stop);
    }
    const reached = await watch.look(gateway.ledger, true);
    view.end(reached);
    return await work({ how, gateway, reached });
  } finally {
    // Batches under way are answered, and what is not sent yet waits for the next call.
    await gateway.stop(STOP_GRACE_MS);
    await new Promise((resolve) => file.end(resolve));
  }
}

/** What has come so far: of files by the events of the ledger, of points by its sums. */
class Watch {
  readonly #sizes: Map<string, number>;
  readonly #total: Amount;
  #files = 0;
  #bytes = 0;
  #last: Reached | null = null;
  #nextMs = 0;

  constructor(files: readonly HistoryFile[]) {
    this.#sizes = new Map(files.map(({ drop, path, size }) => [`${drop} ${path}`, size]));
    this.#total = { files: files.length, bytes: files.reduce((sum, { size }) => sum + size, 0) };
  }

  get total(): Amount {
    return this.#total;
  }

  /** What earlier calls have brought to rest. */
  async recall(ledger: Ledger): Promise<void> {
    for await (const { drop, path } of allRuns(ledger, AT_REST)) this.#rests(drop, path);
  }

  take({ what, drop, path }: FileEvent): void {
    if (ENDS.has(what)) this.#rests(drop, path);
  }

  #rests(drop: string, path: string): void {
    const key = `${drop} ${path}`;
    const size = this.#sizes.get(key);
    if (size === undefined) return;
    this.#sizes.delete(key);
    this.#files += 1;
    this.#bytes += size;
  }

  /** The sums cost a look at every run, so they are asked for the more seldom the more runs there are. */
  async look(ledger: Ledger, now = false): Promise<Reached> {
    const startMs = systemClock.monotonicMs();
    const files = { files: this.#files, bytes: this.#bytes };
    if (this.#last !== null && !now && startMs < this.#nextMs) return { ...this.#last, ...files };
    const { points } = await ledger.tally(EVER);
    const runs = await ledger.runsIn(IN_WORK, { limit: FILES_SHOWN });
    this.#last = { ...files, mapped: points.mapped, accepted: points.accepted, runs };
    this.#nextMs = startMs + (systemClock.monotonicMs() - startMs) * LOOK_SHARE;
    return this.#last;
  }
}

/** Looking may take the fiftieth part of the time. */
const LOOK_SHARE = 50;
const EVER = "1970-01-01T00:00:00Z";
const ENDS: ReadonlySet<string> = new Set([
  ...AT_REST.map((state) => `run.${state}`),
  "arrival.unmatched",
  "arrival.duplicate",
]);
