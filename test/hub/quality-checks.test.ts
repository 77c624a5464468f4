/** What /dataQuality finds in the points of a variable. */
import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { outliersOf } from "#hub/quality/judge.ts";
import { type QualityRow, qualityRows } from "#wire/index.ts";
import { createChain, type Query, startTestHub, type TestHub } from "./fixture.ts";

let hub: TestHub;
beforeAll(async () => {
  hub = await startTestHub();
});
afterAll(() => hub.close());

const HOUR = { granularity: 1, granularityTimeBase: 3 };
const HOUR_MS = 3_600_000;
const BEGIN_MS = Date.UTC(2025, 4, 5);
const iso = (ms: number) => new Date(ms).toISOString();
const at = (hour: number) => iso(BEGIN_MS + hour * HOUR_MS);
/** Never the same value twice in a row, and never far from the others. */
const usual = (hour: number) => 10 + (hour % 24) + ((hour * 7) % 5) / 10;
const hourly = (count: number, valueAt = usual) =>
  Array.from({ length: count }, (_, hour) => ({ date: at(hour), value: valueAt(hour) }));

async function judged(data: readonly object[], facts: object = {}, query: Query = {}): Promise<QualityRow> {
  const { variableIds } = await createChain(hub, { zone: "UTC", variables: [{ ...HOUR, ...facts }] });
  const [id = 0] = variableIds;
  await hub.push([{ variableId: id, data }]);
  return row(id, { To: at(data.length), ...query });
}
async function row(id: number, query: Query): Promise<QualityRow> {
  const [found] = qualityRows.parse(await hub.get("/dataQuality", { VariableId: id, ...query }));
  if (found === undefined) throw new Error("no row");
  return found;
}
const checks = ({ reasons }: QualityRow) => reasons.map(({ check }) => check);

test("a series without a fault has 100 and no reasons", async () => {
  const found = await judged(hourly(24 * 30));
  expect(found).toMatchObject({ score: 100, reasons: [], points: 720, warnings: [], negative: null });
  expect(found.freshness).toEqual({ newest: "2025-06-03T23:00:00+00:00", ageSeconds: 3_600, stepsLate: 0 });
});

test("gaps lower the score, and so does a newest point that is old", async () => {
  const found = await judged(
    hourly(100).filter((_, hour) => hour < 40 || hour >= 50),
    {},
    { To: at(120) },
  );
  expect(found.gaps).toMatchObject({ count: 2, expected: 120, missing: 30, missingShare: 0.25 });
  expect(found.freshness).toMatchObject({ stepsLate: 20 });
  expect(found.reasons).toMatchObject([
    { check: "gaps", penalty: 25 },
    { check: "freshness", penalty: 20 },
  ]);
  expect(found.score).toBe(55);
});

test.each([
  [2, 0],
  [4, 0],
  [6, 30],
  [12, 0],
])(
  "steps of %i hours may follow the clocks of the zone, %i minutes past the hour, or elapsed time",
  async (hours, minutes) => {
    const facts = { granularity: hours, granularityTimeBase: 3 };
    const first = Temporal.PlainDateTime.from("2026-03-01T00:00").add({ minutes });
    const length = (60 * 24) / hours;
    const local = Array.from({ length }, (_, step) =>
      first.add({ hours: step * hours }).toZonedDateTime("Europe/Paris"),
    );
    const dates = {
      local: local.map(({ epochMilliseconds }) => epochMilliseconds),
      elapsed: local.map((_, step) => Date.UTC(2026, 2, 1) + step * hours * HOUR_MS),
    };
    for (const [kind, all] of Object.entries(dates)) {
      const { variableIds } = await createChain(hub, { zone: "Europe/Paris", variables: [facts] });
      const data = all.map((ms, step) => ({ date: iso(ms), value: usual(step) }));
      const [late = { date: "" }] = data.splice(-1);
      const query = { To: iso((all.at(-1) ?? 0) + hours * HOUR_MS) };
      await hub.push([
        { variableId: variableIds[0], data: [...data, { date: iso(Date.parse(late.date) + 60_000), value: 1 }] },
      ]);
      const found = await row(variableIds[0] ?? 0, query);
      expect([kind, found.gaps.missing, found.duplicates.crowded]).toEqual([kind, 0, 0]);
      expect(found.offGrid).toMatchObject({ count: 1, list: [{ seconds: 60 }] });
    }
  },
);

test("a flat line is long, in points and in time; zeros are one on request", async () => {
  const flat = (hour: number) => (hour >= 30 && hour < 60 ? 5 : hour >= 100 && hour < 140 ? 0 : usual(hour));
  const found = await judged(hourly(240, flat));
  const line = { from: at(30).replace(".000Z", "+00:00"), to: at(59).replace(".000Z", "+00:00"), points: 30, value: 5 };
  expect(found.flatLines).toEqual({ count: 1, points: 30, list: [line] });
  expect(checks(found)).toContain("flatLines");
  const { variableId } = found;
  expect((await row(variableId, { To: at(240), FlatLineZeros: true })).flatLines).toMatchObject({
    count: 2,
    points: 70,
  });
  expect((await row(variableId, { To: at(240), FlatLineHours: 30 })).flatLines.count).toBe(0);
  expect((await row(variableId, { To: at(240), FlatLinePoints: 31 })).flatLines.count).toBe(0);
});

test("an outlier is far from the usual value of its hour of the week", async () => {
  // 1,000 at each Sunday noon is usual; at another noon it is not.
  const weekly = (hour: number) => (hour % 168 === 156 ? 1_000 : usual(hour));
  const odd = 8 * 168 + 12;
  const found = await judged(hourly(12 * 168, (hour) => (hour === odd ? 1_000 : weekly(hour))));
  expect(found.outliers.list.map(({ date, value }) => [date, value])).toEqual([
    [at(odd).replace(".000Z", "+00:00"), 1_000],
  ]);
  expect(found.outliers.list[0]?.usual).toBeCloseTo(22.2, 0);
  expect(checks(found)).toEqual(["outliers"]);
  const { variableId } = found;
  expect((await row(variableId, { To: at(12 * 168), OutlierDeviations: 10_000 })).outliers.count).toBe(0);
});

test("where most values are equal, the other one is an outlier", async () => {
  const found = await judged(
    hourly(100, (hour) => (hour === 70 ? 90 : 3)),
    {},
    { FlatLineHours: 1_000 },
  );
  expect(found.outliers).toMatchObject({ count: 1, list: [{ value: 90, usual: 3 }] });
});

test("of a counter steps back count, and outliers are those of the differences", async () => {
  const counter = (hour: number) => (hour < 50 ? hour * 2 : hour === 80 ? 5_000 : hour - 40) + ((hour * 7) % 3) / 10;
  const found = await judged(hourly(120, counter), { quantityType: 3 });
  expect(found.negative?.list.map(({ date }) => date)).toEqual(
    [50, 81].map((hour) => at(hour).replace(".000Z", "+00:00")),
  );
  expect(found.negative?.list[0]).toMatchObject({ value: 10.2, before: 98.1 });
  expect(found.outliers.list.map(({ date }) => date)).toContain(at(80).replace(".000Z", "+00:00"));
});

test("of an integrated quantity negative values count, of others they may be", async () => {
  const below = hourly(48, (hour) => (hour === 7 ? -1 : usual(hour)));
  const integrated = await judged(below, { quantityType: 2 });
  expect(integrated.negative).toEqual({
    count: 1,
    list: [{ date: at(7).replace(".000Z", "+00:00"), value: -1, before: null }],
  });
  expect((await judged(below, { quantityType: 1 })).negative).toBeNull();
});

test("points beside the expected dates, and beyond the first of a step, are counted", async () => {
  const data = [
    ...hourly(48).map((point, hour) =>
      hour === 20 ? { ...point, date: iso(BEGIN_MS + hour * HOUR_MS + 300_000) } : point,
    ),
    { date: iso(BEGIN_MS + 30 * HOUR_MS + 60_000), value: 1 },
  ];
  const found = await judged(data, {}, { To: at(48) });
  expect(found.offGrid?.list.map(({ seconds }) => seconds)).toEqual([300, 60]);
  expect(found.duplicates).toEqual({ crowded: 1, replaced: null, repeated: null });
  expect(found.gaps.missing).toBe(0);
});

test("dates that were replaced by a version, and those by the same value, are counted", async () => {
  const { variableIds } = await createChain(hub, { zone: "UTC", variables: [{ ...HOUR, isVersioned: true }] });
  const [variableId = 0] = variableIds;
  const data = hourly(48);
  await hub.push([{ variableId, data }]);
  await hub.push([{ variableId, data: data.slice(0, 5) }]);
  await hub.push([{ variableId, data: data.slice(3, 6).map((point) => ({ ...point, value: 17 })) }]);
  expect((await row(variableId, { To: at(48) })).duplicates).toEqual({ crowded: 0, replaced: 8, repeated: 5 });
});

test("the score is 0 without points, null without a step, and MaxScore keeps the bad ones", async () => {
  const { sourceId, variableIds } = await createChain(hub, { zone: "UTC", variables: [HOUR, HOUR, {}] });
  const [good = 0, empty = 0, unknown = 0] = variableIds;
  await hub.push([
    { variableId: good, data: hourly(48) },
    { variableId: unknown, data: hourly(3) },
  ]);
  const query = { SourceId: sourceId, From: at(0), To: at(48) };
  const rows = qualityRows.parse(await hub.get("/dataQuality", query));
  expect(rows.map(({ variableId, score }) => [variableId, score])).toEqual([
    [good, 100],
    [empty, 0],
    [unknown, null],
  ]);
  expect(rows[2]?.warnings).toEqual([expect.stringContaining("expected points are not known")]);
  // Between two expected dates nothing is known.
  expect(await row(empty, { From: at(0), To: iso(BEGIN_MS + 1_000) })).toMatchObject({ score: 0 });
  const between = { From: iso(BEGIN_MS + 1_000), To: iso(BEGIN_MS + 1_800_000) };
  expect(await row(empty, between)).toMatchObject({ points: 0, gaps: { expected: 0 }, score: null, reasons: [] });
  const bad = qualityRows.parse(await hub.get("/dataQuality", { ...query, MaxScore: 50 }));
  expect(bad.map(({ variableId }) => variableId)).toEqual([empty, unknown]);
});

const median = (values: readonly number[]) => {
  const sorted = values.toSorted((one, other) => one - other);
  const at = (index: number) => sorted[index] ?? Number.NaN;
  return (at(Math.floor((sorted.length - 1) / 2)) + at(Math.ceil((sorted.length - 1) / 2))) / 2;
};

function plainUsual(values: readonly number[]) {
  const middle = median(values);
  const distances = values.map((value) => Math.abs(value - middle));
  const mean = distances.reduce((sum, one) => sum + one, 0) / values.length;
  return { middle, deviation: median(distances) > 0 ? 1.4826 * median(distances) : 1.2533 * mean };
}

test("outliers agree with a plain calculation over random values, of the whole and by hour of the week", () => {
  const values = fc.array(fc.oneof(fc.integer({ min: -5, max: 5 }), fc.double({ min: -1e3, max: 1e3, noNaN: true })), {
    minLength: 24,
    maxLength: 200,
  });
  const facts = fc.record({ isWeekly: fc.boolean(), deviations: fc.constantFrom(1, 3, 8) });
  fc.assert(
    fc.property(values, facts, (all, { isWeekly, deviations }) => {
      // By eight hours: few hours of the week, each with several values.
      const stepHours = isWeekly ? 8 : 1;
      const atMs = all.map((_, index) => BEGIN_MS + index * stepHours * HOUR_MS);
      const found = outliersOf(Float64Array.from(atMs), Float64Array.from(all), {
        stepMs: isWeekly ? HOUR_MS : null,
        zone: "Asia/Kathmandu",
        deviations,
      });
      const whole = plainUsual(all);
      const weeks = 4 * 168 * HOUR_MS;
      const usual = all.map((_, index) => {
        const same = all.filter((__, other) => ((other - index) * stepHours) % 168 === 0);
        if (!isWeekly || (all.length - 1) * stepHours * HOUR_MS < weeks || same.length < 8) return whole;
        const own = plainUsual(same);
        return { ...own, deviation: Math.max(own.deviation, whole.deviation / 4) };
      });
      const wanted = all.flatMap((value, index) => {
        const { middle, deviation } = usual[index] ?? whole;
        return deviation > 0 && Math.abs(value - middle) > deviations * deviation ? [atMs[index]] : [];
      });
      expect(found.map((one) => one.atMs)).toEqual(wanted);
    }),
  );
});
