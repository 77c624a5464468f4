/**
 * Returns runs of this process to `fetched` whose step failed and left them in `mapping`, from which no stage takes
 * them: the ledger could not be written when the step was to do so.
 */
import type { Ledger } from "../ledger/ledger.ts";
import type { Run } from "../model.ts";

export class InterruptedMappings {
  readonly #ledger: Ledger;
  readonly #runs = new Set<string>();

  constructor(ledger: Ledger) {
    this.#ledger = ledger;
  }

  /** A step of the run failed, and perhaps left it in `mapping`. */
  note(runId: string): void {
    this.#runs.add(runId);
  }

  /**
   * Tries those that are due, and keeps each until it succeeds. `isDue`: no step of the run is in progress, and it
   * waits for nothing. Does not reject.
   */
  async resume(isDue: (runId: string) => boolean, onFault: (runId: string, thrown: unknown) => void): Promise<void> {
    for (const id of this.#runs) {
      if (!isDue(id)) continue;
      try {
        const run = await this.#ledger.run(id);
        if (run !== null) await mapAgain(run, "mapping was interrupted and is done again", this.#ledger);
        this.#runs.delete(id);
      } catch (thrown) {
        onFault(id, thrown);
      }
    }
  }
}

/** A run that is in `mapping`, and that this node may work on, is mapped again. */
export async function mapAgain(run: Run, detail: string, ledger: Ledger): Promise<void> {
  if (run.state !== "mapping" || (await ledger.fleet.holdRun(run))?.state !== "mapping") return;
  await ledger.advanceRun(run.id, "mapping", "fetched", { detail });
}
