/** Rows of whole days, compared with the calendar of Temporal on days of every length. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createTimeTools } from "#mapping/time.ts";
import { createDayPlanner, type DayRules, intervalsOf, type LabelRules } from "../../mappers/_declarative/days.ts";

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
  const planOf = createDayPlanner(createTimeTools(), {
    changeDays: "order",
    dst: "reject",
    partialDays: "reject",
    ...rules,
  });
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

  it("refuse a long day that has some of its further columns only", () => {
    const rules = { zone: "Europe/London", intervalMs: 1_800_000 };
    for (const changeDays of ["order", "clock"] as const)
      expect(() => plan({ ...rules, changeDays }, "2026-10-25", 49, 49)).toThrow(
        "49 columns of values, and 50 are due",
      );
  });

  it("refuse a row of the hours of a short day on an ordinary one", () => {
    const rules = { zone: "Europe/Rome", intervalMs: 3_600_000 };
    expect(plan(rules, "2026-03-29", 23, 23).starts).toHaveLength(23);
    expect(() => plan(rules, "2026-03-30", 23, 23)).toThrow("23 columns of values, and 24 are due");
  });
});

const two = (count: number) => String(count).padStart(2, "0");
const clock = (count: number, minutes: number) =>
  `${two(Math.trunc((count * minutes) / 60))}:${two((count * minutes) % 60)}`;

/** Spellings of the labels of a day, by the count of the interval. */
const SPELLINGS: readonly { readonly minutes: number; readonly of: (nth: number) => string }[] = [
  { minutes: 30, of: (nth) => `HH${two(nth + 1)}` },
  { minutes: 15, of: (nth) => String(nth + 1) },
  { minutes: 60, of: (nth) => two(nth) },
  { minutes: 60, of: (nth) => `Hour ${nth}-${nth + 1}` },
  { minutes: 15, of: (nth) => `K${nth + 1} [kWh]` },
  { minutes: 60, of: (nth) => `E1 ${nth + 1}` },
  { minutes: 15, of: (nth) => clock(nth, 15) },
  { minutes: 15, of: (nth) => clock(nth, 15).replace(/^0/, "") },
  { minutes: 30, of: (nth) => clock(nth + 1, 30) },
  { minutes: 30, of: (nth) => clock((nth + 1) % 48, 30) },
  { minutes: 30, of: (nth) => clock(nth, 30).replace(":", "") },
  { minutes: 60, of: (nth) => `${clock(nth, 60)}-${clock(nth + 1, 60)}` },
  { minutes: 15, of: (nth) => clock(nth, 15).replace(":", ".") },
  { minutes: 30, of: (nth) => `1899-12-31T${clock(nth, 30)}:00` },
  { minutes: 60, of: (nth) => `${nth % 12 || 12}:00 ${nth < 12 ? "AM" : "PM"}` },
  { minutes: 180, of: (nth) => two(nth * 3) },
];

function places(names: readonly string[], minutes: number, rules: Partial<LabelRules> = {}): readonly number[] {
  const all = { changeDays: "reject", partialDays: "reject", firstLabel: undefined, ...rules } as const;
  return intervalsOf(names, { ...all, intervalMs: minutes * 60_000 });
}

describe("the labels of the columns of a day", () => {
  it.each(SPELLINGS)("of $minutes minutes, spelling %#, show a column that was lost", ({ minutes, of }) => {
    const names = Array.from({ length: 1440 / minutes }, (_, nth) => of(nth));
    const all = [...names.keys()];
    expect(places(names, minutes)).toEqual(all);
    expect(places(names, minutes, { partialDays: "allow", firstLabel: of(0) })).toEqual(all);
    for (const lost of new Set([0, 1, Math.trunc(names.length / 2), names.length - 1])) {
      const rest = names.toSpliced(lost, 1);
      expect(() => places(rest, minutes)).toThrow(/(?:lack|missing after|columns of)/);
      // A sum takes the place of the last column.
      expect(() => places([...rest, "Total"], minutes)).toThrow(/(?:lack|missing after)/);
      expect(places(rest, minutes, { partialDays: "allow", firstLabel: of(0) })).toEqual(all.toSpliced(lost, 1));
    }
  });

  it("are not needed, nor looked for in names of another kind", () => {
    const quarters = Array.from({ length: 96 }, (_, nth) => `H${1 + (nth >> 2)}Q${1 + (nth % 4)}`);
    expect(places(quarters, 15)).toHaveLength(96);
    expect(() => places(quarters.slice(1), 15)).toThrow("a day has 96 columns of 15m, and 95 are there");
  });

  it("are those of the interval, in the order of the day, from its first on", () => {
    const hours = Array.from({ length: 24 }, (_, nth) => clock(nth, 60));
    expect(() => places(hours, 30)).toThrow(
      "the labels of the columns are 1h apart (00:00, 01:00), and `interval` is 30m",
    );
    expect(() => places(hours.toReversed(), 60)).toThrow("the day begins with 23:00, where 22:00 is due");
    const gasDay = [...hours.slice(6), ...hours.slice(0, 6)];
    expect(() => places(gasDay, 60)).toThrow("the day begins with 06:00");
    expect(places(gasDay, 60, { firstLabel: "06:00" })).toHaveLength(24);
    expect(() => places(hours, 60, { firstLabel: "HH1" })).toThrow("no labels of the kind of `firstLabel`, HH1");
  });

  it("of a part of a day have to say with which of them a day begins", () => {
    const rules = { partialDays: "allow" } as const;
    expect(() => places(["06:00", "07:00", "08:00"], 60, rules)).toThrow("leave open with which one a day begins");
    expect(places(["00:00", "01:00", "08:00"], 60, rules)).toEqual([0, 1, 8]);
    expect(places(["22:00", "23:00", "00:00"], 60, rules)).toEqual([21, 22, 23]);
    expect(places(["HH46", "HH47", "HH48"], 30, rules)).toEqual([45, 46, 47]);
  });

  it("of a header of 23 hours are left to the rows where columns are in order", () => {
    const hours = Array.from({ length: 23 }, (_, nth) => String(nth + 1));
    expect(places(hours, 60, { changeDays: "order" })).toHaveLength(23);
    expect(() => places(hours, 60, { changeDays: "clock" })).toThrow("24 is missing after 23");
  });
});
