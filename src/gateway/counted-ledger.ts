/** A ledger that counts each transition of a run in the metrics once it is committed. */
import type { Ledger } from "./ledger/ledger.ts";
import type { Run } from "./model.ts";

export function countedLedger(ledger: Ledger, count: (run: Run, mappedNow: boolean) => void): Ledger {
  const counted =
    <Args extends unknown[], Moved extends Run | null>(move: (...args: Args) => Promise<Moved>, mappedNow = false) =>
    async (...args: Args): Promise<Moved> => {
      const run = await move(...args);
      if (run !== null) count(run, mappedNow);
      return run;
    };
  return {
    ...ledger,
    openRun: counted(ledger.openRun),
    async openRuns(openings) {
      const opened = await ledger.openRuns(openings);
      for (const { run } of opened) if (run !== null) count(run, false);
      return opened;
    },
    advanceRun: counted(ledger.advanceRun),
    async beginDelivery(...args) {
      const begun = await ledger.beginDelivery(...args);
      if (begun.run !== null) count(begun.run, false);
      return begun;
    },
    resumeHeld: counted(ledger.resumeHeld),
    async replaceHeld(...args) {
      const replaced = await ledger.replaceHeld(...args);
      for (const run of [replaced.held, replaced.run]) count(run, false);
      return replaced;
    },
    recordMapped: counted(ledger.recordMapped, true),
    async advanceRuns(advances) {
      const results = await ledger.advanceRuns(advances);
      for (const [at, { run }] of results.entries())
        if (run !== null)
          for (const { to } of advances[at]?.through ?? []) count({ ...run, state: to }, to === "mapped");
      return results;
    },
    acceptBatch: counted(ledger.acceptBatch),
    recordOpened: counted(ledger.recordOpened),
  };
}
