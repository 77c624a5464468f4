/** A ledger that counts each transition of a run in the metrics once it is committed. */
import type { Ledger } from "../ledger/ledger.ts";
import type { Run } from "../model.ts";

export function countedLedger(ledger: Ledger, count: (run: Run, mappedNow: boolean) => void): Ledger {
  return {
    ...ledger,
    async openRun(...args) {
      const run = await ledger.openRun(...args);
      count(run, false);
      return run;
    },
    async advanceRun(...args) {
      const run = await ledger.advanceRun(...args);
      count(run, false);
      return run;
    },
    async beginDelivery(...args) {
      const begun = await ledger.beginDelivery(...args);
      if (begun.run !== null) count(begun.run, false);
      return begun;
    },
    async resumeHeld(...args) {
      const run = await ledger.resumeHeld(...args);
      if (run !== null) count(run, false);
      return run;
    },
    async recordMapped(...args) {
      const run = await ledger.recordMapped(...args);
      count(run, true);
      return run;
    },
    async advanceRuns(advances) {
      const results = await ledger.advanceRuns(advances);
      for (const [at, { run }] of results.entries())
        if (run !== null)
          for (const { to } of advances[at]?.through ?? []) count({ ...run, state: to }, to === "mapped");
      return results;
    },
    async acceptBatch(...args) {
      const run = await ledger.acceptBatch(...args);
      if (run !== null) count(run, false);
      return run;
    },
    async recordOpened(...args) {
      const run = await ledger.recordOpened(...args);
      count(run, false);
      return run;
    },
  };
}
