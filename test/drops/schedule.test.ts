import { describe, expect, test } from "vitest";
import { type Clock, systemClock } from "#core/clock.ts";
import { dropOptions } from "#gateway/drops/options.ts";
import { Schedule } from "#gateway/drops/watcher.ts";

const at = (now: string): Clock => ({ ...systemClock, now: () => Temporal.Instant.from(now) });
const hours = (count: number) => count * 3_600_000;

describe("a schedule", () => {
  test("returns its interval, with jitter up to its limit", () => {
    const schedule = new Schedule({ every: 1000, jitter: 500 }, at("2026-03-01T00:00:00Z"));
    for (let round = 0; round < 50; round += 1) {
      expect(schedule.nextMs()).toBeGreaterThanOrEqual(1000);
      expect(schedule.nextMs()).toBeLessThan(1500);
    }
  });

  test.for([
    ["2026-03-01T00:00:00Z", "UTC", 6],
    ["2026-03-01T00:00:00Z", "Europe/Brussels", 5],
    // The day on which summer time begins has no hour between two and three.
    ["2026-03-28T23:00:00Z", "Europe/Brussels", 5],
    ["2026-03-01T06:00:00Z", "UTC", 24],
  ] as const)("by the calendar, from %s in %s, comes after %i hours", ([now, timeZone, count]) => {
    const schedule = new Schedule({ every: 1000, cron: "0 6 * * *", timeZone }, at(now));
    expect(schedule.nextMs()).toBe(hours(count));
  });

  test.for([
    [{ cron: "every day" }, "cron"],
    [{ cron: "0 6 * * *", timeZone: "Europe/Brusel" }, "time zone"],
    [{ settle: { doneFile: "done" } }, "{name}"],
    [{ initial: { since: "last week" } }, "nvalid"],
  ] as const)("of %j is refused by the configuration", ([settings, words]) => {
    const parsed = dropOptions.safeParse({ kind: "local", name: "field", path: "/srv", ...settings });
    expect(parsed.error?.message).toContain(words);
  });
});
