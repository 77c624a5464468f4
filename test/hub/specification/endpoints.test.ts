import { afterAll, beforeAll, expect } from "vitest";
import { createChain, type Query, startTestHub, type TestHub } from "../fixture.ts";
import { rule } from "./rule.ts";

let hub: TestHub;
/** Two sites in two towns, with sources A and B at the first and C at the second; A has two variables. */
const ids = { north: 0, south: 0, a: 0, b: 0, c: 0, x: 0, y: 0 };
beforeAll(async () => {
  hub = await startTestHub();
  ids.north = await hub.post("/sites", { name: "North", typeId: 3, timeZoneId: "Europe/Oslo", city: "Oslo" });
  ids.south = await hub.post("/sites", {
    name: "South",
    typeId: 10,
    timeZoneId: "Europe/Rome",
    city: "Rome",
  });
  const source = async (name: string, siteId: number, more: object) =>
    (await hub.post("/sources", { name, siteId, sourceTypeId: 1, ...more })).id as number;
  ids.a = await source("A", ids.north, {
    serialNumber: "S-1",
    tags: ["roof"],
    clientData: { Contract: { Main: { Supplier: "Volta" } } },
  });
  ids.b = await source("B", ids.north, { serialNumber: "S-2", ean: "5414", tags: ["cellar"] });
  ids.c = await source("C", ids.south, { serialNumber: "T-3", meterNumber: "M-3", tags: ["roof"] });
  const variable = (name: string, more: object) =>
    hub.post("/variables", { name, sourceId: ids.a, variableTypeId: 0, unitId: 8, ...more });
  ids.x = await variable("x", { tags: ["main"] });
  ids.y = await variable("y", { tags: ["sub"] });
  const points = [1, 2, 3].map((value) => ({ date: `2026-03-0${value}T00:00:00Z`, value }));
  await hub.push([{ variableId: ids.x, data: points }]);
});
afterAll(() => hub.close());

const found = async (path: string, query: Query): Promise<number[]> =>
  (await hub.get(path, query)).map((row: { id: number }) => row.id);
const filtered = (CustomFilter: string) => found("/sources", { CustomFilter });
const keys = async (path: string, DisplayLevel: string) =>
  Object.keys((await hub.get(path, { DisplayLevel }))[0]).sort();

rule("calls.header", async () => {
  const headers = { "api-version": "1.7" };
  const answer = await hub.call("GET", "/sites", { headers });
  expect(answer).toMatchObject({ status: 200 });
  expect(answer.headers.get("content-type")).toMatch(/^application\/json/);
  const other = await hub.call("GET", "/sites", { headers: { "api-version": "2.0" } });
  expect(other).toMatchObject({ status: 400, body: { code: "unsupported-api-version" } });
});
rule("filters.and", async () => {
  expect(await found("/sources", { Tags: "roof" })).toEqual([ids.a, ids.c]);
  expect(await found("/sources", { Tags: "roof", SiteId: ids.north })).toEqual([ids.a]);
});
rule("filters.plural", async () => {
  expect(await found("/sources", { SerialNumbers: ["S-1", "T-3"] })).toEqual([ids.a, ids.c]);
  expect(await found("/sources", { SiteIds: [ids.north, ids.south] })).toHaveLength(3);
});
rule("display-level.sites", async () => {
  expect(await keys("/sites", "SiteLight")).toEqual(["id", "name"]);
  for (const level of ["Site", "VerboseSite"])
    expect(await keys("/sites", level)).toEqual(expect.arrayContaining(["name", "typeId", "timeZoneId"]));
  expect(await hub.call("GET", "/sites", { query: { DisplayLevel: "Light" } })).toMatchObject({
    status: 400,
  });
});
rule("display-level.sources", async () => {
  const sizes = [];
  for (const level of ["Light", "Normal", "Verbose", "Site"]) sizes.push((await keys("/sources", level)).length);
  expect(sizes).toEqual([...sizes].sort((one, other) => one - other));
  expect(new Set(sizes).size).toBe(4);
  expect(await keys("/sources", "Site")).toContain("site");
});
rule("display-level.variables", async () => {
  for (const level of ["Normal", "Verbose"]) expect(await keys("/variables", level)).toContain("mappingConfig");
  const other = await hub.call("GET", "/variables", { query: { DisplayLevel: "Light" } });
  expect(other.status).toBe(400);
});
rule("display-level.data", async () => {
  const columns = [];
  for (const DisplayLevel of ["Value", "ValueVariable", "ValueVariableDate", "ValueVariableDateSource"]) {
    const [row] = await hub.get("/data", { VariableId: ids.x, DisplayLevel });
    columns.push(Object.keys(row).filter((key) => !["rawValue", "unitId"].includes(key)));
  }
  expect(columns).toEqual([[], ["variableId"], ["variableId", "date"], ["variableId", "date", "sourceId"]]);
});

const page = (number: number, items: number): Query => ({
  "Paging.PageNumber": number,
  "Paging.ItemsPerPage": items,
});
rule("paging.sites", async () => {
  expect(await found("/sites", page(0, 1))).toEqual([ids.north]);
  expect(await found("/sites", page(1, 1))).toEqual([ids.south]);
  expect(await found("/sites", page(2, 1))).toEqual([]);
});
rule("paging.sources", async () => {
  expect(await found("/sources", page(0, 2))).toEqual([ids.a, ids.b]);
  expect(await found("/sources", page(1, 2))).toEqual([ids.c]);
});
const values = async (query: Query) =>
  (await hub.get("/data", { VariableId: ids.x, ...query })).map((row: { rawValue: number }) => row.rawValue);
rule("paging.data", async () => {
  expect(await values(page(0, 2))).toEqual([1, 2]);
  expect(await values(page(1, 2))).toEqual([3]);
});
rule("paging.order", async () => {
  expect(await values({ PagingOrder: "ASC" })).toEqual([1, 2, 3]);
  expect(await values({ PagingOrder: "DESC" })).toEqual([3, 2, 1]);
});
rule("limits.page-number", async () => {
  expect(await values(page(0, 1))).toEqual([1]);
  const negative = await hub.call("GET", "/sites", { query: page(-1, 1) });
  expect(negative).toMatchObject({ status: 400 });
});
rule("items-count", async () => {
  for (const [path, total] of [
    ["/sites", "2"],
    ["/sources", "3"],
    ["/variables", "2"],
  ] as const) {
    const query = { ...page(0, 1), IncludeItemsCount: true };
    expect((await hub.call("GET", path, { query })).headers.get("x-total-count")).toBe(total);
    const without = await hub.call("GET", path, { query: { ...query, IncludeItemsCount: false } });
    expect(without.headers.get("x-total-count")).toBeNull();
  }
  const data = await hub.call("GET", "/data", {
    query: { VariableId: ids.x, ...page(0, 1), IncludeItemsCount: true },
  });
  expect(data.headers.get("x-total-count")).toBe("3");
});

const view = (entityType: string, customFilter: string) =>
  hub.post("/views", { name: "view", entityType, customFilter });
rule("view.sites", async () => {
  const ViewId = await view("Site", "City = 'Rome'");
  expect(await found("/sites", { ViewId })).toEqual([ids.south]);
});
rule("view.sources", async () => {
  const ViewId = await view("Source", "SerialNumber startswith 'S-'");
  expect(await found("/sources", { ViewId })).toEqual([ids.a, ids.b]);
});
rule("tags.sources", async () => expect(await found("/sources", { Tags: ["cellar"] })).toEqual([ids.b]));
rule("tags.variables", async () => expect(await found("/variables", { Tags: "sub" })).toEqual([ids.y]));
rule("custom-filter.sites", async () => {
  expect(await found("/sites", { CustomFilter: "TypeId = 3" })).toEqual([ids.north]);
});
rule("custom-filter.sources", async () => expect(await filtered("Name = 'B'")).toEqual([ids.b]));
rule("custom-filter.odm", async () => {
  expect(await found("/sources", { OdmSqlFilter: "Site.City = 'Rome'" })).toEqual([ids.c]);
});
rule("custom-filter.operators", async () => {
  const { a, b, c } = ids;
  expect(await filtered(`Id = ${a}`)).toEqual([a]);
  expect(await filtered(`Id <> ${a}`)).toEqual([b, c]);
  expect(await filtered(`Id > ${b}`)).toEqual([c]);
  expect(await filtered(`Id >= ${b}`)).toEqual([b, c]);
  expect(await filtered(`Id < ${b}`)).toEqual([a]);
  expect(await filtered(`Id <= ${b}`)).toEqual([a, b]);
  expect(await filtered("SerialNumber like 'S-_'")).toEqual([a, b]);
  expect(await filtered("SerialNumber startswith 'T'")).toEqual([c]);
  expect(await filtered("SerialNumber endswith '-2'")).toEqual([b]);
});
rule("custom-filter.negation", async () => {
  expect(await filtered("SerialNumber not like 'S-%'")).toEqual([ids.c]);
  expect(await filtered("SerialNumber not startswith 'S-'")).toEqual([ids.c]);
  expect(await filtered("SerialNumber not endswith '-2'")).toEqual([ids.a, ids.c]);
  expect(await filtered("not Name = 'A'")).toEqual([ids.b, ids.c]);
});
rule("custom-filter.joining", async () => {
  expect(await filtered("Name = 'A' or Name = 'B' and Ean = '5414'")).toEqual([ids.a, ids.b]);
  expect(await filtered("(Name = 'A' or Name = 'B') and Ean = '5414'")).toEqual([ids.b]);
});
rule("custom-filter.empty", async () => {
  expect(await filtered("Ean is empty")).toEqual([ids.a, ids.c]);
  expect(await filtered("Ean is not empty")).toEqual([ids.b]);
});
rule("custom-filter.foreign", async () => expect(await filtered("Site.Name = 'South'")).toEqual([ids.c]));
rule("custom-filter.bare", async () => expect(await filtered("MeterNumber = 'M-3'")).toEqual([ids.c]));
rule("custom-filter.form", async () => {
  expect(await filtered(`"Contract"."Main"."Supplier" = 'Volta'`)).toEqual([ids.a]);
});
rule("silent.filter", async () => expect(await filtered("Name = 'nobody'")).toEqual([]));

rule("sites.get", async () => expect(await found("/sites", {})).toEqual([ids.north, ids.south]));
rule("sources.get", async () => expect(await found("/sources", {})).toEqual([ids.a, ids.b, ids.c]));
rule("sources.filters", async () => {
  const by: [Query, number[]][] = [
    [{ SiteId: ids.south }, [ids.c]],
    [{ State: "Enabled" }, [ids.a, ids.b, ids.c]],
    [{ Ean: "5414" }, [ids.b]],
    [{ SerialNumber: "S-1" }, [ids.a]],
    [{ MeterNumber: "M-3" }, [ids.c]],
    [{ Id: ids.b }, [ids.b]],
    [{ Tags: "cellar" }, [ids.b]],
  ];
  for (const [query, expected] of by) expect(await found("/sources", query)).toEqual(expected);
});
rule("sources.get-one", async () => {
  expect(await hub.get(`/sources/${ids.b}`)).toMatchObject({ id: ids.b, name: "B", ean: "5414" });
  expect(await hub.get(`/sources/${ids.b}`, { includeTimeSlicedValues: true })).toMatchObject({ id: ids.b });
  expect(await hub.call("GET", "/sources/999999")).toMatchObject({ status: 404 });
});
rule("variables.get", async () => expect(await found("/variables", {})).toEqual([ids.x, ids.y]));
rule("variables.filters", async () => {
  expect(await found("/variables", { SourceId: ids.a })).toEqual([ids.x, ids.y]);
  expect(await found("/variables", { SourceIds: [ids.b, ids.c] })).toEqual([]);
  expect(await found("/variables", { SourceId: ids.a, Tags: "main" })).toEqual([ids.x]);
});
rule("variables.impacting", async () => {
  const query = { "CalculatedFilter.ImpactingVariableId": ids.x };
  expect(await hub.get("/variables", query)).toEqual([]);
  const formula = { formula: "= a", variables: [{ alias: "a", variableId: ids.x }] };
  const body = { name: "C", sourceId: ids.a, variableTypeId: 0, unitId: 8 };
  const calculated = { calculatedVariableFormulas: [formula] };
  const id = await hub.post("/variables", { ...body, calculated });
  expect(await found("/variables", query)).toEqual([id]);
  await hub.ok("DELETE", `/variables/${id}`);
});

const SECOND = { as: "second", account: 2 };
rule("sites.post", async () => {
  const body = { name: "New", typeId: 1, timeZoneId: "UTC" };
  const id = await hub.post("/sites", body, SECOND);
  expect(Number.isInteger(id)).toBe(true);
  expect(await hub.get(`/sites/${id}`, undefined, SECOND)).toMatchObject({ id, ...body });
});
rule("sources.post", async () => {
  const { siteId } = await createChain(hub, { variables: [], more: SECOND });
  const body = {
    name: "New",
    siteId,
    serialNumber: "N-1",
    sourceTypeId: 1,
    energyTypeId: 1,
    timeZoneId: "Europe/Madrid",
  };
  const made = await hub.post("/sources", body, SECOND);
  expect(made).toMatchObject({ id: expect.any(Number), ...body });
  expect(await hub.get(`/sources/${made.id}`, undefined, SECOND)).toEqual(made);
});
rule("sources.post-optional", async () => {
  const { siteId } = await createChain(hub, { variables: [], more: SECOND });
  const optional = { ean: "1", meterNumber: "2", energyUsageId: 1, gatewayTypeId: 1, tags: ["t"] };
  const body = { name: "New", siteId, sourceTypeId: 1, ...optional, colour: "red" };
  const made = await hub.post("/sources", body, SECOND);
  expect(made).toMatchObject(optional);
  expect(made).not.toHaveProperty("colour");
});
rule("sources.put", async () => {
  const { sourceId } = await createChain(hub, { source: { ean: "7" }, variables: [], more: SECOND });
  const body = { Id: sourceId, NAME: "Renamed", serialNumber: "R-1" };
  expect(await hub.call("PUT", "/sources", { ...SECOND, body })).toMatchObject({ status: 200 });
  expect(await hub.get(`/sources/${sourceId}`, undefined, SECOND)).toMatchObject({
    name: "Renamed",
    serialNumber: "R-1",
    ean: "7",
  });
});
rule("variables.post", async () => {
  const { sourceId } = await createChain(hub, { variables: [], more: SECOND });
  const body = {
    name: "New",
    sourceId,
    variableTypeId: 0,
    unitId: 8,
    granularity: 1,
    granularityTimeBase: 3,
    quantityType: 1,
    mappingConfig: "kWh",
  };
  const id = await hub.post("/variables", body, SECOND);
  expect(Number.isInteger(id)).toBe(true);
  expect(await hub.get(`/variables/${id}`, undefined, SECOND)).toMatchObject({ id, ...body });
});
rule("chain.data", async () => {
  expect(await hub.call("GET", "/data")).toMatchObject({ status: 400 });
  const orphan = { name: "V", variableTypeId: 0, unitId: 8 };
  expect(await hub.call("POST", "/variables", { body: orphan })).toMatchObject({ status: 400 });
  expect(await hub.push([{ data: [{ date: "2026-03-01T00:00:00Z", value: 1 }] }])).toMatchObject({
    stored: 0,
  });
});
rule("chain.first", async () => {
  const before = await hub.get("/sources");
  const reading = [{ date: "2026-03-01T00:00:00Z", value: 1 }];
  const outcome = await hub.push([{ sourceSerialNumber: "LATE", mappingConfig: "kWh", data: reading }]);
  expect(outcome).toMatchObject({ stored: 0, discarded: [{ count: 1 }] });
  expect(await hub.get("/sources")).toEqual(before);
  const late = { source: { serialNumber: "LATE" }, variables: [{ mappingConfig: "kWh" }], more: SECOND };
  const { variableIds } = await createChain(hub, late);
  expect(await hub.get("/data", { VariableIds: variableIds }, SECOND)).toEqual([]);
});
