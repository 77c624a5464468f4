/** A wait that ends while the ledger is read for another stage holds its run up no longer. */
import { expect, it, vi } from "vitest";
import { systemClock } from "#core/clock.ts";
import { silentLog } from "#core/log.ts";
import type { Ledger } from "#gateway/ledger/ledger.ts";
import type { Run, RunState } from "#gateway/model.ts";
import { Scheduler } from "#gateway/runs/scheduler.ts";
import type { RunSteps } from "#gateway/runs/steps/steps.ts";

it("takes the next step of a run whose wait ended during a scan", async () => {
  const run = { id: "r", drop: "in", path: "a", lane: "l", state: "mapped", size: 1, binding: {} } as unknown as Run;
  // A step begins with a fault that cannot be recorded, so that the run waits for a minute.
  const attempt = vi.fn(async () => Promise.reject(new Error("the ledger is broken")));
  let intake = Promise.resolve();
  const reads = vi.fn();
  const groupsOf = async (states: readonly RunState[]) => {
    if (states.includes("claimed")) {
      reads();
      await intake;
    }
    return states.includes(run.state) ? [run.lane] : [];
  };
  const runsIn: Ledger["runsIn"] = async (_states, filter) => (filter?.except?.includes(run.id) === true ? [] : [run]);
  const scheduler = new Scheduler(
    {
      ledger: { groupsOf, runsIn, run: attempt },
      clock: systemClock,
      log: silentLog,
      reach: { retryNow: () => undefined },
    } as unknown as RunSteps,
    { intakeConcurrency: 1, intakePerDrop: null, intakeSpare: 0, deliveryConcurrency: 1 },
  );
  scheduler.wake();
  await expect.poll(() => scheduler.waitReason(run)).toBeDefined();
  const attempts = attempt.mock.calls.length;
  await scheduler.pulse();
  expect(attempt).toHaveBeenCalledTimes(attempts);
  const gate = Promise.withResolvers<void>();
  intake = gate.promise;
  const before = reads.mock.calls.length;
  scheduler.wake();
  await expect.poll(() => reads.mock.calls.length).toBe(before + 1);
  scheduler.wake(run.id);
  gate.resolve();
  // Without its end, the wait lasts a minute.
  await expect.poll(() => attempt.mock.calls.length, { timeout: 20_000 }).toBeGreaterThan(attempts);
  await scheduler.stop();
});
