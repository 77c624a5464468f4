/** When the scheduler scans while much is in progress, and when little is left. */
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { systemClock } from "#core/clock.ts";
import { CROWD, WakeTimer } from "#gateway/runs/scheduler.ts";

beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] }));
afterEach(() => void vi.useRealTimers());

async function begun(): Promise<{ readonly timer: WakeTimer; readonly scanned: () => boolean }> {
  const timer = new WakeTimer(systemClock, () => undefined);
  await timer.turn(0);
  let isOver = false;
  void timer.turn(CROWD).then(() => {
    isOver = true;
  });
  return { timer, scanned: () => isOver };
}

it("scans some time after the last scan while many steps are in progress", async () => {
  const { timer, scanned } = await begun();
  timer.stepEnded(CROWD);
  await vi.advanceTimersByTimeAsync(70);
  expect(scanned()).toBe(false);
  await vi.advanceTimersByTimeAsync(10);
  expect(scanned()).toBe(true);
});

it("scans at once when few of them are left", async () => {
  const { timer, scanned } = await begun();
  timer.stepEnded(CROWD - 1);
  await vi.advanceTimersByTimeAsync(0);
  expect(scanned()).toBe(true);
  expect(vi.getTimerCount()).toBe(0);
});

it("does not keep a scheduler that stops waiting", async () => {
  const { timer, scanned } = await begun();
  timer.cancel();
  await vi.advanceTimersByTimeAsync(0);
  expect(scanned()).toBe(true);
  expect(vi.getTimerCount()).toBe(0);
});
