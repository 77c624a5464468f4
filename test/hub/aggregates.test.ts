/** Aggregates of /data agree with `calculation.ts` over random points, zones and periods. */
import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { bucketOf } from "#hub/data/buckets.ts";
import { type DataRow, dataRows } from "#wire/index.ts";
import { calculate, type Expected, type Period, type Sample } from "./calculation.ts";
import { createChain, startTestHub, type TestHub } from "./fixture.ts";

let hub: TestHub;
beforeAll(async () => {
  hub = await startTestHub();
});
afterAll(() => hub.close());

/** As a site or a query names it, and by its IANA name. */
const ZONES: readonly (readonly [named: string, zone: string])[] = [
  ["Europe/Paris", "Europe/Paris"],
  ["Romance Standard Time", "Europe/Paris"],
  ["America/New_York", "America/New_York"],
  ["Australia/Lord_Howe", "Australia/Lord_Howe"], // half an hour
  ["America/Havana", "America/Havana"], // at midnight
  ["Asia/Kathmandu", "Asia/Kathmandu"],
  ["Pacific/Apia", "Pacific/Apia"], // had no 30 December 2011
  ["UTC", "UTC"],
];
const PERIODS: readonly Period[] = ["Minute", "Hour", "Day", "Week", "Month", "Year", "All"];
const AGGREGATIONS = ["SUM", "MIN", "MAX", "AVG", "COUNT", "VAR", "STDEV"];
const STEP_MS = 450_000;
const SPAN_STEPS = (4 * 86_400_000) / STEP_MS;

/** Instants where calendars are odd: changes of the clocks, and the ends of a year and of a month. */
function oddInstants(zone: string): number[] {
  const start = Temporal.Instant.from("2026-01-10T00:00:00Z").toZonedDateTimeISO(zone);
  const changes = [start.getTimeZoneTransition("next")];
  changes.push(changes[0]?.getTimeZoneTransition("next") ?? null);
  const fixed = ["2025-12-31T23:00:00Z", "2026-02-28T18:00:00Z"].map((text) => Date.parse(text));
  const skipped = zone === "Pacific/Apia" ? [Date.parse("2011-12-30T10:00:00Z")] : [];
  return [...fixed, ...skipped, ...changes.flatMap((change) => change?.epochMilliseconds ?? [])];
}

const scene = fc.constantFrom(...ZONES).chain(([named, zone]) =>
  fc.record({
    named: fc.constant(named),
    zone: fc.constant(zone),
    samples: fc.uniqueArray(
      fc.record({
        ms: fc
          .tuple(fc.constantFrom(...oddInstants(zone)), fc.integer({ min: -SPAN_STEPS, max: SPAN_STEPS }))
          .map(([odd, steps]) => odd + steps * STEP_MS),
        value: fc.oneof(
          fc.integer({ min: -1_000_000, max: 1_000_000 }).map((value) => value / 8),
          fc.double({ min: -1e6, max: 1e6, noNaN: true }),
        ),
      }),
      { selector: ({ ms }) => ms, minLength: 1, maxLength: 120 },
    ),
    queries: fc.array(
      fc.record({
        period: fc.constantFrom(...PERIODS),
        /** Positions among the points, so that bounds often fall onto one. */
        from: fc.option(fc.nat(119)),
        to: fc.option(fc.nat(119)),
        boundary: fc.boolean(),
        reporting: fc.boolean(),
        local: fc.boolean(),
        descending: fc.boolean(),
      }),
      { minLength: 3, maxLength: 3 },
    ),
  }),
);
type Scene = typeof scene extends fc.Arbitrary<infer Value> ? Value : never;
type Asked = Scene["queries"][number];

interface Window {
  readonly from: { readonly text: string; readonly ms: number } | null;
  readonly to: { readonly text: string; readonly ms: number } | null;
}

function windowOf({ from, to, local }: Asked, samples: readonly Sample[], zone: string): Window {
  const bound = (position: number | null) => {
    if (position === null) return null;
    const instant = Temporal.Instant.fromEpochMilliseconds(samples[position % samples.length]?.ms ?? 0);
    if (!local) return { text: instant.toString(), ms: instant.epochMilliseconds };
    // Of a repeated hour the words mean the first pass.
    const wall = instant.toZonedDateTimeISO(zone).toPlainDateTime();
    return { text: wall.toString(), ms: wall.toZonedDateTime(zone).epochMilliseconds };
  };
  const [one, other] = [bound(from), bound(to)];
  return one !== null && other !== null && one.ms > other.ms ? { from: other, to: one } : { from: one, to: other };
}

function expectedOf(samples: readonly Sample[], asked: Asked, zone: string, { from, to }: Window): Expected[] {
  const inside = samples.filter(
    ({ ms }) => (from === null || ms >= from.ms) && (to === null || ms < to.ms || (asked.boundary && ms === to.ms)),
  );
  const rows = calculate(inside, asked.period, zone, from?.ms ?? null);
  return asked.descending ? rows.toReversed() : rows;
}

async function answerOf(variableId: number, asked: Asked, named: string, { from, to }: Window): Promise<DataRow[]> {
  const query = {
    VariableId: variableId,
    Granularity: asked.period,
    Aggregations: AGGREGATIONS,
    DisplayLevel: "ValueVariableDate",
    IncludeToBoundary: asked.boundary,
    PagingOrder: asked.descending ? "DESC" : "ASC",
    ...(from === null ? {} : { From: from.text }),
    ...(to === null ? {} : { To: to.text }),
    ...(asked.reporting ? { UseReportingTimezone: true } : { TimeZoneId: named }),
  };
  return dataRows.parse(await hub.get("/data", query));
}

function closeTo(expected: number): unknown {
  return {
    asymmetricMatch: (actual: unknown) =>
      typeof actual === "number" && Math.abs(actual - expected) <= 1e-9 * Math.max(1, Math.abs(expected)),
    toString: () => `close to ${expected}`,
  };
}

/** Quarter-hours of four days around an instant, asked by the hour and by the day, both ways. */
function around(zone: string, instant: string): Scene {
  const first = Date.parse(instant) - 2 * 86_400_000;
  const ask = (period: Period, reporting: boolean, descending: boolean): Asked => {
    return { period, from: 7, to: 380, boundary: true, reporting, local: true, descending };
  };
  return {
    named: zone,
    zone,
    samples: Array.from({ length: 4 * 96 }, (_, index) => ({ ms: first + index * 900_000, value: index })),
    queries: [ask("Day", true, false), ask("Hour", false, true), ask("Hour", true, false)],
  };
}
const EXAMPLES = [
  around("Europe/Paris", "2026-03-29T01:00:00Z"), // 23 hours
  around("Europe/Paris", "2026-10-25T01:00:00Z"), // 25 hours
  around("Australia/Lord_Howe", "2026-04-04T15:00:00Z"), // 24 hours and a half
  around("America/Havana", "2026-03-08T05:00:00Z"), // a day without midnight
];

test("aggregates agree with a calculation by the calendar, for random points, zones and periods", async () => {
  const sources = new Map<string, number>();
  await fc.assert(
    fc.asyncProperty(scene, async ({ named, zone, samples, queries }) => {
      const sourceId = sources.get(named) ?? (await createChain(hub, { zone: named, variables: [] })).sourceId;
      sources.set(named, sourceId);
      const body = { name: "Random", sourceId, variableTypeId: 0, unitId: 8 };
      const variableId = await hub.post("/variables", body);
      const data = samples.map(({ ms, value }) => ({ date: new Date(ms).toISOString(), value }));
      await hub.push([{ variableId, data }]);
      for (const asked of queries) {
        const window = windowOf(asked, samples, zone);
        const rows = await answerOf(variableId, asked, named, window);
        const shown = rows.map(({ date, variableId: _, unitId: __, ...values }) => ({
          startMs: Temporal.Instant.from(date ?? "").epochMilliseconds,
          ...values,
        }));
        const expected = expectedOf(samples, asked, zone, window);
        expect(shown).toEqual(
          expected.map((row) =>
            Object.fromEntries(
              Object.entries(row).map(([name, value]) => [name, name === "startMs" ? value : closeTo(value)]),
            ),
          ),
        );
      }
    }),
    { numRuns: 25, examples: EXAMPLES.map((one) => [one]) },
  );
});

/** Newfoundland set its clocks back at 00:01, to 23:01 of the day before. */
test.each(["Day", "Month"] as const)(
  "each instant lies in one %s where the clocks go back across midnight",
  (period) => {
    const change = Date.parse("2009-11-01T02:31:00Z");
    const edges = new Set<number>();
    for (let ms = change - 7_200_000; ms < change + 10_800_000; ms += 60_000) {
      const { startMs, endMs } = bucketOf(ms, period, "America/St_Johns");
      expect(ms).toBeGreaterThanOrEqual(startMs ?? 0);
      expect(ms).toBeLessThan(endMs);
      edges.add(startMs ?? 0).add(endMs);
    }
    expect(edges.size).toBe(3);
  },
);
