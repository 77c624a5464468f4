/**
 * Tracks the progress of a migration: files by the events of the ledger, points by its sums, and the reasons of
 * waits.
 */

import { systemClock } from "#core/clock.ts";
import type { FileEvent, Gateway } from "../../gateway.ts";
import type { Ledger } from "../../ledger/ledger.ts";
import { runStatesThat, STARTED_STATES } from "../../states.ts";
import type { HistoryFile } from "../plan/history-files.ts";
import { allRuns } from "../report/delivered.ts";
import type { ErrorShare } from "./error-share.ts";
import { type Amount, FILES_SHOWN, type Reached } from "./progress.ts";
import type { Throttle } from "./throttle.ts";

/** Runs in these states do not change without a command, except to be confirmed. */
const ENDED = runStatesThat(({ isOpen }) => !isOpen);
/** Reading the progress may take one fiftieth of the time. */
const READ_SHARE = 50;
const EVER = "1970-01-01T00:00:00Z";
const ENDS: ReadonlySet<string> = new Set([
  ...ENDED.map((state) => `run.${state}`),
  "arrival.unmatched",
  "arrival.duplicate",
]);

export class Watch {
  readonly #sizes: Map<string, number>;
  readonly #total: Amount;
  readonly #errors: ErrorShare | null;
  /** Runs that came to rest, and were not counted yet. */
  #ended: string[] = [];
  #files = 0;
  #bytes = 0;
  #last: Reached | null = null;
  #nextMs = 0;

  constructor(files: readonly HistoryFile[], errors: ErrorShare | null) {
    this.#errors = errors;
    this.#sizes = new Map(files.map(({ drop, path, size }) => [`${drop} ${path}`, size]));
    this.#total = { files: files.length, bytes: files.reduce((sum, { size }) => sum + size, 0) };
  }

  get total(): Amount {
    return this.#total;
  }

  /** Loads the runs that earlier calls brought to rest. */
  async recall(ledger: Ledger): Promise<void> {
    for await (const { drop, path } of allRuns(ledger, ENDED)) this.#rests(drop, path);
  }

  take({ what, drop, path, runId }: FileEvent): void {
    if (!ENDS.has(what)) return;
    this.#rests(drop, path);
    if (runId !== null && this.#errors !== null) this.#ended.push(runId);
  }

  /** Runs came to rest that are not counted into the share of errors yet. */
  get isUndecided(): boolean {
    return this.#ended.length > 0;
  }

  #rests(drop: string, path: string): void {
    const key = `${drop} ${path}`;
    const size = this.#sizes.get(key);
    if (size === undefined) return;
    this.#sizes.delete(key);
    this.#files += 1;
    this.#bytes += size;
  }

  /** Counts ended runs, and returns why no more files should be taken, in words, or null. Must not run concurrently. */
  async tooMuch(ledger: Pick<Ledger, "run">): Promise<string | null> {
    if (this.#errors === null) return null;
    // A run that cannot be read is counted by the next call.
    for (let id = this.#ended[0]; id !== undefined; id = this.#ended[0]) {
      const run = await ledger.run(id);
      if (run !== null) this.#errors.add(run);
      this.#ended.shift();
    }
    return this.#errors.reason;
  }

  /** The sums read every run, so they are taken less often the more runs there are. */
  async look(gateway: Gateway, throttle: Throttle, now = false): Promise<Reached> {
    const startMs = systemClock.monotonicMs();
    const files = {
      files: this.#files,
      bytes: this.#bytes,
      waits: waitsOf(gateway, throttle),
      retries: throttle.retries,
    };
    if (this.#last !== null && !now && startMs < this.#nextMs) return { ...this.#last, ...files };
    const { ledger } = gateway;
    const { points, files: standings } = await ledger.tally(EVER);
    const runs = await ledger.runsIn(STARTED_STATES, { limit: FILES_SHOWN });
    this.#last = {
      ...files,
      mapped: points.mapped,
      accepted: points.accepted,
      rejected: points.rejected,
      held: standings.held ?? 0,
      runs: runs.map((run) => ({ ...run, waits: gateway.waitReason(run) ?? null })),
    };
    this.#nextMs = startMs + (systemClock.monotonicMs() - startMs) * READ_SHARE;
    return this.#last;
  }
}

function waitsOf(gateway: Gateway, throttle: Throttle): readonly string[] {
  const services = [...gateway.serviceWaits()].map(([name, reason]) => `the service ${name}: ${reason}`);
  return [...services, ...throttle.waits()];
}
