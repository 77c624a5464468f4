/** /dataLossDetection and /dataQuality, also against a naive calculation over random histories. */
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type LossRow, lossRows, type QualityRow, qualityRows } from "#wire/index.ts";
import { createChain, type Query, startTestHub, type TestHub } from "./fixture.ts";
import { expectedDates, missingRuns } from "./naive-losses.ts";

let hub: TestHub;
beforeAll(async () => {
  hub = await startTestHub();
});
afterAll(() => hub.close());

const QUARTER = { granularity: 15, granularityTimeBase: 2 };
const HOUR = { granularity: 1, granularityTimeBase: 3 };
const DAY = { granularity: 1, granularityTimeBase: 4 };
const HOUR_MS = 3_600_000;

interface Point {
  readonly date: string;
  readonly value: number;
}

async function variableWith(points: readonly Point[], facts: object, zone = "Europe/Paris"): Promise<number> {
  const { variableIds } = await createChain(hub, { zone, variables: [facts] });
  const [id = 0] = variableIds;
  if (points.length > 0) await hub.push([{ variableId: id, data: points }]);
  return id;
}

const iso = (ms: number) => new Date(ms).toISOString();
const hours = (from: string, count: number, valueAt: (hour: number) => number = (hour) => (hour % 24) + 1): Point[] =>
  Array.from({ length: count }, (_, hour) => ({ date: iso(Date.parse(from) + hour * HOUR_MS), value: valueAt(hour) }));

async function losses(id: number, query: Query = {}): Promise<LossRow[]> {
  return lossRows.parse(await hub.get("/dataLossDetection", { VariableIds: id, ...query }));
}
async function quality(id: number, query: Query = {}): Promise<QualityRow> {
  const [row] = qualityRows.parse(await hub.get("/dataQuality", { VariableIds: id, ...query }));
  if (row === undefined) throw new Error("no row");
  return row;
}

/** Odd days of calendars, at the beginning of which each random history begins. */
const ZONES: readonly (readonly [zone: string, ...days: string[]])[] = [
  ["Europe/Paris", "2025-03-29", "2025-10-25"],
  ["America/New_York", "2025-03-08", "2025-11-01"],
  ["Australia/Lord_Howe", "2025-04-05", "2025-10-04"], // half an hour
  ["America/Havana", "2025-03-08", "2025-11-01"], // at midnight
  ["Asia/Kathmandu", "2025-01-01"], // 5:45
];
const STEPS = [
  { granularity: 15, base: 2, steps: 300 },
  { granularity: 7, base: 2, steps: 300 },
  { granularity: 1, base: 3, steps: 100 },
  { granularity: 6, base: 3, steps: 60 },
  { granularity: 1, base: 4, steps: 40 },
  { granularity: 24, base: 3, steps: 40 },
  { granularity: 2, base: 4, steps: 40 },
  { granularity: 1, base: 5, steps: 30 },
  { granularity: 1, base: 6, steps: 14 },
  { granularity: 3, base: 6, steps: 6 },
];

const scene = fc.record({
  place: fc
    .constantFrom(...ZONES)
    .chain(([zone, ...days]) => fc.record({ zone: fc.constant(zone), day: fc.constantFrom(...days) })),
  step: fc.constantFrom(...STEPS),
  gone: fc.array(fc.tuple(fc.double({ min: 0, max: 1, noNaN: true }), fc.integer({ min: 1, max: 9 })), {
    maxLength: 6,
  }),
  isVersioned: fc.boolean(),
  jitter: fc.boolean(),
  cut: fc.double({ min: 0.5, max: 1, noNaN: true }),
});
type Scene = typeof scene extends fc.Arbitrary<infer One> ? One : never;

/** Where the first step of a scene begins: quarters in January, months on the first, weeks on Monday. */
function beginning({ place: { day }, step: { granularity, base } }: Scene): string {
  const date = Temporal.PlainDate.from(day);
  if (base === 6) return date.with({ month: granularity === 3 ? 1 : date.month, day: 1 }).toString();
  return base === 5 ? date.subtract({ days: date.dayOfWeek - 1 }).toString() : day;
}

/** 24 hours are a day. */
const isDays = ({ granularity, base }: (typeof STEPS)[number]) => granularity === 24 && base === 3;

function historyOf(one: Scene) {
  const { step, place } = one;
  const plain = isDays(step) ? { granularity: 1, base: 4 } : step;
  const dates = expectedDates(plain, place.zone, beginning(one), step.steps);
  const gone = new Set<number>();
  for (const [share, length] of one.gone) {
    // The first points show when the steps begin.
    const at = Math.max(3, Math.floor(share * dates.length));
    for (const date of dates.slice(at, at + length)) gone.add(date);
  }
  const kept = dates.filter((date) => !gone.has(date));
  const data = kept.map((date, index) => ({
    date: iso(one.jitter && plain.base <= 3 && index % 5 === 4 ? date + (index % 2 === 0 ? 20_000 : -20_000) : date),
    value: index,
  }));
  return { dates, kept, data, untilMs: dates[Math.max(1, Math.floor(one.cut * dates.length) - 1)] ?? 0 };
}

async function expectAgreement(one: Scene, id: number): Promise<void> {
  const { dates, kept, data, untilMs } = historyOf(one);
  const asked = dates.filter((date) => date < untilMs);
  const runs = missingRuns(asked, new Set(kept), untilMs);
  const query = { From: iso(dates[0] ?? 0), To: iso(untilMs), TimeZoneId: "UTC" };
  const said = JSON.stringify({ zone: one.place.zone, step: one.step, query });
  const [row] = await losses(id, query);
  const intervals = row?.intervals.map((run) => ({ ...run, from: Date.parse(run.from), to: Date.parse(run.to) }));
  const missing = runs.reduce((sum, run) => sum + run.missing, 0);
  expect(row, said).toMatchObject({ expected: asked.length, missing, present: asked.length - missing });
  expect(intervals, said).toEqual(runs);
  const { gaps, points } = await quality(id, query);
  const { expected, missingShare, intervals: list } = row ?? {};
  expect(gaps, said).toEqual({ count: runs.length, expected, missing, missingShare, list });
  expect(points, said).toBe(data.filter(({ date }) => Date.parse(date) < untilMs).length);
  const weeks = await losses(id, { ...query, Granularity: "Week" });
  const sum = (column: "expected" | "missing" | "present") =>
    weeks.reduce((total, week) => total + (week[column] ?? 0), 0);
  expect([sum("expected"), sum("missing")], said).toEqual([expected, missing]);
  expect(sum("present"), said).toBe(asked.length - missing);
}

test("agree with a naive calculation over random histories with gaps, changes of the clocks and versions", async () => {
  const scenes = fc.sample(scene, { numRuns: 30, seed: 19 });
  const ids: number[] = [];
  for (const { step, isVersioned, place } of scenes) {
    const facts = { granularity: step.granularity, granularityTimeBase: step.base, isVersioned };
    ids.push(await variableWith([], facts, place.zone));
  }
  const elements = scenes.map((one, index) => ({ variableId: ids[index], data: historyOf(one).data }));
  await hub.push(elements);
  // Later versions of some dates change nothing of what is there.
  await hub.push(elements.map(({ data, ...one }) => ({ ...one, data: data.slice(0, 5) })));
  await Promise.all(scenes.map((one, index) => expectAgreement(one, ids[index] ?? 0)));
});

describe("losses", () => {
  test("of days of 23 and 25 hours: a daily variable misses nothing, an hourly one has as many points", async () => {
    const daily = ["2025-03-29T23:00:00Z", "2025-03-30T22:00:00Z", "2025-10-25T22:00:00Z", "2025-10-26T23:00:00Z"];
    const id = await variableWith(
      daily.map((date) => ({ date, value: 1 })),
      DAY,
    );
    const spring = { From: "2025-03-30T00:00:00", To: "2025-04-01T00:00:00", TimeZoneId: "Europe/Paris" };
    const autumn = { From: "2025-10-26T00:00:00", To: "2025-10-28T00:00:00", TimeZoneId: "Europe/Paris" };
    expect(await losses(id, spring)).toMatchObject([{ expected: 2, present: 2, missing: 0, missingShare: 0 }]);
    expect(await losses(id, autumn)).toMatchObject([{ expected: 2, present: 2, missing: 0 }]);
    const hourly = await variableWith(hours("2025-03-29T23:00:00Z", 23), HOUR);
    const days = await losses(hourly, { ...spring, To: "2025-03-31T00:00:00", Granularity: "Day" });
    expect(days).toMatchObject([{ expected: 23, present: 23, missing: 0 }]);
    expect(await losses(hourly, { ...autumn, To: "2025-10-27T00:00:00" })).toMatchObject([{ expected: 25 }]);
  });

  test("of a step of 24 hours are those of days, also after the clocks change", async () => {
    const days = [25, 26, 27, 28, 29].map((day) => ({ date: `2025-03-${day - 1}T23:00:00Z`, value: 1 }));
    const id = await variableWith(days, { granularity: 24, granularityTimeBase: 3 });
    const [row] = await losses(id, { To: "2025-04-02T00:00:00", TimeZoneId: "Europe/Paris" });
    expect(row?.intervals).toEqual([
      { from: "2025-03-30T00:00:00+01:00", to: "2025-04-02T00:00:00+02:00", missing: 3 },
    ]);
    const before = await losses(id, { From: "2025-03-31T00:00:00", To: "2025-04-02T00:00:00", TimeZoneId: "UTC" });
    expect(before[0]?.intervals.map(({ from }) => from)).toEqual(["2025-03-31T22:00:00+00:00"]);
  });

  test("are not hidden by a step with two points, nor by one that is not over yet", async () => {
    const all = hours("2025-05-01T00:00:00Z", 24);
    const twice = { date: "2025-05-01T03:10:00Z", value: 1 };
    const id = await variableWith([...all.filter((_, hour) => hour !== 9), twice], HOUR);
    expect(await losses(id, { To: "2025-05-02T00:00:00Z" })).toMatchObject([{ expected: 24, missing: 1 }]);
    const yearly = await variableWith([], { granularity: 1, granularityTimeBase: 7 }, "UTC");
    const year = new Date().getUTCFullYear();
    expect(await losses(yearly, { From: `${year - 1}-01-01T00:00:00Z` })).toMatchObject([{ expected: 1, missing: 1 }]);
    const begun = Date.now() - 23.5 * HOUR_MS;
    const open = await variableWith([{ date: iso(begun), value: 1 }], { granularity: 23, granularityTimeBase: 3 });
    expect(await losses(open, { From: iso(begun) })).toMatchObject([{ expected: 1, missing: 0 }]);
  });

  test("by period: each has its own, and OnlyLosses leaves the others out", async () => {
    const all = hours("2025-05-01T00:00:00Z", 96);
    const id = await variableWith([...all.slice(0, 30), ...all.slice(33, 47), ...all.slice(50)], HOUR);
    const query = { From: "2025-05-01T00:00:00Z", To: "2025-05-05T00:00:00Z", TimeZoneId: "UTC", Granularity: "Day" };
    const days = await losses(id, query);
    expect(days.map(({ expected, missing }) => [expected, missing])).toEqual([
      [24, 0],
      [24, 4],
      [24, 2],
      [24, 0],
    ]);
    expect(days[1]?.intervals).toEqual([
      { from: "2025-05-02T06:00:00+00:00", to: "2025-05-02T09:00:00+00:00", missing: 3 },
      { from: "2025-05-02T23:00:00+00:00", to: "2025-05-03T00:00:00+00:00", missing: 1 },
    ]);
    const only = await losses(id, { ...query, OnlyLosses: true });
    expect(only.map(({ from }) => from?.slice(0, 10))).toEqual(["2025-05-02", "2025-05-03"]);
    expect(await losses(id, { ...query, Granularity: "All", To: "2025-05-02T00:00:00Z", OnlyLosses: true })).toEqual(
      [],
    );
  });

  test("without a step it is learned from the dates, or said to be unknown, never a silent 0", async () => {
    const all = hours("2025-05-01T00:00:00Z", 48);
    const learned = await variableWith([...all.slice(0, 20), ...all.slice(24)], {});
    expect(await losses(learned, { To: "2025-05-03T00:00:00Z" })).toMatchObject([
      { step: { origin: "learned", ...HOUR }, expected: 48, present: 44, missing: 4 },
    ]);
    const halved = await variableWith(
      all.filter((_, hour) => hour % 2 === 0),
      {},
    );
    const hidden = { missing: 0, warnings: [expect.stringContaining("declare its granularity")] };
    expect(await losses(halved, { To: "2025-05-03T00:00:00Z" })).toMatchObject([hidden]);
    expect(await quality(halved, { To: "2025-05-03T00:00:00Z" })).toMatchObject({ warnings: hidden.warnings });
    const few = await variableWith(all.slice(0, 3), {});
    const unknown = { step: { origin: "unknown" }, expected: null, present: 3, missing: null, missingShare: null };
    const words = [expect.stringContaining("too few")];
    expect(await losses(few, { OnlyLosses: true })).toMatchObject([{ ...unknown, warnings: words }]);
    const uneven = [1, 4, 9, 17, 29, 50, 86, 150, 260, 450, 781, 1352];
    const odd = await variableWith(
      uneven.map((at) => ({ date: iso(Date.UTC(2025, 4, 1) + at * 61_000), value: 1 })),
      {},
    );
    expect(await losses(odd)).toMatchObject([
      { expected: null, present: 12, warnings: [expect.stringContaining("too uneven")] },
    ]);
    const empty = await variableWith([], QUARTER);
    expect(await losses(empty)).toMatchObject([{ expected: null, present: 0, from: null }]);
    const asked = { From: "2025-05-01T00:00:00Z", To: "2025-05-02T00:00:00Z" };
    expect(await losses(empty, asked)).toMatchObject([{ expected: 96, present: 0, missing: 96, missingShare: 1 }]);
  });

  test("of a list that was cut say so, and what is still to come is not missing", async () => {
    const all = hours("2025-05-01T00:00:00Z", 48);
    const id = await variableWith(
      all.filter((_, index) => index % 3 !== 1),
      HOUR,
    );
    const [row] = await losses(id, { To: "2025-05-03T00:00:00Z", MaxDetails: 5 });
    expect(row).toMatchObject({ missing: 16, intervalsTotal: 16 });
    expect(row?.intervals).toHaveLength(5);
    expect(row?.warnings).toEqual([expect.stringContaining("only the first 5 of 16")]);
    const later = await variableWith(hours("2025-05-01T00:00:00Z", 1), DAY);
    const [future] = await losses(later, { To: "2300-01-01T00:00:00Z", MaxDetails: 0 });
    expect(Date.parse(future?.to ?? "")).toBeLessThanOrEqual(Date.now());
  });

  test("are selected, paged and counted as in /data, and a body says the same", async () => {
    const { siteId, sourceId, variableIds } = await createChain(hub, { variables: [HOUR, HOUR, HOUR] });
    const [one = 0, two = 0, three = 0] = variableIds;
    const ids = async (query: Query) =>
      lossRows.parse(await hub.get("/datalossdetection", query)).map(({ variableId }) => variableId);
    expect(await ids({ SourceIds: sourceId })).toEqual([one, two, three]);
    expect(await ids({ siteIds: siteId, VariableId: [one, two] })).toEqual([one, two]);
    expect(await ids({ SiteId: siteId, "Paging.PageNumber": 1, "Paging.ItemsPerPage": 2 })).toEqual([three]);
    const counted = { SiteId: siteId, "Paging.ItemsPerPage": 1, IncludeItemsCount: true };
    const answer = await hub.call("GET", "/dataLossDetection", { query: counted });
    expect(answer.headers.get("x-total-count")).toBe("3");
    const period = { From: "2025-05-01T00:00:00Z", To: "2025-05-02T00:00:00Z" };
    const body = { ...period, siteIds: [siteId], paging: { itemsPerPage: 2 } };
    for (const path of ["/dataLossDetection", "/dataQuality"]) {
      const asked = await hub.get(path, { ...period, SiteId: siteId, "Paging.ItemsPerPage": 2 });
      expect(asked).toHaveLength(2);
      expect(await hub.post(path, body)).toEqual(asked);
    }
  });

  test.each([
    ["/dataLossDetection", { From: "yesterday" }, "From"],
    ["/dataLossDetection", { From: "2025-02-01T00:00:00", To: "2025-01-01T00:00:00" }, "after To"],
    ["/dataLossDetection", { Granularity: "Hour" }, "Granularity"],
    ["/dataLossDetection", { MaxDetails: 10_001 }, "MaxDetails"],
    ["/dataQuality", { TimeZoneId: "Mars/Olympus" }, "time zone"],
    ["/dataQuality", { FlatLinePoints: 1 }, "FlatLinePoints"],
    ["/dataQuality", { OutlierDeviations: 0 }, "OutlierDeviations"],
    ["/dataQuality", { TimeZoneId: "UTC", UseReportingTimezone: true }, "mutually exclusive"],
  ])("%s %j is refused, and the answer names %s", async (path, query, words) => {
    const answer = await hub.call("GET", path, { query });
    expect(answer).toMatchObject({ status: 400, body: { detail: expect.stringContaining(words) } });
  });
});
