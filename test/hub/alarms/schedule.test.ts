import fc from "fast-check";
import { describe, expect, test, vi } from "vitest";
import { counts, lastTime, nextCounted, nextTime } from "#hub/alarms/schedule.ts";

const PARIS = "Europe/Paris";
const at = (text: string) => Date.parse(text);
const iso = (ms: number | null) => (ms === null ? null : new Date(ms).toISOString());

describe("the schedule of an alarm", () => {
  test("counts from its first hour to before its last, by the clock of the zone", () => {
    const schedule = { from: "08:00", until: "18:00" };
    expect(counts(schedule, PARIS, at("2026-01-15T06:59:59Z"))).toBe(false);
    expect(counts(schedule, PARIS, at("2026-01-15T07:00:00Z"))).toBe(true);
    expect(counts(schedule, PARIS, at("2026-01-15T16:59:59Z"))).toBe(true);
    expect(counts(schedule, PARIS, at("2026-01-15T17:00:00Z"))).toBe(false);
    expect(counts(undefined, PARIS, at("2026-01-15T17:00:00Z"))).toBe(true);
  });

  test("over midnight belongs to the day on which it begins", () => {
    const night = { days: [5], from: "22:00", until: "06:00" };
    expect(counts(night, "UTC", at("2026-01-16T23:00:00Z"))).toBe(true); // A Friday.
    expect(counts(night, "UTC", at("2026-01-17T05:59:00Z"))).toBe(true);
    expect(counts(night, "UTC", at("2026-01-17T23:00:00Z"))).toBe(false);
    expect(counts(night, "UTC", at("2026-01-16T05:00:00Z"))).toBe(false);
  });

  test("any moments in any order: as for each alone", () => {
    const time = fc.integer({ min: 0, max: 23 }).map((hour) => `${String(hour).padStart(2, "0")}:00`);
    const days = fc.uniqueArray(fc.integer({ min: 1, max: 7 }), { minLength: 1 });
    const schedules = fc.record({ days, from: time, until: time });
    // Around a change of the clocks.
    const moments = fc.array(
      fc.integer({ min: -200, max: 200 }).map((hour) => at("2026-03-29T01:00:00Z") + hour * 1_800_000),
    );
    fc.assert(
      fc.property(schedules, moments, (schedule, all) => {
        const alone = all.map((ms) => nextCounted({ ...schedule }, PARIS, ms));
        expect(all.map((ms) => nextCounted(schedule, PARIS, ms))).toEqual(alone);
      }),
    );
  });

  test("finds a span once for the points in it", () => {
    const asked = vi.spyOn(Temporal.PlainTime, "from");
    const schedule = { from: "08:00", until: "18:00" };
    for (let second = 0; second < 500; second += 1)
      counts(schedule, "UTC", at("2026-01-15T09:00:00Z") + second * 1_000);
    for (let second = 0; second < 500; second += 1)
      counts(schedule, "UTC", at("2026-01-15T19:00:00Z") + second * 1_000);
    expect(asked.mock.calls.length).toBeLessThan(20);
    asked.mockRestore();
  });

  test("the next moment skips days that do not count", () => {
    const work = { days: [1, 2, 3, 4, 5], from: "08:00", until: "18:00" };
    expect(iso(nextCounted(work, "UTC", at("2026-01-16T18:00:00Z")))).toBe("2026-01-19T08:00:00.000Z");
    expect(iso(nextCounted(work, "UTC", at("2026-01-16T09:30:00Z")))).toBe("2026-01-16T09:30:00.000Z");
  });

  test("an hour that the clocks skip begins with the change, and a repeated one with its first pass", () => {
    expect(iso(nextCounted({ from: "02:30", until: "05:00" }, PARIS, at("2026-03-29T00:00:00Z")))).toBe(
      "2026-03-29T01:00:00.000Z",
    );
    expect(iso(nextCounted({ from: "02:30", until: "05:00" }, PARIS, at("2026-10-24T22:00:00Z")))).toBe(
      "2026-10-25T00:30:00.000Z",
    );
  });

  test("a time of day is found before and after a moment", () => {
    expect(iso(nextTime("06:00", undefined, PARIS, at("2026-01-15T05:00:00Z")))).toBe("2026-01-16T05:00:00.000Z");
    expect(iso(lastTime("06:00", undefined, PARIS, at("2026-01-15T05:00:00Z")))).toBe("2026-01-15T05:00:00.000Z");
    expect(iso(lastTime("06:00", [1], "UTC", at("2026-01-15T05:00:00Z")))).toBe("2026-01-12T06:00:00.000Z");
  });
});
