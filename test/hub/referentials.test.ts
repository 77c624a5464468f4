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
    ["/sourceTypes", 114, { 72: "Pushed Data" }],
    ["/gatewayTypes", 50, {}],
    ["/unitFamily", 56, {}],
    [
      "/units",
      177,
      {
        1: "Watt",
        4: "Kilowatt",
        7: "Watt-hour",
        8: "Kilowatt-hour",
        9: "Megawatt-hour",
        18: "Litre",
        19: "Cubic meter",
        28: "Degree Celsius",
        31: "Percent",
      },
    ],
    ["/energyTypes", 27, { 0: "Solar", 1: "Electricity", 28: "Sewer" }],
    ["/energyUsages", 17, { 1: "Ventilation", 17: "Sewer" }],
    [
      "/variableTypes",
      199,
      {
        0: "General consumption",
        6: "Total consumption",
        25: "Total index",
        130: "Manual Consumption",
        131: "Generic",
      },
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

  it("lists the source type of pushed data once, under its name", async () => {
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

describe("the units", () => {
  interface Unit extends Named {
    readonly symbol: string;
    readonly unitFamilyId: number;
    readonly parentId: number;
    readonly divisor: number;
    readonly offset: number;
  }

  it("have one reference in each family, which points at itself and converts nothing", async () => {
    const units = await list<Unit[]>("/units");
    for (const family of await list<Named[]>("/unitFamily")) {
      const members = units.filter(({ unitFamilyId }) => unitFamilyId === family.id);
      const [reference, ...more] = members.filter(({ id, parentId }) => id === parentId);
      expect([family.name, reference?.divisor, reference?.offset, more]).toEqual([family.name, 1, 0, []]);
      for (const { parentId, divisor } of members) {
        expect(parentId).toBe(reference?.id);
        expect(divisor).toBeGreaterThan(0);
      }
    }
    expect(new Set(units.map(({ symbol }) => symbol)).size).toBe(units.length);
  });

  it.each([
    [1, "kWh", 3.6, "MJ"],
    [1, "MWh", 1000, "kWh"],
    [1, "m³", 1000, "L"],
    [100, "°C", 212, "°F"],
    [0, "°C", 273.15, "K"],
    [-40, "°F", -40, "°C"],
    [1, "bar", 14.503773773, "psi"],
    [1, "gal", 3.785411784, "L"],
    [10, "m/s", 36, "km/h"],
    [1, "hp", 745.699871582, "W"],
    [1, "kcal", 4.1868, "kJ"],
    [12, "°C·h", 0.5, "°C·d"],
    [250, "gCO2e/kWh", 0.25, "kgCO2e/kWh"],
    [1, "ha", 10_000, "m²"],
    [1, "mH2O", 98.0665, "mbar"],
  ])("hold the physical fact that %d %s are %d %s", async (value, from, expected, to) => {
    const units = new Map((await list<Unit[]>("/units")).map((unit) => [unit.symbol, unit]));
    const [one, other] = [units.get(from), units.get(to)];
    if (one === undefined || other === undefined) throw new Error(`${from} or ${to} is missing`);
    const reference = (value - one.offset) * one.divisor;
    // To the reference and back: offsets are given in the unit itself.
    expect(reference / other.divisor + other.offset).toBeCloseTo(expected, 8);
    expect(one.unitFamilyId).toBe(other.unitFamilyId);
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
