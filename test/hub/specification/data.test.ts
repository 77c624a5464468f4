import { afterAll, beforeAll, expect } from "vitest";
import { createChain, type Query, startTestHub, type TestHub } from "../fixture.ts";
import { rule } from "./rule.ts";

let hub: TestHub;
let id = 0;
let other = 0;
let empty = 0;
let sourceId = 0;
/** 1 at 00:00, 2 at 01:00, and so on, of two days in UTC. */
const HOURS = Array.from({ length: 48 }, (_, hour) => ({
  date: new Date(Date.UTC(2026, 2, 1) + hour * 3_600_000).toISOString(),
  value: hour + 1,
}));
beforeAll(async () => {
  hub = await startTestHub();
  const chain = await createChain(hub, {
    zone: "Asia/Tokyo",
    source: { timeZoneId: "Europe/Paris" },
    variables: [{ variableTypeId: 41 }, { variableTypeId: 42, unitId: 4 }, { variableTypeId: 41 }],
  });
  sourceId = chain.sourceId;
  [id = 0, other = 0, empty = 0] = chain.variableIds;
  await hub.push([
    { variableId: id, data: HOURS },
    { variableId: other, data: HOURS.slice(0, 2) },
  ]);
});
afterAll(() => hub.close());

interface Row {
  readonly rawValue: number;
  readonly variableId: number;
  readonly date: string;
  readonly unitId: number;
}
const rows = (query: Query): Promise<Row[]> => hub.get("/data", { VariableId: id, ...query });
const values = async (query: Query) => (await rows(query)).map(({ rawValue }) => rawValue);
const variables = async (query: Query) => {
  const found: Row[] = await hub.get("/data", { DisplayLevel: "ValueVariable", ...query });
  return [...new Set(found.map(({ variableId }) => variableId))];
};
const refused = async (query: Query) => {
  const answer = await hub.call("GET", "/data", { query: { VariableId: id, ...query } });
  expect(answer.status).toBe(400);
  return answer.body.detail as string;
};
const UTC = { TimeZoneId: "UTC" };

rule("data.post", async () => {
  const query = { VariableIds: [id, other], From: "2026-03-01T22:00:00Z", DisplayLevel: "ValueVariableDate" };
  const asked = await hub.get("/data", query);
  expect(asked.length).toBeGreaterThan(0);
  expect(await hub.post("/data", query)).toEqual(asked);
});
rule("limits.url", async () => {
  const far = Array.from({ length: 80 }, (_, index) => 1_000_000 + index);
  expect(await variables({ VariableIds: [...far.slice(1), id] })).toEqual([id]);
  const many = Array.from({ length: 20_000 }, (_, index) => 1_000_000 + index);
  const body = { VariableIds: [...many, id], DisplayLevel: "ValueVariable", "Paging.ItemsPerPage": 1 };
  expect(await hub.post("/data", body)).toEqual([{ rawValue: 1, unitId: 8, variableId: id }]);
});
rule("data.variable", async () => {
  expect(await variables({ VariableId: other })).toEqual([other]);
  expect(await variables({ VariableIds: [id, other] })).toEqual([id, other]);
});
rule("data.source", async () => {
  expect(await variables({ SourceId: sourceId })).toEqual([id, other]);
  expect(await variables({ SourceIds: [sourceId, 999_999] })).toEqual([id, other]);
});
rule("data.type", async () => {
  expect(await variables({ VariableTypeId: 42 })).toEqual([other]);
  expect(await variables({ VariableTypeIds: [41, 42] })).toEqual([id, other]);
});
rule("data.account", async () => {
  const query = { VariableId: id, AccountId: 1 };
  const asked = (as: string, account: number) => hub.call("GET", "/data", { as, account, query });
  expect((await asked("admin", 2)).body).toHaveLength(48);
  expect(await asked("second", 2)).toMatchObject({ status: 403 });
  expect((await asked("plain", 1)).body).toHaveLength(48);
});
rule("data.from", async () => expect((await values({ From: "2026-03-01T05:00:00Z" }))[0]).toBe(6));
rule("data.to", async () => expect((await values({ To: "2026-03-01T05:00:00Z" })).at(-1)).toBe(5));
rule("data.boundary", async () => {
  expect((await values({ To: "2026-03-01T05:00:00Z", IncludeToBoundary: true })).at(-1)).toBe(6);
  expect((await values({ To: "2026-03-01T05:00:00Z", IncludeToBoundary: false })).at(-1)).toBe(5);
});
rule("data.time-zone", async () => {
  for (const TimeZoneId of ["Europe/Helsinki", "FLE Standard Time"]) {
    const [first] = await rows({
      TimeZoneId,
      From: "2026-03-01T10:00:00",
      DisplayLevel: "ValueVariableDate",
    });
    expect(first).toMatchObject({ rawValue: 9, date: "2026-03-01T10:00:00+02:00" });
  }
  expect(await refused({ TimeZoneId: "Mars/Olympus" })).toContain("TimeZoneId");
});
rule("data.reporting-zone", async () => {
  const query = {
    UseReportingTimezone: true,
    From: "2026-03-01T10:00:00",
    DisplayLevel: "ValueVariableDate",
  };
  expect((await rows(query))[0]).toMatchObject({ rawValue: 2, date: "2026-03-01T10:00:00+09:00" });
});
rule("data.zones-exclusive", async () => {
  expect(await refused({ ...UTC, UseReportingTimezone: true })).toContain("mutually exclusive");
});
rule("data.granularity", async () => {
  const counts: Record<string, number> = { Minute: 48, Hour: 48, Day: 2, Week: 2, Month: 1, Year: 1, All: 1 };
  for (const [Granularity, count] of Object.entries(counts))
    expect(await rows({ ...UTC, Granularity, Aggregation: "COUNT" }), Granularity).toHaveLength(count);
  expect(await rows({ Granularity: "Raw" })).toHaveLength(48);
  expect(await refused({ Granularity: "Fortnight", Aggregation: "SUM" })).toContain("Granularity");
});
rule("data.aggregation", async () => {
  expect(await rows({ Granularity: "Raw", Aggregation: "None" })).toHaveLength(48);
  const expected: Record<string, number> = {
    SUM: 1_176,
    MIN: 1,
    MAX: 48,
    AVG: 24.5,
    COUNT: 48,
    VAR: 196,
    STDEV: 14,
  };
  for (const [Aggregation, value] of Object.entries(expected)) {
    const [row] = await rows({ Granularity: "All", Aggregation });
    expect(
      Object.values(row ?? {}).filter((one) => one !== 8),
      Aggregation,
    ).toEqual([value]);
  }
  expect(await refused({ Granularity: "Day", Aggregation: "MEDIAN" })).toContain("Aggregation");
});
rule("data.aggregations", async () => {
  const query = { Granularity: "All", Aggregations: ["MIN", "MAX", "COUNT"] };
  expect(await rows(query)).toEqual([{ minValue: 1, maxValue: 48, countValue: 48, unitId: 8 }]);
});
rule("data.units", async () => {
  for (const name of ["TargetUnits", "UnitTransformation"]) {
    const converted = await rows({ [name]: [4, 7, 9], To: "2026-03-01T01:00:00Z" });
    expect(converted).toEqual([{ rawValue: 1_000, unitId: 7 }]);
  }
});
rule("data.raw-or-aggregate", async () => {
  expect(await refused({ Granularity: "Raw", Aggregation: "SUM" })).toContain("mutually exclusive");
});
rule("data.all", async () => {
  const query = {
    VariableIds: [id, other],
    Granularity: "All",
    Aggregation: "COUNT",
    DisplayLevel: "ValueVariable",
  };
  expect(await hub.get("/data", query)).toMatchObject([
    { variableId: id, countValue: 48 },
    { variableId: other, countValue: 2 },
  ]);
});
rule("data.absent", async () => {
  expect(await variables({ VariableIds: [id, empty] })).toEqual([id]);
  const query = { VariableIds: [id, empty], Granularity: "Day", Aggregation: "COUNT" };
  expect(await variables(query)).toEqual([id]);
});
rule("data.utc-shift", async () => {
  const days = async (query: Query) =>
    (
      (await hub.get("/data", { VariableId: id, Granularity: "Day", Aggregation: "COUNT", ...query })) as {
        countValue: number;
      }[]
    ).map(({ countValue }) => countValue);
  expect(await days({})).toEqual([24, 24]);
  expect(await days({ UseReportingTimezone: true })).toEqual([15, 24, 9]);
});
rule("data.latest", async () => {
  const query = {
    VariableIds: [id, other, empty],
    DisplayLevel: "ValueVariableDateSource",
    "Paging.PageNumber": 0,
    "Paging.ItemsPerPage": 1,
    PagingOrder: "DESC",
  };
  expect(await hub.get("/data", query)).toMatchObject([
    { variableId: id, rawValue: 48, sourceId },
    { variableId: other, rawValue: 2, sourceId },
  ]);
});

async function filled(isVersioned = false): Promise<number> {
  const { variableIds } = await createChain(hub, { variables: [{ isVersioned }] });
  await hub.push([{ variableId: variableIds[0], data: HOURS.slice(0, 5) }]);
  return variableIds[0] ?? 0;
}
const remove = (query: Query) => hub.call("DELETE", "/data", { query });
rule("data.delete", async () => {
  const victim = await filled();
  const bounds = { FromDateUtc: "2026-03-01T01:00:00", ToDateUtc: "2026-03-01T03:00:00" };
  expect(await remove({ VariableIds: victim, ...bounds })).toMatchObject({
    status: 200,
    body: { points: 2 },
  });
  expect(await values({ VariableId: victim })).toEqual([1, 4, 5]);
});
rule("data.delete-required", async () => {
  expect(await remove({ FromDateUtc: "2026-03-01T00:00:00" })).toMatchObject({ status: 400 });
});
rule("data.what-if", async () => {
  const victim = await filled();
  const body = { VariableIds: [victim], WhatIf: true };
  const would = await hub.call("DELETE", "/data", { body });
  expect(would).toMatchObject({ status: 200, body: { whatIf: true, points: 5 } });
  expect(await values({ VariableId: victim })).toEqual([1, 2, 3, 4, 5]);
});
rule("data.delete-final", async () => {
  const victim = await filled(true);
  const again = (value: number, version: string) =>
    hub.push([{ variableId: victim, version, data: [{ ...HOURS[0], value }] }]);
  await again(7, "kept");
  expect(await remove({ VariableIds: victim })).toMatchObject({ body: { points: 5, versions: 6 } });
  const queries = [{ AllVersions: true }, { VersionTag: "kept" }, { AsOf: "2999-01-01T00:00:00Z" }];
  for (const query of queries) expect(await rows({ VariableId: victim, ...query })).toEqual([]);
  await again(8, "after");
  expect(await rows({ VariableId: victim, AllVersions: true })).toMatchObject([{ rawValue: 8 }]);
});
