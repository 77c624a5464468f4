/**
 * Observes the work in progress of a running gateway through its ledger: a migration gives way to it. It only reads,
 * so that it does not matter whether one process owns the ledger or nodes share it.
 */

import type { Clock } from "#core/clock.ts";
import type { Ledger } from "../../ledger/ledger.ts";
import type { Run } from "../../model.ts";
import { STARTED_STATES } from "../../states.ts";

export type WatchedLedger = Pick<Ledger, "runsIn" | "batches" | "close">;

/** Between two checks, in milliseconds. */
const CHECK_EVERY_MS = 1_000;
/** A run that has not moved for this time waits for something itself, or its gateway has stopped. */
const STALE_MS = 60_000;
const RUNS_SCANNED = 50;

export class LiveTraffic {
  readonly #open: () => Promise<WatchedLedger | null>;
  readonly #clock: Clock;
  readonly #stopping = new AbortController();
  #ledger: WatchedLedger | null = null;
  #services: ReadonlySet<string> = new Set();
  #fault: string | null = null;
  #loop: Promise<void> = Promise.resolve();

  /** `open` resolves with null where there is no ledger yet. */
  constructor(open: () => Promise<WatchedLedger | null>, clock: Clock) {
    this.#open = open;
    this.#clock = clock;
  }

  /**
   * Resolves after the first check. `onFault` is called when the ledger cannot be read, and with null when it can be
   * again.
   */
  async start(onFault: (words: string | null) => void): Promise<void> {
    await this.#check(onFault);
    this.#loop = this.#checkUntilStopped(onFault);
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

  async #checkUntilStopped(onFault: (words: string | null) => void): Promise<void> {
    while (await this.#clock.sleep(CHECK_EVERY_MS, this.#stopping.signal)) await this.#check(onFault);
  }

  async #check(onFault: (words: string | null) => void): Promise<void> {
    let fault: string | null = null;
    try {
      this.#ledger ??= await this.#open();
      this.#services = this.#ledger === null ? new Set() : await this.#busy(this.#ledger);
    } catch (thrown) {
      // A ledger that cannot be read must not stop a migration.
      fault = thrown instanceof Error ? thrown.message : String(thrown);
      this.#services = new Set();
    }
    if (fault !== this.#fault) onFault(fault);
    this.#fault = fault;
  }

  async #busy(ledger: WatchedLedger): Promise<ReadonlySet<string>> {
    const sinceMs = this.#clock.now().epochMilliseconds - STALE_MS;
    const busy = new Set<string>();
    for (const run of await ledger.runsIn(STARTED_STATES, { limit: RUNS_SCANNED }))
      if (!busy.has(run.binding.service) && (await moves(run, ledger, sinceMs))) busy.add(run.binding.service);
    return busy;
  }
}

async function moves(run: Run, ledger: WatchedLedger, sinceMs: number): Promise<boolean> {
  if (Date.parse(run.changedAt) >= sinceMs) return true;
  if (run.state !== "delivering") return false;
  // Of a large file only the batches change.
  return (await ledger.batches(run.id)).some(
    ({ acceptedAt }) => acceptedAt !== null && Date.parse(acceptedAt) >= sinceMs,
  );
}
