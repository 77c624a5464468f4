/** Columns of plots of many values. */
import { expect, test } from "vitest";
import { columnsOf } from "#pages/explorer/chart.ts";
import { SeriesOfRows, type Shape } from "#pages/explorer/series.ts";

const QUARTER_MS = 900_000;
const BEGIN_MS = Date.parse("2026-01-01T00:00:00Z");
const PIXELS = 500;
const RAW: Shape = { granularity: "Raw", aggregate: null };
const variable = {
  id: 1,
  sourceId: 1,
  name: "Energy",
  quantityType: 2,
  granularity: 15,
  granularityTimeBase: 2,
} as never;

function seriesOf(values: readonly (number | null)[], shape = RAW, extra: object = {}) {
  const rows = new SeriesOfRows([variable], shape);
  const column = shape.granularity === "Raw" ? "rawValue" : "avgValue";
  values.forEach((value, at) => {
    if (value === null) return;
    const date = new Date(BEGIN_MS + at * QUARTER_MS).toISOString().replace(".000Z", "+00:00");
    rows.add([{ variableId: 1, unitId: 8, date, [column]: value, ...extra }]);
  });
  const [series] = rows.taken();
  if (series === undefined) throw new Error("there is no series");
  return { series, span: { fromMs: BEGIN_MS, toMs: BEGIN_MS + values.length * QUARTER_MS, pixels: PIXELS } };
}

test("each column of pixels keeps its first, least, most and last value", () => {
  const values = Array.from({ length: 35_000 }, (_, at) => Math.sin(at * at) * 100);
  values[20_011] = 5_000;
  values[20_012] = -5_000;
  const { series, span } = seriesOf(values);
  const [times = [], shown = []] = columnsOf(series, span);
  expect([times.length, shown.length]).toEqual([4 * PIXELS, 4 * PIXELS]);
  expect(times.every((time, at) => at === 0 || (time ?? 0) > (times[at - 1] ?? 0))).toBe(true);
  for (let pixel = 0; pixel < PIXELS; pixel += 1) {
    const own = values.slice(pixel * 70, (pixel + 1) * 70);
    const drawn = shown.slice(pixel * 4, pixel * 4 + 4).map(Number);
    expect([Math.min(...drawn), Math.max(...drawn)]).toEqual([Math.min(...own), Math.max(...own)]);
    expect([drawn[0], drawn[3]]).toEqual([own[0], own.at(-1)]);
  }
  const spike = shown.slice(Math.floor(20_011 / 70) * 4).slice(0, 4);
  expect(spike.indexOf(5_000)).toBeLessThan(spike.indexOf(-5_000));
});

test("a gap of many pixels stays empty, and the values beside it stay", () => {
  const values = Array.from({ length: 35_000 }, (_, at) => (at >= 7_000 && at < 14_000 ? null : 1));
  const { series, span } = seriesOf(values);
  const [, shown = []] = columnsOf(series, span);
  expect(new Set(shown.slice(0, 400))).toEqual(new Set([1]));
  expect(new Set(shown.slice(400, 800))).toEqual(new Set([null]));
  expect(new Set(shown.slice(800))).toEqual(new Set([1]));
});

test("values that are rarer than pixels are no gaps where their interval is that long", () => {
  const values = Array.from({ length: 35_000 }, (_, at) => (at < 17_500 || at % 96 === 0 ? 2 : null));
  const rare = { ...seriesOf(values), series: { ...seriesOf(values).series, length: 86_400 } };
  const [, shown = []] = columnsOf(rare.series, rare.span);
  expect(shown.includes(null)).toBe(false);
});

test("a band keeps the least of its least and the most of its most", () => {
  const values = Array.from({ length: 4_000 }, (_, at) => at);
  const { series, span } = seriesOf(values, { granularity: "Minute", aggregate: "AVG" }, { minValue: -7, maxValue: 9 });
  const [, , most, least] = columnsOf(series, { ...span, pixels: 10 });
  expect([new Set(most), new Set(least)]).toEqual([new Set([9]), new Set([-7])]);
});

test("few values are drawn as they are, with a gap where some are missing", () => {
  const { series, span } = seriesOf([1, 2, null, null, 5]);
  const [times = [], shown] = columnsOf(series, span);
  expect(shown).toEqual([1, 2, 2, null, 5, 5]);
  expect(times.map((time) => ((time ?? 0) - BEGIN_MS / 1_000) / 60)).toEqual([0, 15, 30, 30 + 1 / 60, 60, 75]);
});
