/** The statements by which losses are found. */
import { expect, test } from "vitest";
import { lossRows } from "#hub/quality/losses.ts";
import type { SeriesStore, Span } from "#hub/store/quality/series.ts";

const HOUR_MS = 3_600_000;
const variable = {
  ...{ id: 1, name: "Seconds", sourceId: 1, siteId: 1, unitId: 8, quantityType: 1, isVersioned: false },
  ...{ granularity: 1, granularityTimeBase: 1, siteZoneId: "UTC", sourceZoneId: "UTC" },
};

/** A store of these dates that counts what it is asked. */
function seriesOf(dates: readonly number[]) {
  const within = ({ fromMs, untilMs }: Span) => dates.filter((ms) => ms >= fromMs && ms < untilMs);
  const asked = { statements: 0 };
  const count = <T>(found: T): Promise<T> => {
    asked.statements += 1;
    return Promise.resolve(found);
  };
  const series: SeriesStore = {
    firstMs: () => count(dates[0] ?? null),
    newest: () => count(dates),
    nextMs: (_, span) => count(within(span)[0] ?? null),
    count: (_, span) => count(within(span).length),
    tally: (_, span) => count({ points: within(span).length, even: within(span).length }),
    revisions: () => count({ replaced: 0, repeated: 0 }),
    async *read(_, span) {
      asked.statements += 1;
      yield { atMs: Float64Array.from(within(span)), values: Float64Array.from(within(span)) };
    },
  };
  return { series, asked };
}

function losses(series: SeriesStore, untilMs: number, period: "All" | "Day") {
  const zones = { source: "UTC", period: "UTC", dates: "UTC" };
  const settings = { period, onlyLosses: false, maxDetails: 10_000 };
  return lossRows(series, { variable, zones, fromMs: 0, untilMs, nowMs: untilMs, settings });
}

test("an empty stretch takes no statement for each of its parts", async () => {
  const untilMs = 1_000 * HOUR_MS;
  const { series, asked } = seriesOf([5_000, 700 * HOUR_MS, 700 * HOUR_MS + 1_000]);
  const [row] = await losses(series, untilMs, "All");
  expect(row).toMatchObject({ expected: 3_600_000, present: 3, missing: 3_599_997, intervalsTotal: 3 });
  expect(asked.statements).toBeLessThan(12);
});

test("all rows of one variable list 10,000 intervals at most, and count the others", async () => {
  const dates = Array.from({ length: 12_000 }, (_, at) => at * 2_000 * 5);
  const rows = await losses(seriesOf(dates).series, 120_000_000, "Day");
  expect(rows.reduce((sum, { intervals }) => sum + intervals.length, 0)).toBe(10_000);
  expect(rows.reduce((sum, { intervalsTotal }) => sum + intervalsTotal, 0)).toBeGreaterThanOrEqual(12_000);
  expect(rows.at(-1)?.warnings).toEqual([expect.stringContaining("a shorter period lists more")]);
});
