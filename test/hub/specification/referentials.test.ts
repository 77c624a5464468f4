import { afterAll, beforeAll, expect } from "vitest";
import { startTestHub, type TestHub } from "../fixture.ts";
import { rule } from "./rule.ts";

interface Named {
  readonly id: number;
  readonly name: string;
}

let hub: TestHub;
beforeAll(async () => {
  hub = await startTestHub();
});
afterAll(() => hub.close());

const NAMED = { id: expect.any(Number), name: expect.any(String) };
const list = async (path: string): Promise<Named[]> => hub.get(path);
const names = async (path: string) =>
  Object.fromEntries((await list(path)).map(({ id, name }) => [id, name])) as Record<number, string>;
async function expectNamed(path: string) {
  const entries = await list(path);
  expect(entries.length).toBeGreaterThan(0);
  for (const entry of entries) expect(entry).toEqual(NAMED);
  expect(new Set(entries.map(({ id }) => id)).size).toBe(entries.length);
}
const map = (...labels: [number, string][]) => Object.fromEntries(labels);
const PATHS =
  "sitetypes sourceTypes energyTypes energyUsages gatewayTypes variableTypes units unitFamily " +
  "quantityTypes granularity timePeriods aggregates timezones";

rule("referentials.full", async () => {
  for (const path of PATHS.split(" ")) {
    expect(Object.keys(await hub.get(`/${path}`)).length).toBeGreaterThan(5);
    // A part of it is never answered, so that a filter would select nothing.
    const { headers, status } = await hub.call("GET", `/${path}`, { query: { Name: "x" } });
    expect(status === 400 || headers.get("x-headgate-warning")?.includes("Name") === true).toBe(true);
  }
});
rule("referentials.sitetypes", () => expectNamed("/sitetypes"));
rule("referentials.source-types", () => expectNamed("/sourceTypes"));
rule("referentials.energy-types", async () => {
  for (const entry of (await hub.get("/energyTypes")) as (Named & { energyUsages: Named[] })[]) {
    expect(entry).toEqual({ ...NAMED, energyUsages: expect.any(Array) });
    for (const usage of entry.energyUsages) expect(usage).toEqual(NAMED);
  }
});
rule("referentials.energy-usages", () => expectNamed("/energyUsages"));
rule("referentials.gateway-types", () => expectNamed("/gatewayTypes"));
rule("referentials.variable-types", () => expectNamed("/variableTypes"));
rule("referentials.units", async () => {
  const [first] = await list("/units");
  expect(first).toMatchObject({ ...NAMED, symbol: expect.any(String), divisor: expect.any(Number) });
});
rule("referentials.unit-family", () => expectNamed("/unitFamily"));
rule("referentials.quantity-types", async () => {
  const labels = ["Instantaneous", "Integrated", "Cumulative", "Minimum", "Maximum", "Averaged"];
  expect(await hub.get("/quantityTypes")).toEqual(
    map(...labels.map((name, index): [number, string] => [index + 1, name])),
  );
});
rule("referentials.granularity", async () => {
  const values = ["Raw", "Minute", "Hour", "Day", "Month", "Year", "All", "Week"];
  expect(await hub.get("/granularity")).toEqual(values.map((name, value) => ({ name, value })));
});
rule("referentials.time-periods", async () => {
  const labels = ["Second", "Minute", "Hour", "Day", "Week", "Month", "Year"];
  expect(await hub.get("/timePeriods")).toEqual(
    map(...labels.map((name, index): [number, string] => [index + 1, name])),
  );
});
rule("referentials.aggregates", async () => {
  const labels = ["None", "SUM", "MIN", "MAX", "AVG", "COUNT", "VAR", "STDEV"];
  expect(await hub.get("/aggregates")).toEqual(map(...labels.map((name, index): [number, string] => [index, name])));
});
rule("referentials.timezones", async () => {
  for (const zone of (await hub.get("/timezones")) as object[])
    expect(zone).toEqual({ id: expect.any(String), displayName: expect.any(String) });
});
rule("referentials.scales", async () => {
  expect(await hub.get("/granularity")).toContainEqual({ name: "Month", value: 4 });
  expect((await hub.get("/timePeriods"))["4"]).toBe("Day");
});
rule("referentials.site-types", async () => {
  expect(await names("/sitetypes")).toEqual(
    map(
      [1, "House"],
      [2, "Apartment"],
      [3, "Office"],
      [4, "Services"],
      [5, "School"],
      [6, "Hospital"],
      [7, "Restaurant"],
      [8, "Shopping"],
      [9, "Hotel"],
      [10, "Industry"],
      [11, "Sport hall"],
      [12, "Arts centre"],
      [13, "Day Nursery"],
      [14, "Village Hall"],
      [15, "Other"],
      [16, "Public Lighting"],
    ),
  );
});
rule("referentials.energy-type-ids", async () => {
  const found = await names("/energyTypes");
  const known =
    "Solar, Electricity, Gas, Water, Fuel, Heat, Temperature, Carbon dioxide, Humidity, Particulate " +
    "Matter, Volatil Compounds, Pollution, , Waste, Electric Charge, Noise, Atmospheric Pressure, " +
    "Data, Cold, Electricity_bis, Hot Water, Oil, Environmental sensor, , Steam, Nitrogen, Compressed " +
    "air, Services, Sewer";
  const labels = known.split(", ").map((name, id): [number, string] => [id, name]);
  expect(found).toEqual(map(...labels.filter(([, name]) => name !== "")));
});
rule("referentials.electricity", async () => {
  const types = (await hub.get("/energyTypes")) as (Named & { energyUsages: Named[] })[];
  const usages = types.find(({ id }) => id === 1)?.energyUsages.map(({ name }) => name);
  expect(usages).toEqual(["Ventilation", "Heat", "Lighting", "Cooling"]);
});
rule("referentials.usage-ids", async () => {
  const known =
    "Ventilation, Heat, Lighting, Cooling, Plumbing, Others, General Purpose, Electricity Main, " +
    "Paper, Plastic, Green, Production, Area lighting, Barrel, Fire Protection, Stormwater, Sewer";
  const labels = known.split(", ").map((name, index): [number, string] => [index + 1, name]);
  expect(await names("/energyUsages")).toEqual(map(...labels));
});
rule("referentials.unit-anchors", async () => {
  expect(await names("/units")).toMatchObject({
    1: "Watt",
    4: "Kilowatt",
    7: "Watt-hour",
    8: "Kilowatt-hour",
    9: "Megawatt-hour",
    18: "Litre",
    19: "Cubic meter",
  });
});
rule("referentials.variable-anchors", async () => {
  expect(await names("/variableTypes")).toMatchObject({
    0: "General consumption",
    6: "Total consumption",
    130: "Manual Consumption",
    131: "Generic",
  });
});
rule("referentials.zone-ids", async () => {
  const ids = ((await hub.get("/timezones")) as { id: string }[]).map(({ id }) => id);
  for (const timeZoneId of ["Romance Standard Time", "Europe/Brussels"]) {
    expect(ids).toContain(timeZoneId);
    expect(await hub.post("/sites", { name: "Z", typeId: 1, timeZoneId })).toEqual(expect.any(Number));
  }
});
rule("limits.sizes", async () => {
  const sizes = [];
  for (const path of ["/units", "/variableTypes", "/sourceTypes", "/gatewayTypes", "/unitFamily"])
    sizes.push((await list(path)).length);
  expect(sizes).toEqual([177, 199, 114, 50, 56]);
});
