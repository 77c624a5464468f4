/** The referentials, by the values and sizes of the specification. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startTestHub, type TestHub } from "./fixture.ts";

let hub: TestHub;
beforeAll(async () => {
  hub = await startTestHub();
});
afterAll(() => hub.close());

async function list<Row>(path: string): Promise<Row> {
  return (await hub.get(path)) as Row;
}

interface Named {
  readonly id: number;
  readonly name: string;
}

describe("a referential of ids and names", () => {
  it.each([
    ["/sitetypes", 16, { 1: "House", 16: "Public Lighting" }],
    ["/sourceTypes", 114, {}],
    ["/gatewayTypes", 50, {}],
    ["/energyTypes", 27, { 0: "Solar", 1: "Electricity", 28: "Sewer" }],
    ["/energyUsages", 17, { 1: "Ventilation", 17: "Sewer" }],
    [
      "/variableTypes",
      199,
      { 0: "General consumption", 6: "Total consumption", 130: "Manual Consumption", 131: "Generic" },
    ],
  ])("%s has %i entries, each with an id and a name of its own", async (path, size, anchors) => {
    const rows = await list<Named[]>(path);
    expect(rows).toHaveLength(size);
    expect(new Set(rows.map(({ id }) => id)).size).toBe(size);
    expect(new Set(rows.map(({ name }) => name)).size).toBe(size);
    for (const { name } of rows) expect(name).toBe(name.trim());
    const byId = Object.fromEntries(rows.map(({ id, name }) => [id, name]));
    expect(byId).toMatchObject(anchors);
  });

  it("lists the source type of what is fed through push once, under its name", async () => {
    const rows = await list<Named[]>("/sourceTypes");
    expect(rows.filter(({ name }) => name === "Pushed Data")).toHaveLength(1);
  });

  it("leaves out the energy types that do not exist, and gives electricity its usages", async () => {
    const rows = await list<(Named & { energyUsages: Named[] })[]>("/energyTypes");
    expect(rows.filter(({ id }) => id === 12 || id === 23)).toEqual([]);
    const usages = rows.find(({ id }) => id === 1)?.energyUsages.map(({ name }) => name);
    expect(usages).toEqual(["Ventilation", "Heat", "Lighting", "Cooling"]);
    const known = (await list<Named[]>("/energyUsages")).map(({ id, name }) => `${id} ${name}`);
    for (const { energyUsages } of rows)
      for (const { id, name } of energyUsages) expect(known).toContain(`${id} ${name}`);
  });
});

describe("a referential of keys and labels", () => {
  it.each([
    [
      "/quantityTypes",
      { 1: "Instantaneous", 2: "Integrated", 3: "Cumulative", 4: "Minimum", 5: "Maximum", 6: "Averaged" },
    ],
    ["/timePeriods", { 1: "Second", 2: "Minute", 3: "Hour", 4: "Day", 5: "Week", 6: "Month", 7: "Year" }],
    ["/aggregates", { 0: "None", 1: "SUM", 2: "MIN", 3: "MAX", 4: "AVG", 5: "COUNT", 6: "VAR", 7: "STDEV" }],
  ])("%s is a flat map", async (path, expected) => {
    expect(await list(path)).toEqual(expected);
  });
});

it("keeps the granularities apart from the time periods", async () => {
  const rows = await list<{ name: string; value: number }[]>("/granularity");
  expect(Object.fromEntries(rows.map(({ name, value }) => [name, value]))).toEqual({
    Raw: 0,
    Minute: 1,
    Hour: 2,
    Day: 3,
    Month: 4,
    Year: 5,
    All: 6,
    Week: 7,
  });
});

it("names time zones as Windows and as IANA do, each usable for a site", async () => {
  const rows = await list<{ id: string; displayName: string }[]>("/timezones");
  const names = Object.fromEntries(rows.map(({ id, displayName }) => [id, displayName]));
  expect(names).toMatchObject({
    "Romance Standard Time": "(UTC+01:00) Romance Standard Time",
    "Europe/Brussels": "(UTC+01:00) Europe/Brussels",
    "Australia/Sydney": "(UTC+10:00) Australia/Sydney",
    UTC: "(UTC+00:00) UTC",
  });
  expect(Object.keys(names)).toHaveLength(rows.length);
  const some = rows.filter((_, at) => at % 25 === 0);
  await Promise.all(some.map(({ id }) => hub.post("/sites", { name: id, typeId: 1, timeZoneId: id })));
});

it("needs a token for the read and management interface", async () => {
  expect((await fetch(`${hub.url()}/sitetypes`)).status).toBe(401);
  expect((await hub.call("GET", "/sitetypes", { scope: "push-data" })).status).toBe(401);
});
