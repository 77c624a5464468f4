/** Short pages of many variables, which the store reads together: they are what each variable alone would answer. */
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { windowsOf } from "#hub/store/postgres/points.ts";
import { createChain, type Query, startTestHub, type TestHub } from "./fixture.ts";

let hub: TestHub;
let ids: number[] = [];

/** Dates of the points of each variable. The last of some are years before the last of others, and one has none. */
const DATES = [
  monthly(2024, 0, 27),
  monthly(2009, 3, 5),
  ["1985-07-01T00:00:00Z", "1989-12-31T23:59:59Z", "1990-01-01T00:00:00Z"],
  [],
  monthly(2026, 1, 1),
  [...monthly(2012, 10, 3), ...monthly(2025, 11, 3)],
];
/** Of variables without versions and tags, which are kept in blocks: all of them, and all but the newest. */
const IN_BLOCKS = [hourly(2015), [...hourly(2018), ...monthly(2024, 6, 1)]];

function hourly(year: number): string[] {
  return Array.from({ length: 300 }, (_, hour) => new Date(Date.UTC(year, 2, 1, hour)).toISOString());
}

function monthly(year: number, month: number, months: number): string[] {
  // The first instant of a month, its last, and one between, in turn.
  return Array.from({ length: months }, (_, index) => {
    const edges = [
      Date.UTC(year, month + index),
      Date.UTC(year, month + index, 11, 7),
      Date.UTC(year, month + index + 1) - 1,
    ];
    return new Date(edges[index % 3] ?? 0).toISOString();
  });
}

beforeAll(async () => {
  hub = await startTestHub();
  const variables = [
    ...DATES.map((_, index) => ({ isVersioned: index % 2 === 0 })),
    ...IN_BLOCKS.map(() => ({ isVersioned: false })),
  ];
  ids = (await createChain(hub, { variables })).variableIds;
  const elements = (version: string, plus: number) =>
    DATES.flatMap((dates, index) => {
      const chosen = dates.filter((_, place) => plus === 0 || place % 2 === 1);
      const data = chosen.map((date, place) => ({ date, value: plus + 100 * index + place }));
      return data.length === 0 ? [] : [{ variableId: ids[index], version, data }];
    });
  await hub.push(elements("estimated", 0));
  await hub.push(elements("measured", 10_000));
  for (const [index, dates] of IN_BLOCKS.entries()) {
    const data = dates.map((date, place) => ({ date, value: place }));
    await hub.push([{ variableId: ids[DATES.length + index], data }]);
  }
});
afterAll(() => hub.close());

const rows = (more: Query): Promise<object[]> => hub.get("/data", { DisplayLevel: "ValueVariableDate", ...more });

test("the latest point of each variable, however old it is", async () => {
  const latest = { "Paging.PageNumber": 0, "Paging.ItemsPerPage": 1, PagingOrder: "DESC", VariableIds: ids };
  const dates = ((await rows(latest)) as { date: string }[]).map(({ date }) => Date.parse(date));
  const wanted = [...DATES, ...IN_BLOCKS].flatMap((all) => all.slice(-1)).map((date) => Date.parse(date));
  expect(dates.map((ms) => Math.floor(ms / 1_000))).toEqual(wanted.map((ms) => Math.floor(ms / 1_000)));
});

test.each<[string, Query]>([
  ["the latest values", {}],
  ["a version by its tag", { VersionTag: "estimated" }],
  ["another tag, which some points have not", { VersionTag: "measured" }],
  ["a version that nothing has", { VersionTag: "none" }],
  ["as of now", { AsOf: "2090-01-01T00:00:00Z" }],
  ["as of before the push", { AsOf: "2020-01-01T00:00:00Z" }],
  ["a period", { From: "2010-01-01T00:00:00Z", To: "2026-01-01T00:00:00Z" }],
  ["a period up to the edge of a month", { To: "2025-12-01T00:00:00Z", IncludeToBoundary: true }],
  ["a period that ends within a block", { From: "2015-01-01T00:00:00Z", To: "2015-03-05T00:00:00Z" }],
  ["a period that ends with a block", { To: "2015-03-13T11:00:00Z", IncludeToBoundary: true }],
  ["a period that begins behind a block", { From: "2018-03-13T12:00:00Z" }],
  ["a period in the zone of the site", { From: "2026-02-01T00:00:00", UseReportingTimezone: true }],
])("pages of many variables: %s", async (_, query) => {
  const pages = [
    [0, 1],
    [2, 2],
    [0, 20],
    [0, 60],
  ] as const;
  for (const PagingOrder of ["ASC", "DESC"])
    for (const [number, size] of pages) {
      const page = { "Paging.PageNumber": number, "Paging.ItemsPerPage": size, PagingOrder };
      const asked = { ...query, ...page };
      // A variable alone is read in another way.
      const alone: object[] = [];
      for (const VariableId of ids) alone.push(...(await rows({ ...asked, VariableId })));
      expect(await rows({ ...asked, VariableIds: ids })).toEqual(alone);
    }
});

describe("windows of time", () => {
  test("cover the whole range once, from the requested end, cut where partitions begin", () => {
    const ms = fc.integer({ min: -50, max: 50 });
    fc.assert(
      fc.property(fc.uniqueArray(ms), ms, ms, fc.constantFrom("ASC", "DESC"), (cuts, one, other, order) => {
        const [fromMs, lastMs] = [Math.min(one, other), Math.max(one, other)];
        const begins = cuts.sort((a, b) => a - b);
        const partitions = begins.map((begin, index) => ({ fromMs: begin, endMs: begins[index + 1] ?? 99 }));
        const windows = [...windowsOf(partitions, { fromMs, lastMs }, order)];
        if (order === "DESC") windows.reverse();
        let next = fromMs;
        for (const window of windows) {
          expect(window.fromMs).toBe(next);
          expect(next === fromMs || begins.includes(next)).toBe(true);
          expect(window.lastMs).toBeGreaterThanOrEqual(window.fromMs);
          next = window.lastMs + 1;
        }
        expect(next).toBe(lastMs + 1);
      }),
    );
  });
});
