import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { TEMPORARY_NAMES_DEFAULT } from "#gateway/drops/options.ts";
import { Settling, temporaryPattern } from "#gateway/drops/settle.ts";

const rules = { observations: 3, intervalMs: 1000, temporaryNames: TEMPORARY_NAMES_DEFAULT };
const file = (change: Partial<{ path: string; size: number; mtime: string }> = {}) => ({
  id: 1,
  path: "in/a.csv",
  size: 10,
  mtime: "1",
  ...change,
});

describe("settling", () => {
  test("settles a file after the configured number of equal observations, spaced by the interval", () => {
    const settling = new Settling(rules);
    expect(settling.observe(file(), 0)).toMatchObject({ settled: false });
    expect(settling.observe(file(), 1000)).toMatchObject({ settled: false });
    expect(settling.observe(file(), 2000)).toMatchObject({ settled: true });
  });

  test.for([
    ["twice that pause", 60_000, 6_000],
    ["the bound", 3_500, 5_500],
  ] as const)("keeps a file that grew after a pause unsettled for %s", ([, pauseMaxMs, settledAtMs]) => {
    const settling = new Settling({ ...rules, pauseMaxMs });
    settling.observe(file(), 0);
    settling.observe(file(), 1_500);
    // 2 s after its last change; three equal looks at it would be done by 4 s.
    settling.observe(file({ size: 20 }), 2_000);
    for (let nowMs = 2_500; nowMs < settledAtMs; nowMs += 500)
      expect(settling.observe(file({ size: 20 }), nowMs), String(nowMs)).toMatchObject({ settled: false });
    expect(settling.observe(file({ size: 20 }), settledAtMs)).toMatchObject({ settled: true });
  });

  test("does not count observations that follow too soon", () => {
    const settling = new Settling(rules);
    for (let nowMs = 0; nowMs < 1000; nowMs += 10)
      expect(settling.observe(file(), nowMs)).toMatchObject({
        reason: "size or time still changing: 1 of 3 equal observations",
      });
  });

  test.for([{ size: 11 }, { mtime: "0" }])("restarts when %o changed, also backwards", (change) => {
    const settling = new Settling(rules);
    settling.observe(file(), 0);
    settling.observe(file(), 1000);
    expect(settling.observe(file(change), 2000)).toEqual({
      settled: false,
      reason: "size or time still changing: 1 of 3 equal observations",
      sinceMs: 0,
      temporary: false,
    });
  });

  test("settles a file at first sight when one observation is enough", () => {
    const settling = new Settling({ ...rules, observations: 1, intervalMs: 0 });
    expect(settling.observe(file(), 0)).toMatchObject({ settled: true });
  });

  test("never settles a temporary name, and reports its pattern", () => {
    const settling = new Settling(rules);
    for (let nowMs = 0; nowMs < 10_000; nowMs += 1000)
      expect(settling.observe(file({ path: "in/a.csv.PART" }), nowMs)).toMatchObject({
        settled: false,
        reason: "temporary name (*.part): waits until its sender renames it",
        temporary: true,
      });
  });

  test("restarts with a file that was forgotten", () => {
    const settling = new Settling({ ...rules, observations: 2 });
    settling.observe(file(), 0);
    settling.forget(1);
    expect(settling.observe(file(), 1000)).toMatchObject({ settled: false, sinceMs: 1000 });
  });

  test("has seen the same size and time over the whole span, whenever it settles a file", () => {
    const looks = fc.array(fc.record({ afterMs: fc.nat(2500), size: fc.nat(1) }), { maxLength: 30 });
    fc.assert(
      fc.property(looks, fc.integer({ min: 1, max: 4 }), (sequence, observations) => {
        const settling = new Settling({ ...rules, observations });
        let nowMs = 0;
        let equalSinceMs = 0;
        let last = -1;
        for (const { afterMs, size } of sequence) {
          nowMs += afterMs;
          if (size !== last) equalSinceMs = nowMs;
          last = size;
          const verdict = settling.observe(file({ size }), nowMs);
          if (verdict.settled) expect(nowMs - equalSinceMs).toBeGreaterThanOrEqual((observations - 1) * 1000);
        }
      }),
    );
  });
});

test.for([
  ["a.csv", null],
  ["part.csv", null],
  ["a.part", "*.part"],
  ["a.TMP", "*.tmp"],
  ["a.csv.filepart", "*.filepart"],
  ["a.csv~", "*~"],
  [".a.csv", ".*"],
  [".in/a.csv", null],
] as const)("the name %s is temporary by the pattern %s", ([name, pattern]) => {
  expect(temporaryPattern(name, TEMPORARY_NAMES_DEFAULT)).toBe(pattern);
});
