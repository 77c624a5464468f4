/**
 * What a running gateway has on its way, as its ledger tells: a migration lets that go first. It looks from outside, reading only, so that
 * it does not matter whether one process owns the ledger or nodes share it.
 */
import type { Ledger } from "../ledger/ledger.ts";
import type { Run } from "../model.ts";
import { STARTED_STATES } from "../states.ts";
import type { Clock } from "../support/clock.ts";

export type WatchedLedger = Pick<Ledger, "runsIn" | "batches" | "close">;

/** Between two looks, in milliseconds. */
const LOOK_EVERY_MS = 1_000;
/** What has not moved for so long waits for something itself, or nobody leads it any more. */
const STALE_MS = 60_000;
const LOOKED_AT = 50;

export class LiveTraffic {
  readonly #open: () => Promise<WatchedLedger | null>;
  readonly #clock: Clock;
  readonly #stopping = new AbortController();
  #ledger: WatchedLedger | null = null;
  #services: ReadonlySet<string> = new Set();
  #fault: string | null = null;
  #loop: Promise<void> = Promise.resolve();

  /** `open` answers null where there is no ledger yet. */
  constructor(open: () => Promise<WatchedLedger | null>, clock: Clock) {
    this.#open = open;
    this.#clock = clock;
  }

  /** Resolves after the first look. `onFault` is told when the ledger cannot be read, and when it can be again. */
  async start(onFault: (words: string | null) => void): Promise<void> {
    await this.#look(onFault);
    this.#loop = this.#lookOn(onFault);
  }

  isLive(service: string): boolean {
    return this.#services.has(service);
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#loop;
    await this.#ledger?.close();
    this.#ledger = null;
  }

  async #lookOn(onFault: (words: string | null) => void): Promise<void> {
    while (await this.#clock.sleep(LOOK_EVERY_MS, this.#stopping.signal)) await this.#look(onFault);
  }

  async #look(onFault: (words: string | null) => void): Promise<void> {
    let fault: string | null = null;
    try {
      this.#ledger ??= await this.#open();
      this.#services = this.#ledger === null ? new Set() : await this.#busy(this.#ledger);
    } catch (thrown) {
      // A ledger that cannot be read must not keep a migration from going.
      fault = thrown instanceof Error ? thrown.message : String(thrown);
      this.#services = new Set();
    }
    if (fault !== this.#fault) onFault(fault);
    this.#fault = fault;
  }

  async #busy(ledger: WatchedLedger): Promise<ReadonlySet<string>> {
    const sinceMs = this.#clock.now().epochMilliseconds - STALE_MS;
    const busy = new Set<string>();
    for (const run of await ledger.runsIn(STARTED_STATES, { limit: LOOKED_AT }))
      if (!busy.has(run.binding.service) && (await moves(run, ledger, sinceMs)))
        busy.add(run.binding.service);
    return busy;
  }
}

async function moves(run: Run, ledger: WatchedLedger, sinceMs: number): Promise<boolean> {
  if (Date.parse(run.changedAt) >= sinceMs) return true;
  if (run.state !== "delivering") return false;
  // Of a large file only its batches move.
  return (await ledger.batches(run.id)).some(
    ({ acceptedAt }) => acceptedAt !== null && Date.parse(acceptedAt) >= sinceMs,
  );
}
