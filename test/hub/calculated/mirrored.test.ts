/** The dates that a formula sees, and the outputs that a change affects, are two views of one relation. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { affectedBy, CALENDAR_UNITS, type InputReach, seenDates } from "#hub/calculated/recalculation/reach.ts";
import type { Granularity } from "#wire/index.ts";
import { regularSteps } from "./regular-steps.ts";

const QUARTER = 900_000;
const DAY = 96 * QUARTER;
const at = (text: string) => Temporal.Instant.from(text).epochMilliseconds;

/** Moments beside which zones repeat or skip an hour, half an hour or a day, and ends of months of all lengths. */
const MOMENTS = [
  "2026-03-29T01:00Z",
  "2026-10-25T01:00Z",
  "2026-03-08T07:00Z",
  "2026-11-01T06:00Z",
  "2026-10-03T15:30Z",
  "2026-04-04T15:00Z",
  "2011-12-30T10:00Z",
  "2008-11-02T02:31Z",
  "2026-02-28T12:00Z",
  "2024-02-29T12:00Z",
  "2026-01-31T12:00Z",
  "2026-04-30T22:00Z",
].map(at);
const ZONES = ["Europe/Paris", "America/New_York", "Australia/Lord_Howe", "Pacific/Apia", "America/St_Johns", "UTC"];
const GRANULARITIES = ["Raw", "Hour", "Day", "Week", "Month", "Year"] as const satisfies readonly Granularity[];

const quarters = fc.integer({ min: -3 * 96, max: 3 * 96 });
const momentsAround = fc.tuple(fc.constantFrom(...MOMENTS), quarters).map(([ms, some]) => ms + some * QUARTER);
const reaches = fc.record({
  granularity: fc.constantFrom(...GRANULARITIES),
  collected: fc.array(fc.constantFrom(...GRANULARITIES), { maxLength: 2 }),
  period: fc.oneof(
    fc.constant({ kind: "window" as const }),
    fc.record({
      kind: fc.constant("relative" as const),
      count: fc.integer({ min: 1, max: 5 }),
      unit: fc.constantFrom(...CALENDAR_UNITS),
    }),
  ),
  points: fc.integer({ min: 0, max: 3 }),
});

const EXTENT = { fromMs: at("2000-01-01T00:00Z"), toMs: at("2060-01-01T00:00Z") };
/** A point each 7 hours. */
const STEPS = regularSteps(28 * QUARTER, { fromMs: -8.64e15, toMs: 8.64e15 }).steps;

async function sees(reach: InputReach, outputMs: number, ms: number, zone: string): Promise<boolean> {
  const { fromMs, toMs } = await seenDates(reach, { fromMs: outputMs, toMs: outputMs }, zone, STEPS);
  return (fromMs ?? ms) <= ms && ms <= (toMs ?? ms);
}

async function expectAffected(reach: InputReach, ms: number, zone: string, outputs: readonly number[]) {
  const terms = { zone, extent: EXTENT, steps: STEPS };
  const affected = await affectedBy(reach, { fromMs: ms, toMs: ms }, terms);
  for (const output of outputs) {
    if (!(await sees(reach, output, ms, zone))) continue;
    const isAffected = affected !== null && affected.fromMs <= output && output <= affected.toMs;
    expect(isAffected, `the output of ${new Date(output).toISOString()} sees ${new Date(ms).toISOString()}`).toBe(true);
  }
}

test("each output that sees a changed date is affected by it", async () => {
  const cases = fc.record({
    reach: reaches,
    zone: fc.constantFrom(...ZONES),
    ms: momentsAround,
    others: fc.array(momentsAround, { maxLength: 4 }),
    days: fc.array(fc.integer({ min: 0, max: 70 * 96 }), { minLength: 1, maxLength: 8 }),
  });
  await fc.assert(
    fc.asyncProperty(cases, async ({ reach, zone, ms, others, days }) => {
      // Around the end that adding the period to the change gives, too.
      const ends = await affectedBy(reach, { fromMs: ms, toMs: ms }, { zone, extent: EXTENT, steps: STEPS });
      const near = [1, QUARTER, 4 * QUARTER, DAY, 3 * DAY].map((more) => (ends?.toMs ?? ms) + more);
      await expectAffected(reach, ms, zone, [...others, ...near, ...days.map((some) => ms + some * QUARTER)]);
    }),
    { numRuns: 150 },
  );
});

const MONTH = { kind: "relative", count: 1, unit: "months" } as const;
const YEAR = { kind: "relative", count: 1, unit: "years" } as const;
const ONE_DAY = { kind: "relative", count: 1, unit: "days" } as const;
const PLAIN: InputReach = { granularity: "Raw", collected: [], period: { kind: "window" }, points: 0 };

test.each([
  ["the end of a short month", PLAIN, MONTH, "2026-02-28T11:00Z", "2026-03-31T10:00Z"],
  ["the end of a long month", PLAIN, MONTH, "2026-03-31T10:00Z", "2026-04-30T21:59:59.999Z"],
  ["the middle of a month", PLAIN, MONTH, "2026-03-10T11:00Z", "2026-04-10T10:00Z"],
  ["29 February", PLAIN, YEAR, "2024-02-29T11:00Z", "2025-02-28T22:59:59.999Z"],
  ["28 February before a leap year", PLAIN, YEAR, "2023-02-28T11:00Z", "2024-02-29T11:00Z"],
  ["an hour that is repeated", PLAIN, ONE_DAY, "2026-10-24T00:30Z", "2026-10-25T01:30Z"],
  [
    "a period that a month looks back to",
    { ...PLAIN, granularity: "Month" as const },
    ONE_DAY,
    "2026-03-31T10:00Z",
    "2026-04-30T21:59:59.999Z",
  ],
] as const)("a change affects the outputs up to the last one that sees it: %s", async (_, base, period, from, to) => {
  const reach: InputReach = { ...base, period };
  const change = { fromMs: at(from), toMs: at(from) };
  const affected = await affectedBy(reach, change, { zone: "Europe/Paris", extent: EXTENT, steps: STEPS });
  expect(new Date(affected?.toMs ?? 0).toISOString()).toBe(new Date(at(to)).toISOString());
  expect(await sees(reach, at(to), at(from), "Europe/Paris")).toBe(true);
  expect(await sees(reach, at(to) + 1, at(from), "Europe/Paris")).toBe(false);
});
