/** Cells of heat maps, and load duration curves. */
import { expect, test } from "vitest";
import { curveOf, valueOfShare } from "#pages/explorer/duration-chart.ts";
import { absences, cellsOf, patchOf, placeIn } from "#pages/explorer/heat-chart.ts";
import { SeriesOfRows } from "#pages/explorer/series.ts";

const ZONE = "Europe/Paris";
const HOUR_S = 3_600;
const variable = { id: 1, sourceId: 1, name: "Energy", quantityType: 2 } as never;

/** Hours of UTC from an instant, with the local times of Paris and their number as value; null leaves one out. */
function hoursFrom(iso: string, values: readonly (number | null)[]) {
  const rows = new SeriesOfRows([variable], { granularity: "Hour", aggregate: null });
  values.forEach((sumValue, at) => {
    if (sumValue === null) return;
    const instant = Temporal.Instant.from(iso).add({ hours: at });
    const date = instant.toZonedDateTimeISO(ZONE).toString({ timeZoneName: "never", smallestUnit: "second" });
    rows.add([{ variableId: 1, unitId: 8, date, sumValue }]);
  });
  const [series] = rows.taken();
  if (series === undefined) throw new Error("there is no series");
  return series;
}

const numbers = (count: number) => Array.from({ length: count }, (_, at) => at);

test("a day of 23 hours has no cell for the hour that the clock skips", () => {
  const period = { from: "2026-03-29", to: "2026-03-30" };
  const cells = cellsOf(hoursFrom("2026-03-28T23:00:00Z", numbers(23)), period);
  expect([cells.days, [...cells.counts]]).toEqual([1, numbers(24).map((hour) => (hour === 2 ? 0 : 1))]);
  expect([...cells.places].slice(0, 5)).toEqual([0, 1, -1, 2, 3]);
  const absence = absences(period, ZONE);
  expect([absence(cells.firstDay, 2), absence(cells.firstDay, 3)]).toEqual(["skipped", "missing"]);
  expect(placeIn(cells, cells.firstDay, 2.5)).toBe(null);
});

test("a day of 25 hours shows both values of the hour that comes twice", () => {
  const series = hoursFrom("2026-10-24T22:00:00Z", numbers(25));
  const cells = cellsOf(series, { from: "2026-10-25", to: "2026-10-26" });
  expect([cells.counts[2], cells.places[2], cells.places[3]]).toEqual([2, 2, 4]);
  expect([placeIn(cells, cells.firstDay, 2.2), placeIn(cells, cells.firstDay, 2.7)]).toEqual([2, 3]);
  const patches = [2, 3, 4].map((at) => patchOf(series, cells, at));
  expect(patches.map(({ hour, hours }) => [hour, hours])).toEqual([
    [2, 0.5],
    [2.5, 0.5],
    [3, 1],
  ]);
  expect([cells.least, cells.most]).toEqual([0, 24]);
});

test("a value that is missing is none of the hours outside of the period", () => {
  const period = { from: "2026-06-01T06:00", to: "2026-06-03" };
  const hours = numbers(42).map((hour) => (hour === 20 ? null : hour));
  const cells = cellsOf(hoursFrom("2026-06-01T04:00:00Z", hours), period);
  const absence = absences(period, ZONE);
  expect([cells.days, cells.counts.filter((count) => count === 0).length]).toEqual([2, 7]);
  expect([absence(cells.firstDay, 5), absence(cells.firstDay + 1, 2)]).toEqual(["outside", "missing"]);
});

test("a load duration curve counts values by the time for which they hold", () => {
  const series = hoursFrom("2026-06-01T00:00:00Z", [4, 8, 2, 6]);
  const curve = curveOf(series);
  expect([[...curve.values], [...curve.ends]]).toEqual([
    [8, 6, 4, 2],
    [0.25, 0.5, 0.75, 1],
  ]);
  expect([0, 0.24, 0.25, 0.6, 1].map((share) => valueOfShare(curve, share))).toEqual([8, 8, 6, 4, 2]);
  // Before a gap a value counts for its own length, not until the next one.
  const times = Float64Array.of(0, HOUR_S, 10 * HOUR_S);
  const gap = curveOf({ ...series, times, values: Float64Array.of(1, 9, 5) });
  expect([...gap.ends].map((end) => Math.round(end * 3))).toEqual([1, 2, 3]);
  expect(valueOfShare(curveOf({ ...series, times: Float64Array.of(), values: Float64Array.of() }), 0.5)).toBe(null);
});
