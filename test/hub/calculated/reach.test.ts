import { expect, test } from "vitest";
import { endOfPart, stretchesOf, unitOfTimeBase } from "#hub/calculated/recalculation/parts.ts";
import { affectedBy, type InputReach, merged, seenDates } from "#hub/calculated/recalculation/reach.ts";
import { regularSteps } from "./regular-steps.ts";

const ZONE = "Europe/Paris";
const at = (text: string) => Temporal.Instant.from(text).epochMilliseconds;
const shown = (ms: number | null) => (ms === null ? null : new Date(ms).toISOString().replace(":00.000Z", "Z"));
const PLAIN: InputReach = { granularity: "Raw", collected: [], period: { kind: "window" }, points: 0 };
const EXTENT = { fromMs: at("2025-01-01T00:00Z"), toMs: at("2026-12-31T23:45Z") };

/** Points at the full hours of the extent from `fromMs` on. */
const hourly = (fromMs = EXTENT.fromMs) => regularSteps(3_600_000, { ...EXTENT, fromMs });

const HOURLY = hourly().steps;

async function affected(reach: Partial<InputReach>, from: string, to = from) {
  const change = { fromMs: at(from), toMs: at(to) };
  const found = await affectedBy({ ...PLAIN, ...reach }, change, { zone: ZONE, extent: EXTENT, steps: HOURLY });
  return found === null ? null : [shown(found.fromMs), shown(found.toMs)];
}

async function seen(reach: Partial<InputReach>, from: string, to: string) {
  const window = { fromMs: at(from), toMs: at(to) };
  const found = await seenDates({ ...PLAIN, ...reach }, window, ZONE, HOURLY);
  return [shown(found.fromMs), shown(found.toMs)];
}

test("a change of a plain input affects its own dates", async () => {
  expect(await affected({}, "2026-03-10T10:15Z", "2026-03-10T11:00Z")).toEqual([
    "2026-03-10T10:15Z",
    "2026-03-10T11:00Z",
  ]);
});

test("a change of an aggregated input affects its whole period in the zone of the source", async () => {
  const month = await affected({ granularity: "Month" }, "2026-03-31T22:30Z");
  // 23:30 in UTC is April in Paris; March has an hour less there.
  expect(month).toEqual(["2026-03-31T22:00Z", "2026-04-30T21:59:59.999Z"]);
  const collected = await affected({ collected: ["Day"] }, "2026-03-29T12:00Z");
  expect(collected).toEqual(["2026-03-28T23:00Z", "2026-03-29T21:59:59.999Z"]);
});

test("a relative period reaches so far back, and a change so far forward", async () => {
  const period = { kind: "relative", count: 2, unit: "days" } as const;
  expect(await affected({ period }, "2026-03-28T12:00Z")).toEqual(["2026-03-28T12:00Z", "2026-03-30T11:00Z"]);
  expect(await seen({ period }, "2026-03-30T11:00Z", "2026-03-30T12:00Z")).toEqual([
    "2026-03-28T12:00Z",
    "2026-03-30T12:00Z",
  ]);
});

test("a change inside an absolute period affects all outputs, one outside of it none", async () => {
  const period = { kind: "absolute", fromMs: at("2026-01-01T00:00Z"), endMs: at("2026-02-01T00:00Z") } as const;
  expect(await affected({ period }, "2026-01-31T23:59Z")).toEqual([shown(EXTENT.fromMs), shown(EXTENT.toMs)]);
  expect(await affected({ period }, "2026-02-01T00:00Z")).toBeNull();
  expect(await seen({ period }, "2026-06-01T00:00Z", "2026-06-02T00:00Z")).toEqual([
    "2026-01-01T00:00Z",
    "2026-01-31T23:59:59.999Z",
  ]);
});

test("the last points reach back so many points, and a change so many points forward", async () => {
  expect(await affected({ points: 3 }, "2026-03-10T10:00Z")).toEqual(["2026-03-10T10:00Z", "2026-03-10T13:00Z"]);
  expect(await seen({ points: 3 }, "2026-03-10T10:30Z", "2026-03-10T12:00Z")).toEqual([
    "2026-03-10T08:00Z",
    "2026-03-10T12:00Z",
  ]);
  // Of an aggregate, whole periods count.
  expect(await affected({ points: 1, granularity: "Day" }, "2026-06-10T10:00Z")).toEqual([
    "2026-06-09T22:00Z",
    "2026-06-11T21:59:59.999Z",
  ]);
});

test.each([
  ["Day", 365, "2025-12-31T23:00Z", 8],
  ["Hour", 8_760, "2025-12-31T23:00Z", 8],
  ["Month", 12, "2025-12-31T23:00Z", 12],
] as const)("periods of %s are counted by a few queries of ordered dates", async (granularity, points, from, most) => {
  const { steps, queries } = hourly();
  const window = { fromMs: at("2026-12-31T23:00Z"), toMs: at("2026-12-31T23:00Z") };
  const found = await seenDates({ ...PLAIN, granularity, points }, window, ZONE, steps);
  expect(shown(found.fromMs)).toBe(from);
  expect(queries.made).toBeLessThanOrEqual(most);
  // Where periods have many points, the queries pass over most of them.
  if (granularity === "Month") expect(queries.dates).toBeLessThan(2_000);
});

test("fewer periods than the last points want are all that there is", async () => {
  const { steps } = hourly(at("2026-12-01T12:00Z"));
  const window = { fromMs: at("2026-12-31T23:00Z"), toMs: at("2026-12-31T23:00Z") };
  const dates = (points: number) => seenDates({ ...PLAIN, granularity: "Day", points }, window, ZONE, steps);
  expect(shown((await dates(31)).fromMs)).toBe("2026-11-30T23:00Z");
  expect((await dates(32)).fromMs).toBe(Number.NEGATIVE_INFINITY);
});

test("a change whose last points reach beyond the newest point affects all later outputs", async () => {
  expect(await affected({ points: 9 }, "2026-12-31T20:00Z")).toEqual(["2026-12-31T20:00Z", "2026-12-31T23:45Z"]);
});

test("intervals that overlap or adjoin become one", () => {
  const intervals = [
    { fromMs: 50, toMs: 60 },
    { fromMs: 10, toMs: 19 },
    { fromMs: 20, toMs: 30 },
  ];
  expect(merged(intervals)).toEqual([
    { fromMs: 10, toMs: 30 },
    { fromMs: 50, toMs: 60 },
  ]);
});

test("a long window is cut at the calendar of the zone", () => {
  const window = { fromMs: at("2024-02-10T00:00Z"), toMs: at("2027-01-01T00:00Z") };
  const end = (full: string | null, ...granularities: ("Raw" | "Week" | "Month")[]) =>
    shown(endOfPart(window, full === null ? null : at(full), granularities, ZONE));
  expect(end(null, "Raw")).toBe("2027-01-01T00:00Z");
  expect(end("2025-06-15T12:00Z", "Raw")).toBe("2024-12-31T22:59:59.999Z");
  expect(end("2024-05-15T12:00Z", "Raw")).toBe("2024-04-30T21:59:59.999Z");
  expect(end("2024-02-25T12:00Z", "Raw")).toBe("2024-02-18T22:59:59.999Z");
  // A month is never cut: the first part has more points than it should.
  expect(end("2024-02-25T12:00Z", "Month")).toBe("2024-02-29T22:59:59.999Z");
  expect(end("2025-06-15T12:00Z", "Week")).toBe("2025-06-08T21:59:59.999Z");
});

test("a formula is calculated for the dates for which it holds, whose end is excluded", () => {
  const formulas = [
    { name: "new", fromMs: 100, endMs: null },
    { name: "old", fromMs: null, endMs: 100 },
    { name: "never", fromMs: 500, endMs: 600 },
  ];
  const found = stretchesOf(formulas, { fromMs: 40, toMs: 300 });
  expect(found.map(({ formula, fromMs, toMs }) => [formula.name, fromMs, toMs])).toEqual([
    ["old", 40, 99],
    ["new", 100, 300],
  ]);
});

test("the units of relative periods are those of the list of periods", () => {
  expect([1, 4, 7, 8].map(unitOfTimeBase)).toEqual(["seconds", "days", "years", null]);
});
