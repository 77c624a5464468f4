import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type DataRow, dataRows } from "#wire/index.ts";
import { createChain, type Query, startTestHub, type TestHub } from "./fixture.ts";

let hub: TestHub;
let variableId = 0;
let otherId = 0;
let sourceId = 0;
const HOURS = Array.from({ length: 24 }, (_, hour) => `2026-03-01T${String(hour).padStart(2, "0")}:00:00Z`);

beforeAll(async () => {
  hub = await startTestHub();
  const chain = await createChain(hub, {
    zone: "Europe/Paris",
    source: { timeZoneId: "America/New_York" },
    variables: [{ variableTypeId: 41 }, { variableTypeId: 42, unitId: 4 }, {}],
  });
  sourceId = chain.sourceId;
  [variableId = 0, otherId = 0] = chain.variableIds;
  await hub.push([
    { variableId, data: HOURS.map((date, value) => ({ date, value })) },
    { variableId: otherId, data: HOURS.slice(0, 3).map((date, value) => ({ date, value: 100 + value })) },
  ]);
});
afterAll(() => hub.close());

const rows = async (query: Query): Promise<DataRow[]> =>
  dataRows.parse(await hub.get("/data", { VariableId: variableId, ...query }));
const values = async (query: Query) => (await rows(query)).map((row) => row.rawValue);
const dates = async (query: Query) =>
  (await rows({ DisplayLevel: "ValueVariableDate", ...query })).map((row) => row.date);

describe("selection and shape", () => {
  test.each([
    ["Value", { rawValue: 0, unitId: 8 }],
    ["ValueVariable", { rawValue: 0, unitId: 8, variableId: 1 }],
    ["valuevariabledate", { rawValue: 0, unitId: 8, variableId: 1, date: "2026-03-01T00:00:00+00:00" }],
    [
      "ValueVariableDateSource",
      { rawValue: 0, unitId: 8, variableId: 1, date: "2026-03-01T00:00:00+00:00", sourceId: 1 },
    ],
  ])("DisplayLevel=%s adds its columns", async (DisplayLevel, row) => {
    const query = { DisplayLevel, TimeZoneId: "UTC", To: "2026-03-01T01:00:00" };
    expect(await rows(query)).toEqual([row]);
  });

  test("selects by variable, source and type, together with AND; a variable without data is absent", async () => {
    const ids = async (query: Query) =>
      (await hub.get("/data", { DisplayLevel: "ValueVariable", To: HOURS[1] ?? "", ...query })).map(
        (row: DataRow) => row.variableId,
      );
    expect(await ids({ sourceIds: sourceId })).toEqual([variableId, otherId]);
    expect(await ids({ VariableTypeId: 42 })).toEqual([otherId]);
    expect(await ids({ SourceId: sourceId, VariableTypeIds: [41, 7] })).toEqual([variableId]);
    expect(await ids({ VariableIds: [variableId, otherId, 999] })).toEqual([variableId, otherId]);
    expect(await hub.call("GET", "/data")).toMatchObject({ status: 400 });
  });

  test("POST /data takes the same parameters in a body and answers the same", async () => {
    const query = {
      VariableIds: [variableId, otherId],
      From: "2026-03-01T01:00:00Z",
      DisplayLevel: "ValueVariableDate",
    };
    const body = { ...query, variableids: [variableId, otherId], paging: { PageNumber: 1, ItemsPerPage: 2 } };
    const got = await hub.get("/data", { ...query, "Paging.PageNumber": 1, "Paging.ItemsPerPage": 2 });
    expect(await hub.post("/data", body)).toEqual(got);
    expect(got).toHaveLength(2);
  });
});

describe("the period", () => {
  test("includes From; includes To only with IncludeToBoundary", async () => {
    const period = { From: "2026-03-01T05:00:00Z", To: "2026-03-01T07:00:00Z" };
    expect(await values(period)).toEqual([5, 6]);
    expect(await values({ ...period, IncludeToBoundary: true })).toEqual([5, 6, 7]);
  });

  test("is read in TimeZoneId, Windows or IANA, and dates come back in it", async () => {
    const period = { From: "2026-03-01T05:00:00", To: "2026-03-01T06:00:00" };
    for (const TimeZoneId of ["Asia/Kolkata", "India Standard Time"])
      expect(await dates({ ...period, TimeZoneId })).toEqual(["2026-03-01T05:30:00+05:30"]);
  });

  test("is read in the site's zone with UseReportingTimezone", async () => {
    const query = { From: "2026-03-01T05:00:00", To: "2026-03-01T06:00:00", UseReportingTimezone: true };
    expect(await dates(query)).toEqual(["2026-03-01T05:00:00+01:00"]);
  });

  test("without either is read in UTC, and dates come back in the source's zone", async () => {
    expect(await dates({ From: "2026-03-01T05:00:00", To: "2026-03-01T06:00:00" })).toEqual([
      "2026-03-01T00:00:00-05:00",
    ]);
  });

  test("dates with an offset of seconds name the right instant", async () => {
    const { variableIds } = await createChain(hub);
    const instants = ["1900-01-01T00:00:00Z", "1960-06-01T12:00:00Z"];
    await hub.push([{ variableId: variableIds[0], data: instants.map((date) => ({ date, value: 1 })) }]);
    for (const TimeZoneId of ["Europe/Paris", "Africa/Monrovia"]) {
      const shown = await dates({ VariableId: variableIds, TimeZoneId });
      expect(shown.map((date) => Date.parse(date ?? ""))).toEqual(instants.map((date) => Date.parse(date)));
    }
  });

  test.each<[string, Query]>([
    ["both zones", { TimeZoneId: "UTC", UseReportingTimezone: true }],
    ["an unknown zone", { TimeZoneId: "Nowhere" }],
    ["a date that is none", { From: "yesterday" }],
    ["From after To", { From: "2026-03-02", To: "2026-03-01" }],
    ["Raw with an aggregation", { Granularity: "Raw", Aggregation: "SUM" }],
    ["an aggregation without granularity", { Aggregation: "SUM" }],
    ["a granularity without aggregation", { Granularity: "Day" }],
    ["an unknown DisplayLevel", { DisplayLevel: "Everything" }],
    ["a page below 0", { "Paging.PageNumber": -1 }],
    ["an id that is none", { VariableId: "one" }],
  ])("is refused by 400 for %s", async (_, query) => {
    expect(await hub.call("GET", "/data", { query: { VariableId: variableId, ...query } })).toMatchObject({
      status: 400,
    });
  });
});

describe("paging", () => {
  test("counts within each variable, so that one item in descending order is the latest point of each", async () => {
    const latest = await hub.get("/data", {
      SourceId: sourceId,
      DisplayLevel: "ValueVariableDateSource",
      TimeZoneId: "UTC",
      "Paging.PageNumber": 0,
      "Paging.ItemsPerPage": 1,
      PagingOrder: "DESC",
    });
    expect(latest).toEqual([
      { rawValue: 23, unitId: 8, variableId, date: "2026-03-01T23:00:00+00:00", sourceId },
      { rawValue: 102, unitId: 4, variableId: otherId, date: "2026-03-01T02:00:00+00:00", sourceId },
    ]);
  });

  test("pages together are the whole, in order, and x-total-count counts all rows", async () => {
    const pages = await Promise.all(
      [0, 1, 2].map((page) => values({ "Paging.PageNumber": page, "Paging.ItemsPerPage": 10 })),
    );
    expect(pages.flat()).toEqual(HOURS.map((_, hour) => hour));
    const counted = await hub.call("GET", "/data", {
      query: { SourceId: sourceId, IncludeItemsCount: true, "Paging.ItemsPerPage": 1 },
    });
    expect(counted.headers.get("x-total-count")).toBe("27");
    expect(await values({ PagingOrder: "desc", "Paging.ItemsPerPage": 2 })).toEqual([23, 22]);
  });

  test("values come back as they were pushed, to the last bit", async () => {
    const { variableIds } = await createChain(hub);
    const pushed = [0.1, 1 / 3, -17.25, 1e308, 5e-324, -1e-7, 123_456_789.123, 2 ** 53, 0];
    const data = pushed.map((value, hour) => ({ date: HOURS[hour], value }));
    await hub.push([{ variableId: variableIds[0], data }]);
    for (const PagingOrder of ["ASC", "DESC"]) {
      const found = await values({ VariableId: variableIds, PagingOrder });
      expect(found).toEqual(PagingOrder === "ASC" ? pushed : pushed.toReversed());
    }
  });

  test("more points than one chunk come back complete and in order, both ways", async () => {
    const { variableIds } = await createChain(hub);
    const start = Date.UTC(2026, 0, 1);
    const data = Array.from({ length: 5_000 }, (_, value) => ({
      date: new Date(start + value * 60_000).toISOString(),
      value,
    }));
    await hub.push([{ variableId: variableIds[0], data }]);
    const all = data.map(({ value }) => value);
    expect(await values({ VariableId: variableIds })).toEqual(all);
    expect(await values({ VariableId: variableIds, PagingOrder: "DESC" })).toEqual(all.toReversed());
    const page = { VariableId: variableIds, "Paging.PageNumber": 1, "Paging.ItemsPerPage": 2_400 };
    expect(await values(page)).toEqual(all.slice(2_400, 4_800));
  });
});

describe("aggregates", () => {
  test("Granularity=All collapses the window to one row a variable, several aggregates at once", async () => {
    const query = {
      VariableIds: [variableId, otherId],
      Granularity: "All",
      Aggregations: ["SUM", "min", "MAX", "AVG", "COUNT"],
      DisplayLevel: "ValueVariable",
    };
    expect(await hub.get("/data", query)).toEqual([
      { sumValue: 276, minValue: 0, maxValue: 23, avgValue: 11.5, countValue: 24, unitId: 8, variableId },
      {
        sumValue: 303,
        minValue: 100,
        maxValue: 102,
        avgValue: 101,
        countValue: 3,
        unitId: 4,
        variableId: otherId,
      },
    ]);
  });

  test("days are cut in the zone, also those of 23 and 25 hours", async () => {
    const { variableIds } = await createChain(hub);
    const hours = (from: string, count: number) =>
      Array.from({ length: count }, (_, hour) => ({
        date: new Date(Date.parse(from) + hour * 3_600_000).toISOString(),
        value: 1,
      }));
    await hub.push([
      {
        variableId: variableIds[0],
        data: [...hours("2026-03-28T00:00:00Z", 72), ...hours("2026-10-24T00:00:00Z", 72)],
      },
    ]);
    const query = {
      VariableId: variableIds,
      Granularity: "Day",
      Aggregation: "COUNT",
      DisplayLevel: "ValueVariableDate",
    };
    const days = async (more: Query) =>
      (await rows({ ...query, ...more })).map((row) => `${row.date?.slice(0, 10)} ${row.countValue}`);
    expect(await days({ TimeZoneId: "Europe/Paris", From: "2026-03-29", To: "2026-03-30" })).toEqual(["2026-03-29 23"]);
    expect(await days({ UseReportingTimezone: true, From: "2026-10-25", To: "2026-10-26" })).toEqual(["2026-10-25 25"]);
    expect(await days({ TimeZoneId: "UTC", From: "2026-03-29", To: "2026-03-30" })).toEqual(["2026-03-29 24"]);
  });

  test("results beyond the range of JSON numbers are omitted, intermediate ones are not", async () => {
    const { variableIds } = await createChain(hub);
    const push = (day: number, values: number[]) =>
      hub.push([
        {
          variableId: variableIds[0],
          data: values.map((value, hour) => ({ date: `2026-03-0${day}T0${hour}:00:00Z`, value })),
        },
      ]);
    await push(1, [1e308, 1e308, -1e308]);
    await push(2, [1e308, 1e308]);
    await push(3, [1e200, 3e200]);
    await push(4, [1, 3]);
    const Aggregations = ["SUM", "AVG", "VAR", "STDEV", "COUNT", "MAX"];
    const query = { VariableId: variableIds, Granularity: "Day", Aggregations };
    const found = await rows(query);
    expect(found).toEqual([
      {
        sumValue: 1e308,
        avgValue: expect.closeTo(1e308 / 3, -294),
        stdevValue: expect.closeTo(1e308 * Math.sqrt(4 / 3), -294),
        countValue: 3,
        maxValue: 1e308,
        unitId: 8,
      },
      { avgValue: 1e308, varianceValue: 0, stdevValue: 0, countValue: 2, maxValue: 1e308, unitId: 8 },
      {
        sumValue: 4e200,
        avgValue: 2e200,
        stdevValue: expect.closeTo(Math.SQRT2 * 1e200, -186),
        countValue: 2,
        maxValue: 3e200,
        unitId: 8,
      },
      {
        sumValue: 4,
        avgValue: 2,
        varianceValue: 2,
        stdevValue: Math.SQRT2,
        countValue: 2,
        maxValue: 3,
        unitId: 8,
      },
    ]);
    for (const more of [{}, { AllVersions: true }]) {
      const raw = await rows({
        VariableId: variableIds,
        TargetUnits: 7,
        To: "2026-03-01T01:00:00Z",
        ...more,
      });
      expect(raw).toMatchObject([{ unitId: 7 }]);
      expect(raw[0]).not.toHaveProperty("rawValue");
    }
  });

  test("sums of any granularity in any zone add up to the sum of all points", async () => {
    const granularities = ["Minute", "Hour", "Day", "Week", "Month", "Year", "All"];
    const zones = ["UTC", "Europe/Paris", "America/New_York", "Asia/Kathmandu", "Australia/Lord_Howe"];
    const { variableIds } = await createChain(hub);
    const step = 7 * 3_600_000 + 13 * 60_000;
    const data = Array.from({ length: 1_500 }, (_, value) => ({
      date: new Date(Date.UTC(2025, 11, 20) + value * step).toISOString(),
      value,
    }));
    await hub.push([{ variableId: variableIds[0], data }]);
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...granularities),
        fc.constantFrom(...zones),
        fc.constantFrom("ASC", "DESC"),
        async (Granularity, TimeZoneId, PagingOrder) => {
          const query = {
            VariableId: variableIds,
            Granularity,
            TimeZoneId,
            PagingOrder,
            Aggregations: ["SUM", "COUNT"],
            DisplayLevel: "ValueVariableDate",
          };
          const found = await rows(query);
          expect(found.reduce((sum, row) => sum + (row.sumValue ?? 0), 0)).toBe((1_499 * 1_500) / 2);
          expect(found.reduce((sum, row) => sum + (row.countValue ?? 0), 0)).toBe(1_500);
          const starts = found.map((row) => Date.parse(row.date ?? ""));
          expect(starts).toEqual([...new Set(starts)].toSorted((a, b) => (PagingOrder === "ASC" ? a - b : b - a)));
        },
      ),
      { numRuns: 25 },
    );
  });
});
