/** GET /data/export: values as a file. */
import exceljs from "exceljs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openBrowser } from "../browser.ts";
import { createChain, type Query, startTestHub, type TestHub } from "../fixture.ts";

const HOUR_MS = 3_600_000;
const ZONE = { TimeZoneId: "Europe/Paris" };
/** The day on which the clocks go forward. */
const DAY = { From: "2026-03-29", To: "2026-03-30", ...ZONE };

let hub: TestHub;
let ids: readonly number[];
beforeAll(async () => {
  hub = await startTestHub();
  const chain = await createChain(hub, {
    source: { name: '=HYPERLINK("x")', serialNumber: "M-1" },
    variables: [{ name: 'Energy, "main"' }, { name: "Power", unitId: 4, isVersioned: true }],
  });
  ids = chain.variableIds;
  const begin = Date.parse("2026-03-28T23:00:00Z");
  const hours = (count: number, from = 0) =>
    Array.from({ length: count }, (_, at) => ({
      date: new Date(begin + (from + at) * HOUR_MS).toISOString(),
      value: at / 4,
    }));
  // The second begins an hour later, and ends an hour earlier.
  await hub.push([
    { variableId: ids[0], data: hours(23) },
    { variableId: ids[1], data: hours(21, 1) },
  ]);
});
afterAll(() => hub.close());

async function exported(query: Query, headers: Record<string, string> = {}) {
  const authorization = headers["cookie"] === undefined ? { authorization: `Bearer ${await hub.token()}` } : {};
  const parameters = Object.entries(query).flatMap(([name, value]) => [value].flat().map((one) => [name, String(one)]));
  return fetch(`${hub.url()}/data/export?${new URLSearchParams(parameters)}`, {
    headers: { ...authorization, ...headers },
  });
}

const table = { VariableIds: [] as readonly number[], ...DAY };

test("CSV has a row for each date with its offset, and a column for each variable", async () => {
  const response = await exported({ ...table, VariableIds: ids, Format: "CSV" });
  expect(response.headers.get("content-disposition")).toBe('attachment; filename="values_2026-03-29_2026-03-30.csv"');
  const lines = (await response.text()).split("\r\n");
  expect(lines[0]).toBe(
    `date,"Site › =HYPERLINK(""x"") › Energy, ""main"" [kWh]","Site › =HYPERLINK(""x"") › Power [kW]"`,
  );
  expect(lines.slice(1, 4)).toEqual([
    "2026-03-29T00:00:00+01:00,0,",
    "2026-03-29T01:00:00+01:00,0.25,0",
    "2026-03-29T03:00:00+02:00,0.5,0.25",
  ]);
  expect([lines.length, lines.at(-2), lines.at(-1)]).toEqual([25, "2026-03-29T23:00:00+02:00,5.5,", ""]);
});

test("aggregates have a column each, and the sums of /data", async () => {
  const shape = { Granularity: "Day", Aggregations: ["SUM", "MAX"] };
  const response = await exported({ ...table, VariableIds: ids, ...shape, Format: "csv" });
  const [, day = ""] = (await response.text()).split("\r\n");
  const rows = await hub.get("/data", { ...table, VariableIds: ids, ...shape });
  const values = rows.flatMap((row: { sumValue: number; maxValue: number }) => [row.sumValue, row.maxValue]);
  expect(day.split(",").slice(1).map(Number)).toEqual(values);
});

test("a count has no unit in its head, and a variance its square", async () => {
  const shape = { Granularity: "Day", Aggregations: ["AVG", "COUNT", "VAR"] };
  const response = await exported({ ...table, VariableIds: ids.slice(1), ...shape, Format: "csv" });
  const [head = ""] = (await response.text()).split("\r\n");
  expect([...head.matchAll(/Power ([^"]*)"/g)].map(([, words]) => words)).toEqual([
    "[kW] average",
    "count",
    "[(kW)²] variance",
  ]);
});

test("a workbook has local times, numbers, and a sheet that says what they are", async () => {
  const response = await exported({ ...table, VariableIds: ids, TargetUnits: [5], Format: "xlsx" });
  expect(response.headers.get("content-type")).toContain("spreadsheetml");
  const workbook = new exceljs.Workbook();
  await workbook.xlsx.load(await response.arrayBuffer());
  const [values, about] = workbook.worksheets;
  expect(values?.rowCount).toBe(24);
  const cells = (row: number) => [values?.getRow(row).values ?? []].flat();
  expect(cells(4).slice(0, 3)).toEqual([new Date("2026-03-29T03:00:00Z"), "+02:00", 0.5]);
  expect(cells(2)).toEqual([new Date("2026-03-29T00:00:00Z"), "+01:00", 0]);
  const words = (about?.getSheetValues() ?? []).flatMap((row) =>
    Array.isArray(row) ? [row.slice(1).map(String).join(" ")] : [],
  );
  expect(words).toEqual(expect.arrayContaining(["By manager", "Rows 23", "TimeZoneId Europe/Paris"]));
  expect(words.some((line) => line.includes("M-1"))).toBe(true);
});

test("JSON is the answer of /data, and a table of all versions is refused", async () => {
  const query = { ...table, VariableIds: ids };
  const response = await exported({ ...query, Format: "json" });
  expect(await response.json()).toEqual(await hub.get("/data", query));
  expect((await exported({ ...query, AllVersions: true, Format: "json" })).status).toBe(200);
  expect((await exported({ ...query, AllVersions: true, Format: "csv" })).status).toBe(400);
  expect((await exported({ ...query, Format: "pdf" })).status).toBe(400);
});

test("a long file is whole, also after another reader left in the middle of it", async () => {
  const { variableIds } = await createChain(hub, { variables: [{}] });
  const begin = Date.parse("2020-01-01T00:00:00Z");
  const data = Array.from({ length: 60_000 }, (_, at) => ({
    date: new Date(begin + at * 900_000).toISOString(),
    value: at,
  }));
  await hub.push([{ variableId: variableIds[0], data }]);
  const query = { VariableIds: variableIds, TimeZoneId: "UTC" };
  const left = await exported({ ...query, Format: "xlsx" });
  await left.body?.cancel();
  const lines = (await (await exported({ ...query, Format: "csv" })).text()).split("\r\n");
  expect([lines.length, lines.at(-2)]).toEqual([60_002, `${data.at(-1)?.date.slice(0, 19)}+00:00,59999`]);
  const workbook = new exceljs.Workbook();
  await workbook.xlsx.load(await (await exported({ ...query, Format: "xlsx" })).arrayBuffer());
  expect(workbook.worksheets[0]?.rowCount).toBe(60_001);
});

describe("a link of a page that has signed in", () => {
  const ask = async (path: string, site: string | null, method = "GET", as = "plain") => {
    const browser = openBrowser(hub);
    await browser.signIn(as);
    const { cookie = "" } = browser.script();
    const headers = { cookie, ...(site === null ? {} : { "sec-fetch-site": site }) };
    return (await fetch(hub.url() + path, { method, headers })).status;
  };

  test("needs no header of a script for reads of the same origin, and for nothing else", async () => {
    const file = `/data/export?Format=csv&VariableIds=${ids[0]}`;
    expect(await ask(file, "same-origin")).toBe(200);
    for (const site of ["cross-site", "same-site", "none", null]) expect(await ask(file, site)).toBe(401);
    expect(await ask("/data", "same-origin", "POST")).toBe(401);
    expect(await ask(`/data?VariableIds=${ids[0]}`, "same-origin", "DELETE", "manager")).toBe(401);
    expect((await fetch(hub.url() + file, { headers: { "sec-fetch-site": "same-origin" } })).status).toBe(401);
  });

  test("shows another account nothing", async () => {
    const browser = openBrowser(hub);
    await browser.signIn("second");
    const { cookie = "" } = browser.script();
    const response = await exported({ VariableIds: ids, Format: "csv" }, { cookie, "sec-fetch-site": "same-origin" });
    expect([response.status, await response.text()]).toEqual([200, "date\r\n"]);
  });
});
