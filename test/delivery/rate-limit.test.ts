import { expect, test } from "vitest";
import type { Clock } from "#core/clock.ts";
import { Pace } from "#gateway/delivery/rate-limit.ts";

const never = new AbortController().signal;

/** A clock whose sleeps advance the time at once. */
function leaping(): Clock & { atMs: number } {
  const clock = {
    atMs: 0,
    now: () => Temporal.Instant.fromEpochMilliseconds(clock.atMs),
    monotonicMs: () => clock.atMs,
    sleep: async (ms: number, signal?: AbortSignal) => {
      if (signal?.aborted === true) return false;
      clock.atMs += ms;
      return true;
    },
  };
  return clock;
}

test("batches are sent no faster than the rate, whatever their size", async () => {
  const clock = leaping();
  const pace = new Pace(1_000, clock);
  const wentAtMs: number[] = [];
  for (const readings of [500, 2_000, 1, 999]) {
    await pace.take(readings, never);
    wentAtMs.push(clock.atMs);
  }
  expect(wentAtMs).toEqual([0, 500, 2_500, 2_501]);
});

test("idle time is not accumulated", async () => {
  const clock = leaping();
  const pace = new Pace(1_000, clock);
  await pace.take(1_000, never);
  clock.atMs = 60_000;
  await pace.take(1_000, never);
  await pace.take(1_000, never);
  expect(clock.atMs).toBe(61_000);
});

test("without a rate there is no wait, and an abort ends a wait", async () => {
  const clock = leaping();
  const free = new Pace(undefined, clock);
  await free.take(1_000_000, never);
  await free.take(1_000_000, never);
  expect(clock.atMs).toBe(0);
  const slow = new Pace(1, clock);
  await slow.take(1_000, never);
  expect(await slow.take(1, AbortSignal.abort())).toBe(false);
});
