/** `TargetUnits`: values in the first compatible unit, and never a word less when there is none. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { DataRow } from "#wire/index.ts";
import { createChain, type Query, startTestHub, type TestHub } from "./fixture.ts";

const KILOWATT_HOUR = 8;
const WATT_HOUR = 7;
const MEGAWATT_HOUR = 9;
const WATT = 1;
const CELSIUS = 28;
const KELVIN = 52;
const FAHRENHEIT = 53;

let hub: TestHub;
let energy = 0;
let temperature = 0;

beforeAll(async () => {
  hub = await startTestHub();
  const { variableIds } = await createChain(hub, {
    zone: "UTC",
    variables: [{ unitId: KILOWATT_HOUR }, { unitId: CELSIUS }],
  });
  [energy = 0, temperature = 0] = variableIds;
  const at = (hour: number) => `2026-03-01T0${hour}:00:00Z`;
  await hub.push([
    { variableId: energy, data: [1, 2.5, 4].map((value, hour) => ({ date: at(hour), value })) },
    { variableId: temperature, data: [0, 10, 20].map((value, hour) => ({ date: at(hour), value })) },
  ]);
});
afterAll(() => hub.close());

const rows = async (query: Query) => (await hub.get("/data", query)) as DataRow[];

describe("target units", () => {
  it("convert raw values, and the rows name their unit", async () => {
    const shown = await rows({ VariableId: energy, TargetUnits: WATT_HOUR });
    expect(shown).toEqual([1000, 2500, 4000].map((rawValue) => ({ rawValue, unitId: WATT_HOUR })));
  });

  it("use the first unit of the list in the variable's family, for each variable", async () => {
    const shown = await rows({
      VariableIds: [energy, temperature],
      TargetUnits: [WATT, FAHRENHEIT, MEGAWATT_HOUR, WATT_HOUR],
      DisplayLevel: "ValueVariable",
    });
    expect(shown.map(({ rawValue, unitId }) => [rawValue, unitId])).toEqual([
      [0.001, MEGAWATT_HOUR],
      [0.0025, MEGAWATT_HOUR],
      [0.004, MEGAWATT_HOUR],
      [32, FAHRENHEIT],
      [50, FAHRENHEIT],
      [68, FAHRENHEIT],
    ]);
  });

  it("convert each value before it is aggregated, so that offsets count for each", async () => {
    const [row] = await rows({
      VariableId: temperature,
      TargetUnits: KELVIN,
      Granularity: "Day",
      Aggregations: ["SUM", "MIN", "MAX", "AVG", "COUNT", "VAR", "STDEV"],
    });
    expect(row).toEqual({
      sumValue: expect.closeTo(849.45, 9),
      minValue: 273.15,
      maxValue: 293.15,
      avgValue: expect.closeTo(283.15, 9),
      countValue: 3,
      varianceValue: expect.closeTo(100, 9),
      stdevValue: expect.closeTo(10, 9),
      unitId: KELVIN,
    });
  });

  it("leave values of another family as they are, and report it in a header", async () => {
    const query = { VariableIds: [energy, temperature], TargetUnits: [WATT, FAHRENHEIT] };
    const { body, headers } = await hub.call("GET", "/data", { query });
    expect(body.slice(0, 3)).toEqual([1, 2.5, 4].map((rawValue) => ({ rawValue, unitId: KILOWATT_HOUR })));
    expect(headers.get("x-headgate-warning")).toBe(
      `not converted, since no target unit is of their family: variables ${energy} (unit ${KILOWATT_HOUR})`,
    );
    const converted = await hub.call("GET", "/data", {
      query: { ...query, TargetUnits: [WATT_HOUR, KELVIN] },
    });
    expect(converted.headers.get("x-headgate-warning")).toBeNull();
  });

  it("are ids of units", async () => {
    const { status, body } = await hub.call("GET", "/data", {
      query: { VariableId: energy, TargetUnits: 999 },
    });
    expect([status, body.errors]).toEqual([400, [{ path: "TargetUnits", message: expect.stringContaining("999") }]]);
  });

  it("may be given in a body, and under the other name", async () => {
    const shown = await hub.post("/data", { variableId: energy, unitTransformation: [WATT_HOUR] });
    expect(shown[1]).toEqual({ rawValue: 2500, unitId: WATT_HOUR });
  });
});
