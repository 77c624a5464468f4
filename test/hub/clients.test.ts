/** What the clients of such platforms send and expect (`docs/hub/interface.md`, *Clients*). */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createChain, GRANT, type Query, startTestHub, type TestHub } from "./fixture.ts";

let hub: TestHub;
beforeAll(async () => {
  hub = await startTestHub();
});
afterAll(() => hub.close());

const COPIED = {
  name: "Copied",
  variableTypeId: 0,
  unitId: 8,
  granularity: 1,
  granularityTimeBase: 3,
  mappingConfig: "c",
};
const READINGS = [0, 1, 2].map((hour) => ({ date: `2026-03-01T0${hour}:00:00Z`, value: hour }));

describe("addresses", () => {
  test("may have double slashes", async () => {
    const { variableIds } = await createChain(hub);
    const [variableId = 0] = variableIds;
    const { operationId } = await hub.post("//push//api/data/", [{ variableId, data: READINGS }]);
    expect(await hub.settled(operationId)).toMatchObject({ stored: 3 });
    expect(await hub.get("//data", { variableId })).toHaveLength(3);
    expect(await hub.call("GET", "//variables", { authorization: "Bearer none" })).toMatchObject({ status: 401 });
  });
});

describe("tokens", () => {
  test("opisense-api is another name of the scope datahub-api", async () => {
    const user = { username: "manager", password: "manager-password" };
    const answer = await hub.form({ ...GRANT, ...user, scope: "openid opisense-api push-data opisense-api" });
    const { access_token, scope } = (await answer.json()) as { access_token: string; scope: string };
    expect(scope).toBe("datahub-api push-data");
    expect(await hub.call("GET", "/sites", { authorization: `Bearer ${access_token}` })).toMatchObject({ status: 200 });
  });

  test("a client that lacks the scope gets it under neither name", async () => {
    const user = { username: "manager", password: "manager-password" };
    const reader = { ...GRANT, client_id: "reader", client_secret: "reader-secret" };
    expect((await hub.form({ ...reader, ...user, scope: "opisense-api" })).status).toBe(200);
    expect((await hub.form({ ...reader, ...user, scope: "opisense-api push-data" })).status).toBe(400);
  });
});

test("acr_values without accountId, as some clients write a tenant, gives a token of the default account", async () => {
  const user = { username: "second", password: "second-password", scope: "datahub-api" };
  const accountOf = async (acr_values: string) => {
    const answer = await hub.form({ ...GRANT, ...user, acr_values });
    const { access_token } = (await answer.json()) as { access_token: string };
    return (await hub.call("GET", "/account", { authorization: `Bearer ${access_token}` })).body;
  };
  expect(await accountOf("tenant:1")).toEqual(await accountOf("accountId:2"));
});

describe("variables below a source", () => {
  test("POST /variables/source/{id} answers an object with the id", async () => {
    const { sourceId } = await createChain(hub, { variables: [] });
    const made = await hub.post(`/variables/source/${sourceId}`, { name: "V", variableTypeId: 0, unitId: 8 });
    expect(made).toEqual({ id: expect.any(Number) });
    expect(await hub.get(`/variables/${made.id}`)).toMatchObject({ name: "V", sourceId });
  });

  test("PATCH, PUT and DELETE /sources/{id}/variables/{id} change those of that source", async () => {
    const { sourceId, variableIds } = await createChain(hub);
    const other = await createChain(hub, { variables: [] });
    const path = `/sources/${sourceId}/variables/${variableIds[0]}`;
    const body = [{ op: "replace", path: "/Name", value: "Patched" }];
    expect(await hub.ok("PATCH", path, { body })).toMatchObject({ name: "Patched", sourceId });
    expect(await hub.ok("PATCH", path, { body: { mappingConfig: "kWh" } })).toMatchObject({ mappingConfig: "kWh" });
    expect(await hub.call("PUT", path, { body: { name: "Put" } })).toMatchObject({ status: 204 });
    expect(await hub.get(`/variables/${variableIds[0]}`)).toMatchObject({ name: "Put", mappingConfig: "kWh" });
    const foreign = `/sources/${other.sourceId}/variables/${variableIds[0]}`;
    for (const method of ["PATCH", "PUT", "DELETE"])
      expect(await hub.call(method, foreign, { body: {} })).toMatchObject({ status: 404 });
    expect(await hub.ok("DELETE", path)).toMatchObject({ removed: { variables: 1 } });
  });
});

describe("a new entity without a name or a type", () => {
  test("is a variable with the name of its type or its mappingConfig, or a Generic one", async () => {
    const { sourceId } = await createChain(hub, { variables: [] });
    const made = async (body: object) =>
      hub.get(`/variables/${(await hub.post(`/variables/source/${sourceId}`, body)).id}`);
    const every = { granularity: 10, granularityTimeBase: "Minute" };
    const typed = { variableTypeId: 0, unitId: 8, divider: 1, ...every };
    expect(await made(typed)).toMatchObject({ name: "General consumption", variableTypeId: 0 });
    const named = {
      name: "Temperature",
      unitId: 8,
      quantityType: "Instantaneous",
      mappingConfig: "temperature",
      ...every,
    };
    expect(await made(named)).toMatchObject({ name: "Temperature", variableTypeId: 131 });
    expect(await made({ unitId: 8, mappingConfig: "humidity" })).toMatchObject({
      name: "humidity",
      variableTypeId: 131,
    });
    const answer = await hub.call("POST", `/variables/source/${sourceId}`, { body: { unitId: 8 } });
    expect(answer).toMatchObject({ status: 400, body: { detail: "name is missing" } });
  });

  test("is a source of Pushed Data with its serial number as the name, and a site of another type", async () => {
    const siteId = await hub.post("/sites", { name: "S", timeZoneId: "UTC", typeId: null });
    expect(await hub.get(`/sites/${siteId}`)).toMatchObject({ typeId: 15 });
    const types: { id: number; name: string }[] = await hub.get("/sourceTypes");
    const source = await hub.post("/sources", { siteId, SerialNumber: "MTR-1", name: null });
    const pushed = types.find(({ name }) => name === "Pushed Data")?.id;
    expect(source).toMatchObject({ name: "MTR-1", sourceTypeId: pushed });
    expect(await hub.post("/sources", { siteId, eanNumber: "541-2" })).toMatchObject({ name: "541-2", ean: "541-2" });
  });
});

test("DELETE /data answers the number of points of each variable in results", async () => {
  const { variableIds } = await createChain(hub, { variables: [{}, {}] });
  const [variableId = 0, other = 0] = variableIds;
  await hub.push([{ variableId, data: READINGS }]);
  const results = [
    { variableId, datapointCount: 3 },
    { variableId: other, datapointCount: 0 },
  ];
  const query = { variableIds };
  expect(await hub.ok("DELETE", "/data", { query: { ...query, whatIf: true } })).toMatchObject({ results });
  expect(await hub.ok("DELETE", "/data", { query })).toMatchObject({ results });
});

test("levels of a form field and values have quotes of either kind in expressions", async () => {
  const groups = [{ name: "Main", fields: [{ name: "Power", type: "Number" }, { name: "Supplier" }] }];
  await hub.post("/form", { name: "Contract", entityType: "Source", groups });
  const clientData = { Contract: { Main: { Power: 9, Supplier: "Volta" } } };
  const { sourceId } = await createChain(hub, { source: { clientData }, variables: [] });
  const found = async (CustomFilter: string, path = "/sources") =>
    (await hub.get(path, { CustomFilter })).map((row: { id: number }) => row.id);
  for (const expression of [
    `"Contract"."Main"."Power" > '8.5'`,
    `'Contract'.'Main'.'Power' > 8.5`,
    `'contract' . "Main".'Supplier' = "Volta"`,
    `Source.'Contract'.'Main'.'Supplier' = 'volta'`,
  ])
    expect(await found(expression), expression).toEqual([sourceId]);
  expect(await found(`'Contract'.'Main'.'Power' > 10`)).toEqual([]);
  const answer = await hub.call("GET", "/sources", { query: { CustomFilter: `'Contract'.'Main'.'Powr' > 1` } });
  expect(answer).toMatchObject({ status: 400, body: { detail: expect.stringContaining("Powr") } });
});

test("ids below 1 in a push are discarded with that reason", async () => {
  const { variableIds } = await createChain(hub);
  const data = READINGS.slice(0, 1);
  const outcome = await hub.push([
    { variableId: 0, data },
    { variableId: -1, data },
    { variableId: variableIds[0], data },
  ]);
  expect(outcome).toMatchObject({
    stored: 1,
    discarded: [
      { target: "variableId=0", reason: "variableId 0 is below 1, where ids begin", count: 1 },
      { target: "variableId=-1", reason: "variableId -1 is below 1, where ids begin", count: 1 },
    ],
  });
});

describe("names of parameters", () => {
  const ids = async (path: string, query: Query) =>
    (await hub.get(path, query)).map(({ id, variableId }: { id: number; variableId: number }) => id ?? variableId);

  test("stand behind the prefixes that clients write", async () => {
    const { siteId, sourceId, variableIds } = await createChain(hub);
    const [variableId = 0] = variableIds;
    await hub.push([{ variableId, data: READINGS.slice(0, 1) }]);
    const sources = await hub.get("/sources", { "sourcesFilter.displayLevel": "Light", "sourceFilter.siteId": siteId });
    expect(sources).toEqual([{ id: sourceId, name: "Source", siteId, serialNumber: null }]);
    const level = { "filter.displayLevel": "ValueVariable" };
    expect(await ids("/data", { "filter.variableId": variableId, ...level })).toEqual([variableId]);
    const posted = { query: { "Filter.VariableIds": variableId, ...level }, body: {} };
    expect(await hub.ok("POST", "/data", posted)).toMatchObject([{ variableId }]);
    expect(await ids("/variables", { "variablesFilter.sourceIds": [sourceId] })).toEqual([variableId]);
    expect(await ids("/sites", { "parameters.Id": siteId, "filter.Paging.ItemsPerPage": 1 })).toEqual([siteId]);
    const { body: file } = await hub.upload("x", { "parameters.filename": "a.csv" });
    expect(await hub.get(`/storage/${file}`)).toMatchObject({ fileName: "a.csv" });
  });

  test("are unknown behind any other prefix, and named as they were written", async () => {
    for (const name of [
      "siteFilter.displayLevel",
      "query.id",
      "filter.nothing",
      "filter.filter.id",
      "__proto__",
      "filter.__proto__",
    ]) {
      const answer = await hub.call("GET", "/sources", { query: { [name]: "1" } });
      expect(answer, name).toMatchObject({ status: 400, body: { errors: [{ path: name }] } });
    }
    const removal = await hub.call("DELETE", "/data", { query: { "parameters.VariableIds": 1, "filter.From": "x" } });
    expect(removal).toMatchObject({ status: 400, body: { detail: expect.stringContaining("filter.From") } });
  });

  test("given twice, with a prefix and without, are neither dropped", async () => {
    const one = await createChain(hub);
    const other = await createChain(hub);
    const both = { siteId: one.siteId, "filter.siteId": other.siteId };
    expect(await ids("/sources", both)).toEqual([one.sourceId, other.sourceId]);
    const levels = { displayLevel: "Light", "filter.displayLevel": "Site" };
    expect(await hub.call("GET", "/sources", { query: levels })).toMatchObject({ status: 400 });
  });

  test("have a singular and a plural for every filter, also with the name of the resource", async () => {
    const one = await createChain(hub, { source: { tags: ["own"] } });
    const other = await createChain(hub);
    expect(await ids("/sites", { siteIds: [one.siteId, other.siteId] })).toEqual([one.siteId, other.siteId]);
    expect(await ids("/sites", { "filter.siteId": one.siteId })).toEqual([one.siteId]);
    expect(await ids("/sources", { sourceIds: other.sourceId })).toEqual([other.sourceId]);
    expect(await ids("/sources", { tag: "own" })).toEqual([one.sourceId]);
    expect(await ids("/variables", { variableIds: one.variableIds })).toEqual(one.variableIds);
    expect((await hub.upload("x", { Filename: "plural.csv", siteIds: one.siteId })).status).toBe(200);
    expect(await hub.get("/storage", { FileNames: ["plural.csv", "other.csv"] })).toMatchObject([
      { siteId: one.siteId },
    ]);
  });

  test("options.hardDelete removes with the data, and a contradiction removes nothing", async () => {
    const { siteId, variableIds } = await createChain(hub);
    await hub.push([{ variableId: variableIds[0], data: READINGS }]);
    const remove = (query: Query) => hub.call("DELETE", `/sites/${siteId}`, { query });
    expect(await remove({ "options.hardDelete": false })).toMatchObject({ status: 409 });
    expect(await remove({ "options.hardDelete": true, withData: false })).toMatchObject({ status: 400 });
    expect(await remove({ "options.hardDelete": true })).toMatchObject({
      status: 200,
      body: { removed: { points: 3 } },
    });
  });
});

describe("bodies in UTF-16", () => {
  const little = (value: unknown, mark = "") => Buffer.from(mark + JSON.stringify(value), "utf16le");
  const big = (value: unknown, mark = "") => little(value, mark).swap16();
  const typed = (charset: string, type = "application/json") => ({ "content-type": `${type}; charset=${charset}` });

  test.each([
    ["utf-16", little],
    ["UTF-16LE", little],
    ["utf-16be", big],
    ["utf-16", big],
    ['"utf-16"', (value: unknown) => little(value, "\ufeff")],
    ["utf16", (value: unknown) => big(value, "\ufeff")],
    ["utf-16", (value: unknown) => Buffer.from(JSON.stringify(value))],
  ])("are read by their charset %s", async (charset, write) => {
    const headers = typed(charset);
    const site = write({ name: "Žilina 東京", typeId: 3, timeZoneId: "UTC" });
    const siteId = await hub.ok("POST", "/sites", { raw: site, headers });
    expect(await hub.get(`/sites/${siteId}`)).toMatchObject({ name: "Žilina 東京" });
    const patch = { raw: write([{ op: "replace", path: "/city", value: "Ōsaka" }]) };
    const type = typed(charset, "application/json-patch+json");
    expect(await hub.ok("PATCH", `/sites/${siteId}`, { ...patch, headers: type })).toMatchObject({ city: "Ōsaka" });
    const { variableIds } = await createChain(hub);
    const raw = write([{ variableId: variableIds[0], data: READINGS }]);
    const { operationId, received } = await hub.ok("POST", "/push/api/data", { raw, headers });
    expect(received).toBe(3);
    expect(await hub.settled(operationId)).toMatchObject({ stored: 3 });
  });

  test("that end in half of a character are refused", async () => {
    const raw = little([]).subarray(0, 3);
    for (const path of ["/sites", "/push/api/data"]) {
      const answer = await hub.call("POST", path, { raw: new Uint8Array(raw), headers: typed("utf-16") });
      expect(answer).toMatchObject({ status: 400, body: { detail: expect.stringContaining("UTF-16") } });
    }
  });
});

describe("values of a list", () => {
  test("are read by number and by name in parameters", async () => {
    const { variableIds } = await createChain(hub);
    const [variableId = 0] = variableIds;
    await hub.push([{ variableId, data: READINGS }]);
    const daily = (query: Query) => hub.get("/data", { variableId, ...query });
    for (const query of [
      { granularity: "Day", aggregation: "sum" },
      { granularity: 3, aggregation: 1 },
      { granularity: "3", aggregations: ["1"] },
    ])
      expect(await daily(query)).toMatchObject([{ sumValue: 3 }]);
    const body = { variableId, granularity: 3, aggregations: [2, "MAX"] };
    expect(await hub.post("/data", body)).toMatchObject([{ minValue: 0, maxValue: 2 }]);
    const unknown = await hub.call("GET", "/data", { query: { variableId, granularity: 99 } });
    expect(unknown).toMatchObject({ status: 400, body: { detail: expect.stringContaining("Granularity") } });
  });

  test("are read by number and by name in bodies, and answered as numbers", async () => {
    const { sourceId } = await createChain(hub, { variables: [] });
    const make = (fields: object) =>
      hub.post("/variables", { name: "V", sourceId, variableTypeId: 0, unitId: 8, ...fields });
    const id = await make({ granularityTimeBase: "minute", quantityType: "Integrated", aggregate: "sum" });
    const numbers = { granularityTimeBase: 2, quantityType: 2, aggregate: 1 };
    expect(await hub.get(`/variables/${id}`)).toMatchObject(numbers);
    expect(await hub.get(`/variables/${await make(numbers)}`)).toMatchObject(numbers);
    const body = [{ op: "replace", path: "/quantityType", value: "Maximum" }];
    expect(await hub.ok("PATCH", `/variables/${id}`, { body })).toMatchObject({ ...numbers, quantityType: 5 });
    for (const quantityType of ["Largest", 77])
      expect(await hub.call("PATCH", `/variables/${id}`, { body: { quantityType } })).toMatchObject({ status: 400 });
    const view = await hub.post("/views", { name: "Named", entityType: 2, customFilter: "Name <> 'x'" });
    expect(await hub.get(`/views/${view}`)).toMatchObject({ entityType: "Source" });
  });
});

describe("eanNumber", () => {
  const made = async (fields: object) => (await createChain(hub, { source: fields, variables: [] })).sourceId;
  const eans = async (id: number) => {
    const { ean, eanNumber } = await hub.get(`/sources/${id}`);
    expect(eanNumber).toBe(ean);
    return ean;
  };

  test("is another name of ean in the body of a new source, and beside it in answers", async () => {
    const id = await made({ EanNumber: "541-1" });
    expect(await eans(id)).toBe("541-1");
    for (const displayLevel of ["Normal", "Verbose", "Site"])
      expect(await hub.get("/sources", { ean: "541-1", displayLevel })).toMatchObject([{ id, eanNumber: "541-1" }]);
    expect(await eans(await made({ ean: null, eanNumber: "541-2" }))).toBe("541-2");
    expect(await eans(await made({ ean: "541-3", eanNumber: "541-3" }))).toBe("541-3");
    expect(await eans(await made({ eanNumber: null }))).toBeNull();
    const { siteId } = await createChain(hub, { variables: [] });
    const body = { name: "S", siteId, sourceTypeId: 1, ean: "1", eanNumber: "2" };
    expect(await hub.call("POST", "/sources", { body })).toMatchObject({ status: 400 });
  });

  test("is another name of the filter ean, with a prefix and in the plural, too", async () => {
    const [one, other] = [await made({ ean: "541-7" }), await made({ ean: "541-8" })];
    const ids = async (query: Query) => (await hub.get("/sources", query)).map(({ id }: { id: number }) => id);
    expect(await ids({ EanNumber: "541-7" })).toEqual([one]);
    expect(await ids({ "sourcesFilter.eanNumber": "541-8" })).toEqual([other]);
    expect(await ids({ eanNumbers: ["541-7", "541-8"] })).toEqual([one, other]);
  });

  test("changes by either name, also where a client writes back both", async () => {
    const id = await made({ ean: "A" });
    const path = `/sources/${id}`;
    const put = (body: object) => hub.ok("PUT", path, { body });
    expect(await put({ eanNumber: "B" })).toMatchObject({ ean: "B", eanNumber: "B" });
    const read = await hub.get(path);
    expect(await put({ ...read, eanNumber: "C" })).toMatchObject({ ean: "C", eanNumber: "C" });
    expect(await put({ ...read, ean: "D", eanNumber: "C" })).toMatchObject({ ean: "D" });
    expect(await put(await hub.get(path))).toMatchObject({ ean: "D" });
    expect(await hub.call("PUT", path, { body: { ean: "E", eanNumber: "F" } })).toMatchObject({ status: 400 });
    expect(await eans(id)).toBe("D");
    const patch = (body: unknown) => hub.ok("PATCH", path, { body });
    expect(await patch([{ op: "replace", path: "/eanNumber", value: "G" }])).toMatchObject({ ean: "G" });
    expect(await patch({ EANNUMBER: "H" })).toMatchObject({ eanNumber: "H" });
    expect(await patch({ ean: "H", eanNumber: null })).toMatchObject({ ean: null, eanNumber: null });
    expect(await eans(id)).toBeNull();
  });
});

describe("a client that copies sites", () => {
  test("finds no property `calculated` at a plain variable, whatever the address", async () => {
    const { sourceId, variableIds } = await createChain(hub, { variables: [{}, {}] });
    const [plainId = 0, inputId = 0] = variableIds;
    const calculated = {
      calculatedVariableFormulas: [{ formula: "= a", variables: [{ alias: "a", variableId: inputId }] }],
    };
    const calculatedId = await hub.post("/variables", { ...COPIED, sourceId, calculated });
    const verbose = { DisplayLevel: "Verbose" };
    const shown = [
      ...(await hub.get("/variables", { sourceId, ...verbose })),
      ...(await hub.get(`/variables/source/${sourceId}`, verbose)),
      await hub.get(`/variables/${plainId}`),
      await hub.ok("PUT", `/variables/${plainId}`, { body: { name: "Plain" } }),
    ];
    const plain = shown.filter(({ id }) => id !== calculatedId);
    expect(plain.map((variable) => "calculated" in variable)).toEqual(plain.map(() => false));
    const [formula] = shown.find(({ id }) => id === calculatedId).calculated.calculatedVariableFormulas;
    expect(formula.variables).toEqual([{ alias: "a", variableId: inputId, sourceId, siteId: expect.any(Number) }]);
  });

  test("makes a calculated variable with an empty formula, which calculates nothing until it has one", async () => {
    const { sourceId, variableIds } = await createChain(hub);
    const [inputId = 0] = variableIds;
    const calculated = { friendlyName: "Later", calculatedVariableFormulas: [{}] };
    const id = await hub.post("/variables", { ...COPIED, sourceId, calculated });
    expect(await hub.get(`/variables/${id}`)).toMatchObject({ calculated });
    await hub.push([{ variableId: inputId, data: READINGS }]);
    const full = { formula: "= a * 2", variables: [{ alias: "a", variableId: inputId }] };
    await hub.ok("PUT", `/variables/${id}`, { body: { calculated: { calculatedVariableFormulas: [full] } } });
    await expect.poll(() => hub.get("/data", { variableId: id })).toHaveLength(3);
  });

  test("gives a formula's input a granularity alone, whose aggregate is that of the input variable", async () => {
    const { sourceId, variableIds } = await createChain(hub, { variables: [{ quantityType: 2, aggregate: 1 }, {}] });
    const [inputId = 0, without = 0] = variableIds;
    const calculated = (variableId: number) => ({
      calculatedVariableFormulas: [{ formula: "= a", variables: [{ alias: "a", variableId, granularity: "Hour" }] }],
    });
    await hub.push([
      {
        variableId: inputId,
        data: [0, 15].map((minute) => ({ date: `2026-03-01T00:${minute || "00"}:00Z`, value: 2 })),
      },
    ]);
    const id = await hub.post("/variables", { ...COPIED, sourceId, calculated: calculated(inputId) });
    await expect.poll(() => hub.get("/data", { variableId: id })).toMatchObject([{ rawValue: 4 }]);
    const answer = await hub.call("POST", "/variables", {
      body: { ...COPIED, sourceId, calculated: calculated(without) },
    });
    expect(answer).toMatchObject({
      status: 400,
      body: { detail: expect.stringMatching(/aggregation: is missing.*neither an aggregate nor a quantityType/) },
    });
  });
});

test("levels of a form field need no quotes where they are plain words", async () => {
  const groups = [{ name: "Group1", fields: [{ name: "STRING_FIELD" }] }];
  await hub.post("/form", { name: "SOURCE_FORM", entityType: "Source", groups });
  const clientData = { SOURCE_FORM: { Group1: { STRING_FIELD: "x" } } };
  const { sourceId } = await createChain(hub, { source: { clientData }, variables: [] });
  const found = async (CustomFilter: string) =>
    (await hub.get("/sources", { CustomFilter })).map((row: { id: number }) => row.id);
  for (const expression of [
    "SOURCE_FORM.Group1.'STRING_FIELD' = 'x'",
    "SOURCE_FORM.Group1.STRING_FIELD = x",
    "Source.SOURCE_FORM.Group1.STRING_FIELD = 'x'",
    "'SOURCE_FORM'.Group1.\"STRING_FIELD\" = 'x'",
  ])
    expect(await found(expression), expression).toEqual([sourceId]);
  const unknown = await hub.call("GET", "/sources", { query: { CustomFilter: "Sorce.Name = 'x'" } });
  expect(unknown).toMatchObject({ status: 400, body: { detail: expect.stringContaining("Sorce") } });
});

test("like without a wildcard finds what contains the text", async () => {
  const siteId = await hub.post("/sites", { name: "North part of the works", timeZoneId: "UTC" });
  const found = async (CustomFilter: string) =>
    (await hub.get("/sites", { CustomFilter })).map((row: { id: number }) => row.id);
  expect(await found("Name like 'PART of the w'")).toEqual([siteId]);
  expect(await found("Name like 'part of the w%'")).toEqual([]);
  expect(await found("Name like 'North part_of%'")).toEqual([siteId]);
  expect(await found("Name not like 'part of the w'")).not.toContain(siteId);
});

test("a year or a part of a date is compared with any text that begins with a date", async () => {
  const made = async (Start: string) => {
    const clientData = { "My Form": { G: { Start } } };
    return (await createChain(hub, { source: { clientData }, variables: [] })).sourceId;
  };
  const early = await made("2023-12-31");
  const may = await made("2024-05-01");
  const late = await made("2025-01-01T00:00:00Z");
  const found = async (CustomFilter: string) =>
    (await hub.get("/sources", { CustomFilter })).map((row: { id: number }) => row.id).sort();
  const check = async () => {
    const field = '"My Form"."G"."Start"';
    expect(await found(`${field} >= 2024`)).toEqual([may, late]);
    expect(await found(`${field} > 2024`)).toEqual([late]);
    expect(await found(`${field} = 2024`)).toEqual([may]);
    expect(await found(`${field} <= 2024`)).toEqual([early, may]);
    expect(await found(`${field} < '2024-05'`)).toEqual([early]);
    expect(await found(`${field} = '2024-05'`)).toEqual([may]);
  };
  await check();
  await hub.post("/form", {
    name: "My Form",
    entityType: "Source",
    groups: [{ name: "G", fields: [{ name: "Start" }] }],
  });
  await check();
});

test("POST /push/api/standard, of older clients, takes flat readings with names in any case", async () => {
  const { variableIds } = await createChain(hub, { variables: [{}, {}] });
  const [first = 0, second = 0] = variableIds;
  const Data = [
    { VariableId: first, Date: "2026-03-01T00:00:00Z", Value: 1.5 },
    { variableid: second, DATE: "2026-03-01T00:00:00Z", value: 2.5 },
    { VariableId: first, Date: "2026-03-01T01:00:00Z", Value: 3.5 },
  ];
  const { operationId } = await hub.post("/push/api/standard", { Data }, { query: { operationId: "older-1" } });
  expect(operationId).toBe("older-1");
  expect(await hub.settled(operationId)).toMatchObject({ received: 3, stored: 3 });
  expect(await hub.get("/data", { variableId: first })).toHaveLength(2);
  const answer = await hub.call("POST", "/push/api/standard", { body: { Items: [] } });
  expect(answer).toMatchObject({ status: 400, body: { detail: expect.stringContaining("Data") } });
});

test("POST /api/data and its siblings say where push lives", async () => {
  for (const path of [
    "/api/data",
    "/api/data/",
    "/api/standard",
    "/api/generic/d2719cd5-0b3e-4ed0-a8a4-3f0d0d1a3e1b",
  ]) {
    const answer = await hub.call("POST", path, { body: [] });
    expect(answer, path).toMatchObject({ status: 404, body: { detail: expect.stringContaining("/push/api/") } });
  }
});

test("an empty SiteId counts as none", async () => {
  const { sourceId } = await createChain(hub, { variables: [] });
  const rows: { id: number }[] = await hub.get("/sources", { SiteId: "", Id: sourceId });
  expect(rows.map(({ id }) => id)).toEqual([sourceId]);
  expect(await hub.call("GET", "/storage", { query: { SiteId: "" } })).toMatchObject({ status: 200 });
  expect(await hub.call("GET", "/variables", { query: { SourceIds: ["", String(sourceId)] } })).toMatchObject({
    status: 200,
  });
});

test("paging needs no prefix, and numbers and words stand for each other", async () => {
  const { sourceId, variableIds } = await createChain(hub, { variables: [{}, {}] });
  const [variableId = 0] = variableIds;
  await hub.push([{ variableId, data: READINGS }]);
  expect(await hub.get("/variables", { sourceId, pageNumber: 0, itemsPerPage: 1 })).toHaveLength(1);
  expect(await hub.get("/data", { variableId, granularity: 2, aggregation: 1 })).toHaveLength(3);
  const words = { granularity: 15, granularityTimeBase: "Minute", quantityType: "Integrated", aggregate: "SUM" };
  const id = await hub.post("/variables", { ...COPIED, sourceId, ...words });
  expect(await hub.get(`/variables/${id}`)).toMatchObject({ granularityTimeBase: 2, quantityType: 2, aggregate: 1 });
  expect(await hub.call("GET", "/sites", { headers: { scope: "push-data" } })).toMatchObject({ status: 200 });
});

test("a granularity of 0 or below and a blank name are refused, and only what is missing is called so", async () => {
  const { sourceId, siteId } = await createChain(hub, { variables: [] });
  const refusal = async (path: string, body: object) => {
    const answer = await hub.call("POST", path, { body });
    expect(answer.status, JSON.stringify(body)).toBe(400);
    return (answer.body as { detail: string }).detail;
  };
  for (const granularity of [0, -15])
    expect(await refusal("/variables", { ...COPIED, sourceId, granularity })).toMatch(
      /^granularity must be 1 at least/,
    );
  for (const [path, body] of [
    ["/sites", { timeZoneId: "UTC" }],
    ["/sources", { siteId, sourceTypeId: 1 }],
    ["/variables", { ...COPIED, sourceId }],
  ] as const) {
    expect(await refusal(path, { ...body, name: "   " })).toMatch(/^name must not be blank/);
    expect(await refusal(path, { ...body, name: "" })).toMatch(/^name must not be blank/);
  }
  expect(await refusal("/sites", { name: "S" })).toBe("timeZoneId is missing");
  expect(await refusal("/sites", { name: "S", timeZoneId: 5 })).not.toContain("missing");
});

describe("POST /form", () => {
  const groups = (...names: string[]) => [{ name: "G", fields: names.map((name) => ({ name })) }];

  test("changes the form whose id the body has, and names what removes the values of a dropped field", async () => {
    const made = await hub.post("/form", { name: "Copied form", groups: groups("Kept", "Dropped") });
    const clientData = { "Copied form": { G: { Kept: "a", Dropped: "b" } } };
    const { sourceId } = await createChain(hub, { source: { clientData }, variables: [] });
    const body = { ...made, groups: groups("Kept") };
    const refused = await hub.call("POST", "/form", { query: { name: "Copied form" }, body });
    const detail = expect.stringMatching(`source ${sourceId} .*Copied form.G.Dropped.*WithData=true`);
    expect(refused).toMatchObject({ status: 409, body: { detail } });
    const changed = await hub.ok("POST", "/form", { query: { name: "Copied form", withData: true }, body });
    expect(changed).toMatchObject({ id: made.id, groups: [{ fields: [{ name: "Kept" }] }] });
    const source = await hub.get(`/sources/${sourceId}`);
    expect(source.clientData).toEqual({ "Copied form": { G: { Kept: "a" } } });
  });

  test("takes WithData=true where values without a form do not fit a new one, and the id of a taken name", async () => {
    const clientData = { Loose: { G: { Other: "x" } } };
    await createChain(hub, { source: { clientData }, variables: [] });
    const body = { name: "Loose", groups: groups("Kept") };
    expect(await hub.call("POST", "/form", { body })).toMatchObject({ status: 409 });
    expect(await hub.ok("POST", "/form", { query: { WithData: true }, body })).toMatchObject({ name: "Loose" });
    const taken = await hub.call("POST", "/form", { body });
    expect(taken).toMatchObject({ status: 409, body: { detail: expect.stringContaining("send its id to change it") } });
  });
});

test("a variable without quantity and aggregate is made with a warning that says so", async () => {
  const { sourceId } = await createChain(hub, { variables: [] });
  const warning = async (more: object, path = "/variables") =>
    (await hub.call("POST", path, { body: { ...COPIED, sourceId, ...more } })).headers.get("x-headgate-warning");
  expect(await warning({})).toMatch(/^the variable \d+ has no quantityType/);
  expect(await warning({}, `/variables/source/${sourceId}`)).toMatch(/no quantityType/);
  expect(await warning({ quantityType: 2 })).toBeNull();
  expect(await warning({ aggregate: "AVG" })).toBeNull();
});
