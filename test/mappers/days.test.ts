/** Rows of whole days, compared with the calendar of Temporal on days of every length. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createDayPlanner, type DayRules } from "../../mappers/_declarative/days.ts";
import { createTimeTools } from "../../src/mapping/time.ts";

const ZONES = ["Europe/London", "Europe/Rome", "America/Havana", "Australia/Lord_Howe", "Asia/Beirut", "+10:00"];
const CHANGE_DAYS = ["2025-03-09", "2025-03-30", "2025-04-06", "2025-10-05", "2025-10-26", "2025-11-02"];

const day = fc.oneof(
  fc.constantFrom(...CHANGE_DAYS),
  fc
    .date({ min: new Date("1990-01-01"), max: new Date("2035-12-31"), noInvalidDate: true })
    .map((date) => date.toISOString().slice(0, 10)),
);
const interval = fc.constantFrom(15, 30).map((minutes) => minutes * 60_000);

function plan(
  rules: Partial<DayRules> & Pick<DayRules, "zone" | "intervalMs">,
  text: string,
  columns: number,
  filled: number,
) {
  const planOf = createDayPlanner(createTimeTools(), { changeDays: "order", dst: "reject", ...rules });
  return planOf(text, columns, filled);
}

describe("the columns of a day", () => {
  it("cover the day in order, without a gap, from its first instant to that of the next", () => {
    fc.assert(
      fc.property(fc.constantFrom(...ZONES), day, interval, (zone, text, intervalMs) => {
        const local = Temporal.PlainDate.from(text);
        const from = local.toZonedDateTime(zone).epochMilliseconds;
        const to = local.add({ days: 1 }).toZonedDateTime(zone).epochMilliseconds;
        const count = (to - from) / intervalMs;
        const { starts } = plan({ zone, intervalMs }, text, 100, 100);
        expect(starts.filter((start) => !Number.isNaN(start))).toEqual(
          Array.from({ length: count }, (_, at) => from + at * intervalMs),
        );
      }),
    );
  });

  it("with clock labels have the time of their label, each instant of the day once", () => {
    fc.assert(
      fc.property(fc.constantFrom(...ZONES), day, interval, (zone, text, intervalMs) => {
        const perDay = 86_400_000 / intervalMs;
        const { starts } = plan({ zone, intervalMs, changeDays: "clock" }, text, perDay + 8, perDay + 8);
        const local = Temporal.PlainDate.from(text);
        const from = local.toZonedDateTime(zone).epochMilliseconds;
        const to = local.add({ days: 1 }).toZonedDateTime(zone).epochMilliseconds;
        for (const [at, start] of starts.slice(0, perDay).entries()) {
          if (Number.isNaN(start)) continue;
          const wall = Temporal.Instant.fromEpochMilliseconds(start).toZonedDateTimeISO(zone).toPlainTime();
          expect(wall.since("00:00").total("milliseconds")).toBe(at * intervalMs);
        }
        const there = starts.filter((start) => !Number.isNaN(start)).sort((one, other) => one - other);
        expect(there).toEqual(Array.from({ length: (to - from) / intervalMs }, (_, at) => from + at * intervalMs));
      }),
    );
  });

  it("need the settings for the pass of a repeated hour that has one set of columns", () => {
    const zone = "Europe/Rome";
    const rules = { zone, intervalMs: 3_600_000, changeDays: "clock" } as const;
    expect([...plan(rules, "2025-10-26", 24, 24).unclear]).toEqual([2]);
    const at = (dst: "earlier" | "later") => plan({ ...rules, dst }, "2025-10-26", 24, 24).starts[2];
    expect(at("earlier")).toBe(Date.parse("2025-10-26T00:00:00Z"));
    expect(at("later")).toBe(Date.parse("2025-10-26T01:00:00Z"));
  });

  it("refuse a long day whose further columns are empty, since it may have been written by the clock", () => {
    expect(() => plan({ zone: "Europe/London", intervalMs: 1_800_000 }, "2025-10-26", 50, 48)).toThrow(
      "has 50 intervals in Europe/London, but only 48 columns hold values",
    );
  });
});
