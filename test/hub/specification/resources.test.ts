import { afterAll, beforeAll, expect } from "vitest";
import { UNITS, type Unit } from "#wire/index.ts";
import { createChain, type Query, startTestHub, type TestHub } from "../fixture.ts";
import { rule } from "./rule.ts";

let hub: TestHub;
let siteId = 0;
let sourceId = 0;
let variableId = 0;
const SITE = { name: "Waterworks", typeId: 10, timeZoneId: "Europe/Athens" };
const SOURCE = {
  name: "Pump",
  serialNumber: "PMP-7",
  ean: "541448820000000012",
  meterNumber: "M 77",
  sourceTypeId: 4,
  energyTypeId: 3,
  energyUsageId: 7,
  gatewayTypeId: 2,
  timeZoneId: "America/Lima",
  tags: ["north", "pump"],
  clientData: { Contract: { Main: { Supplier: "Aqua" } } },
};
const VARIABLE = {
  name: "Volume",
  variableTypeId: 6,
  unitId: 19,
  granularity: 15,
  granularityTimeBase: 2,
  quantityType: 3,
  aggregate: 1,
  mappingConfig: "volume",
  tags: ["billing"],
  isVersioned: true,
};
beforeAll(async () => {
  hub = await startTestHub();
  await createChain(hub);
  siteId = await hub.post("/sites", SITE);
  sourceId = (await hub.post("/sources", { ...SOURCE, siteId })).id;
  variableId = await hub.post("/variables", { ...VARIABLE, sourceId });
});
afterAll(() => hub.close());

const site = () => hub.get(`/sites/${siteId}`);
const source = () => hub.get(`/sources/${sourceId}`);
const variable = () => hub.get(`/variables/${variableId}`);
const foundSources = async (query: Query) => (await hub.get("/sources", query)).map((row: { id: number }) => row.id);

rule("site.name", async () => expect(await site()).toMatchObject({ name: "Waterworks" }));
rule("site.type", async () => expect(await site()).toMatchObject({ typeId: 10 }));
rule("site.time-zone", async () => {
  const id = await variableOfSite();
  await hub.push([{ variableId: id, data: [{ date: "2026-02-28T22:30:00Z", value: 1 }] }]);
  const query = { VariableId: id, Granularity: "Day", Aggregation: "SUM", DisplayLevel: "ValueVariableDate" };
  const [row] = await hub.get("/data", { ...query, UseReportingTimezone: true });
  expect(row.date).toBe("2026-03-01T00:00:00+02:00");
});
rule("source.id", async () => expect((await source()).id).toEqual(expect.any(Number)));
rule("source.name", async () => expect(await source()).toMatchObject({ name: "Pump" }));
rule("source.site", async () => expect(await source()).toMatchObject({ siteId }));
rule("source.serial-number", async () => {
  expect(await source()).toMatchObject({ serialNumber: "PMP-7" });
  expect(await foundSources({ SerialNumber: "PMP-7" })).toEqual([sourceId]);
});
rule("source.ean", async () => {
  expect(await source()).toMatchObject({ ean: "541448820000000012" });
  expect(await foundSources({ Ean: "541448820000000012" })).toEqual([sourceId]);
});
rule("source.meter-number", async () => {
  expect(await source()).toMatchObject({ meterNumber: "M 77" });
  expect(await foundSources({ MeterNumber: "M 77" })).toEqual([sourceId]);
});
rule("source.type", async () => expect(await source()).toMatchObject({ sourceTypeId: 4 }));
rule("source.pushed-data", async () => {
  const types = (await hub.get("/sourceTypes")) as { id: number; name: string }[];
  const pushed = types.filter(({ name }) => name === "Pushed Data");
  expect(pushed).toHaveLength(1);
  const made = await hub.post("/sources", { name: "Fed", siteId, sourceTypeId: pushed[0]?.id });
  expect(made).toMatchObject({ sourceTypeId: pushed[0]?.id });
});
rule("source.energy-type", async () => expect(await source()).toMatchObject({ energyTypeId: 3 }));
rule("source.energy-usage", async () => expect(await source()).toMatchObject({ energyUsageId: 7 }));
rule("source.gateway-type", async () => expect(await source()).toMatchObject({ gatewayTypeId: 2 }));
rule("source.time-zone", async () => {
  expect(await source()).toMatchObject({ timeZoneId: "America/Lima" });
  await hub.push([{ variableId, data: [{ date: "2026-03-01T00:00:00", value: 5 }] }]);
  const [row] = await hub.get("/data", { VariableId: variableId, DisplayLevel: "ValueVariableDate" });
  expect(row.date).toBe("2026-03-01T00:00:00-05:00");
});
rule("source.tags", async () => {
  expect(await source()).toMatchObject({ tags: ["north", "pump"] });
  expect(await foundSources({ Tags: "pump" })).toEqual([sourceId]);
});
rule("source.client-data", async () => expect(await source()).toMatchObject({ clientData: SOURCE.clientData }));

rule("variable.id", async () => expect(await variable()).toMatchObject({ id: variableId }));
rule("variable.name", async () => expect(await variable()).toMatchObject({ name: "Volume" }));
rule("variable.source", async () => expect(await variable()).toMatchObject({ sourceId }));
rule("variable.type", async () => expect(await variable()).toMatchObject({ variableTypeId: 6 }));
rule("variable.unit", async () => expect(await variable()).toMatchObject({ unitId: 19 }));
rule("variable.granularity", async () => {
  for (const [granularity, granularityTimeBase] of [
    [15, 2],
    [1, 3],
    [1, 4],
  ]) {
    const body = { ...VARIABLE, sourceId, granularity, granularityTimeBase };
    const id = await hub.post("/variables", body);
    expect(await hub.get(`/variables/${id}`)).toMatchObject({ granularity, granularityTimeBase });
  }
});
rule("variable.time-base", async () => {
  const statuses = [];
  for (const granularityTimeBase of [0, 1, 7, 8])
    statuses.push(
      (await hub.call("POST", "/variables", { body: { ...VARIABLE, sourceId, granularityTimeBase } })).status,
    );
  expect(statuses).toEqual([400, 200, 200, 400]);
});
rule("variable.quantity-type", async () => expect(await variable()).toMatchObject({ quantityType: 3 }));
rule("variable.aggregate", async () => expect(await variable()).toMatchObject({ aggregate: 1 }));
rule("variable.mapping-config", async () => {
  const date = "2026-04-01T00:00:00Z";
  await hub.push([{ sourceSerialNumber: "PMP-7", mappingConfig: "volume", data: [{ date, value: 9 }] }]);
  expect(await hub.get("/data", { VariableId: variableId, From: date })).toMatchObject([{ rawValue: 9 }]);
});
rule("variable.tags", async () => {
  const found = await hub.get("/variables", { Tags: "billing", SourceId: sourceId, DisplayLevel: "Verbose" });
  expect(found).toContainEqual(await variable());
  expect(await hub.get("/variables", { Tags: "Billing" })).toEqual([]);
});
rule("variable.is-versioned", async () => expect(await variable()).toMatchObject({ isVersioned: true }));

const AT = "2026-05-01T00:00:00Z";
const DAY = { From: AT, To: "2026-05-02T00:00:00Z" };
let filled: Promise<number> | null = null;
async function variableOfSite(): Promise<number> {
  const { id } = await hub.post("/sources", { name: "Plain", siteId, sourceTypeId: 1 });
  return hub.post("/variables", { name: "Energy", sourceId: id, variableTypeId: 0, unitId: 8 });
}
/** A variable with the values 1, 2 and 6 on one day. */
function filledVariable(): Promise<number> {
  filled ??= (async () => {
    const id = await variableOfSite();
    const data = [1, 2, 6].map((value, hour) => ({ date: `2026-05-01T0${hour}:00:00Z`, value }));
    await hub.push([{ variableId: id, data }]);
    return id;
  })();
  return filled;
}
const rows = async (query: Query) => hub.get("/data", { VariableId: await filledVariable(), ...DAY, ...query });

rule("row.raw-value", async () => {
  expect(await rows({})).toEqual([1, 2, 6].map((rawValue) => ({ rawValue, unitId: 8 })));
  const [sum] = await rows({ Granularity: "Day", Aggregation: "SUM" });
  expect(sum).not.toHaveProperty("rawValue");
});
rule("row.aggregates", async () => {
  const columns = {
    SUM: { sumValue: 9 },
    MIN: { minValue: 1 },
    MAX: { maxValue: 6 },
    AVG: { avgValue: 3 },
    COUNT: { countValue: 3 },
    VAR: { varianceValue: 7 },
    STDEV: { stdevValue: Math.sqrt(7) },
  };
  for (const [Aggregation, column] of Object.entries(columns))
    expect(await rows({ Granularity: "Day", Aggregation })).toEqual([{ ...column, unitId: 8 }]);
});
rule("row.unit", async () => {
  expect((await rows({})).every((row: object) => "unitId" in row)).toBe(true);
  expect(await rows({ Granularity: "All", Aggregation: "MAX" })).toEqual([{ maxValue: 6, unitId: 8 }]);
});
const keysAt = async (DisplayLevel: string) => Object.keys((await rows({ DisplayLevel }))[0]).sort();
rule("row.variable", async () => {
  expect(await keysAt("Value")).not.toContain("variableId");
  expect(await keysAt("ValueVariable")).toEqual(["rawValue", "unitId", "variableId"]);
});
rule("row.date", async () => {
  expect(await keysAt("ValueVariable")).not.toContain("date");
  expect(await keysAt("ValueVariableDate")).toEqual(["date", "rawValue", "unitId", "variableId"]);
});
rule("row.source", async () => {
  expect(await keysAt("ValueVariableDate")).not.toContain("sourceId");
  const all = ["date", "rawValue", "sourceId", "unitId", "variableId"];
  expect(await keysAt("ValueVariableDateSource")).toEqual(all);
  const id = await filledVariable();
  const { sourceId: stands } = await hub.get(`/variables/${id}`);
  const shapes = [{}, { Granularity: "Day", Aggregation: "SUM" }, { AllVersions: true }];
  for (const shape of shapes)
    expect((await rows({ DisplayLevel: "ValueVariableDateSource", ...shape }))[0]).toMatchObject({
      variableId: id,
      sourceId: stands,
    });
});

async function pushedTo(id: number, reading: object) {
  const outcome = await hub.push([{ variableId: id, data: [reading] }]);
  const [row] = await hub.get("/data", {
    VariableId: id,
    AllVersions: true,
    DisplayLevel: "ValueVariableDate",
    TimeZoneId: "UTC",
  });
  return { outcome, row };
}
rule("point.date", async () => {
  for (const date of ["2026-06-01T10:00:00Z", "2026-06-01T12:00:00+02:00", "2026-06-01T07:30:00.000-02:30"]) {
    const { row } = await pushedTo(await variableOfSite(), { date, value: 1 });
    expect(row.date).toBe("2026-06-01T10:00:00+00:00");
  }
  const { outcome } = await pushedTo(await variableOfSite(), { date: "01/06/2026", value: 1 });
  expect(outcome).toMatchObject({ stored: 0, discarded: [{ count: 1 }] });
});
rule("point.value", async () => {
  for (const value of [0.1, -17.25, 1e300, 123_456_789.123]) {
    const { row } = await pushedTo(await variableOfSite(), { date: AT, value });
    expect(row.rawValue).toBe(value);
  }
});
rule("point.version", async () => {
  expect((await pushedTo(await variableOfSite(), { date: AT, value: 1, version: "v1" })).row).toMatchObject({
    version: "v1",
  });
  expect((await pushedTo(await variableOfSite(), { date: AT, value: 1 })).row).toMatchObject({
    version: null,
  });
});
rule("point.tags", async () => {
  const tags = { quality: "good", origin: "manual" };
  expect((await pushedTo(await variableOfSite(), { date: AT, value: 1, tags })).row).toMatchObject({ tags });
});

const units = async (): Promise<Unit[]> => hub.get("/units");
rule("unit.fields", async () => {
  for (const unit of await units())
    expect(unit).toEqual({
      id: expect.any(Number),
      name: expect.any(String),
      symbol: expect.any(String),
      unitFamilyId: expect.any(Number),
      parentId: expect.any(Number),
      divisor: expect.any(Number),
      offset: expect.any(Number),
    });
});
rule("unit.families", async () => {
  const families = (await hub.get("/unitFamily")) as { id: number }[];
  expect(families).toHaveLength(56);
  expect(new Set((await units()).map((unit) => unit.unitFamilyId))).toEqual(new Set(families.map(({ id }) => id)));
});
rule("unit.reference", async () => {
  const all = await units();
  for (const unit of all) {
    const parent = all.find(({ id }) => id === unit.parentId);
    expect(parent).toMatchObject({ unitFamilyId: unit.unitFamilyId, parentId: unit.parentId });
  }
});

const named = (name: string) => UNITS.find((unit) => unit.name.toLowerCase() === name.toLowerCase())?.id ?? -1;
/** What a value pushed in one unit reads as in others. */
async function converted(value: number, from: number, to: readonly number[]) {
  const { id } = await hub.post("/sources", { name: "Converted", siteId, sourceTypeId: 1 });
  const made = await hub.post("/variables", { name: "V", sourceId: id, variableTypeId: 0, unitId: from });
  await hub.push([{ variableId: made, data: [{ date: AT, value }] }]);
  return hub.call("GET", "/data", { query: { VariableId: made, TargetUnits: to } });
}
rule("unit.conversion", async () => {
  const all = await units();
  const odd = all.filter((unit) => unit.offset !== 0);
  expect(odd.length).toBeGreaterThan(0);
  for (const unit of [...odd.slice(0, 2), ...all.filter(({ id }) => [8, 18].includes(id))]) {
    const { body } = await converted(10, unit.id, [unit.parentId]);
    expect(body[0].rawValue).toBeCloseTo((10 - unit.offset) * unit.divisor, 6);
    expect(body[0].unitId).toBe(unit.parentId);
  }
});
rule("unit.by-reference", async () => {
  // 90 degrees Fahrenheit by way of the reference of temperatures, and 2 MWh by way of that of energies.
  const { body } = await converted(2, 9, [8]);
  expect(body).toEqual([{ rawValue: 2_000, unitId: 8 }]);
  const heat = await converted(90, named("Degree Fahrenheit"), [named("Degree Celsius")]);
  expect(heat.body[0].rawValue).toBeCloseTo(32.2222, 3);
});
rule("unit.family-only", async () => {
  expect((await converted(3, 4, [8, 1])).body).toEqual([{ rawValue: 3_000, unitId: 1 }]);
});
rule("unit.silent", async () => {
  const answer = await converted(3, 4, [8]);
  expect(answer).toMatchObject({ status: 200, body: [{ rawValue: 3, unitId: 4 }] });
  expect(answer.headers.get("x-headgate-warning")).toContain("not converted");
});
rule("unit.not-on-push", async () => {
  const { row } = await pushedTo(await variableOfSite(), { date: AT, value: 1_500, unit: "Wh", unitId: 7 });
  expect(row).toMatchObject({ rawValue: 1_500, unitId: 8 });
});
rule("state.source", async () => {
  expect(await foundSources({ State: "Enabled", SerialNumber: "PMP-7" })).toEqual([sourceId]);
  expect(await foundSources({ State: "Disabled", SerialNumber: "PMP-7" })).toEqual([]);
});
