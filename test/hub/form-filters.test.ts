/** Expressions over fields of forms, compared by their types (`docs/hub/structure.md`, *Filter expressions*). */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createChain, type Query, startTestHub, type TestHub } from "./fixture.ts";

let hub: TestHub;
const FIELDS = [
  { name: "Supplier" },
  { name: "Power", type: "Number" },
  { name: "Signed on", type: "Date" },
  { name: "Green", type: "Boolean" },
  { name: "Kind", type: "List", options: ["Fixed", "Variable"] },
  { name: "Phones", isList: true },
  { name: "Limits", type: "Number", isList: true },
  { name: "Flags", type: "Boolean", isList: true },
  { name: "Tariff", type: "Number", timeSliced: true },
  { name: "Owner", type: "Reference", referenceTo: "Site" },
];
const FIRST = {
  Supplier: "Volta",
  Power: 9,
  "Signed on": "2025-12-31",
  Green: true,
  Kind: "Fixed",
  Phones: ["112", "113"],
  Limits: [5, 50],
  Flags: [true],
  Tariff: [
    { FromDate: "2020-01-01T00:00:00Z", Value: 1 },
    { FromDate: "2024-01-01T00:00:00Z", Value: 2 },
    { FromDate: "2300-01-01T00:00:00Z", Value: 3 },
  ],
};
const SECOND = { Supplier: "volta 2", Power: 36, "Signed on": "2026-03-01T23:30:00Z", Green: false, Kind: "Variable" };
const ids: Record<"first" | "second" | "bare", number> = { first: 0, second: 0, bare: 0 };

beforeAll(async () => {
  hub = await startTestHub();
  const groups = [{ name: "Main", fields: FIELDS }];
  for (const entityType of ["Site", "Source"]) await hub.post("/form", { name: "Contract", entityType, groups });
  await hub.post("/form", {
    name: "Roof",
    entityType: "Site",
    groups: [{ name: "Main", fields: [{ name: "Area", type: 2 }] }],
  });
  for (const [name, values, area] of [
    ["first", FIRST, 120],
    ["second", SECOND, 8],
    ["bare", {}, 0],
  ] as const) {
    const clientData = { Contract: { Main: values } };
    const { siteId, sourceId } = await createChain(hub, { source: { name, clientData }, variables: [] });
    expect(siteId).toBe(sourceId);
    ids[name] = siteId;
    await hub.ok("PUT", `/sites/${siteId}`, {
      body: { name, clientData: { ...clientData, Roof: { Main: { Area: area } } } },
    });
  }
});
afterAll(() => hub.close());

const found = async (path: string, CustomFilter: string, more: Query = {}) =>
  (await hub.get(path, { CustomFilter, ...more })).map(({ name }: { name: string }) => name);
const of = (field: string) => `"Contract"."Main"."${field}"`;

describe.each(["/sites", "/sources"])("fields of forms on %s", (path) => {
  test.each([
    [`${of("Power")} > 10`, ["second"]],
    [`${of("Power")} < '36'`, ["first"]],
    [`${of("Power")} >= 9 and ${of("Power")} <= 36.0`, ["first", "second"]],
    [`${of("Power")} <> 9`, ["second", "bare"]],
    [`${of("Power")} is empty`, ["bare"]],
    [`"CONTRACT"."main"."supplier" = 'VOLTA'`, ["first"]],
    [`${of("Supplier")} startswith 'volta'`, ["first", "second"]],
    [`${of("Supplier")} not endswith '2'`, ["first", "bare"]],
    [`${of("Signed on")} = 2026`, ["second"]],
    [`${of("Signed on")} = '2025-12'`, ["first"]],
    [`${of("Signed on")} > 2025`, ["second"]],
    [`${of("Signed on")} >= 2025`, ["first", "second"]],
    [`${of("Signed on")} < '2026-03-01'`, ["first"]],
    [`${of("Signed on")} <= '2026-03-01'`, ["first", "second"]],
    [`${of("Signed on")} > '2026-03-01T23:29:59Z'`, ["second"]],
    [`${of("Signed on")} = '2026-03-02T00:30:00+01:00'`, ["second"]],
    [`${of("Signed on")} startswith '2025'`, ["first"]],
    [`${of("Green")} = true`, ["first"]],
    [`${of("Green")} <> 'True'`, ["second", "bare"]],
    [`${of("Kind")} = 'variable'`, ["second"]],
    [`${of("Phones")} = '113'`, ["first"]],
    [`${of("Phones")} is not empty`, ["first"]],
    [`${of("Limits")} > 40`, ["first"]],
    [`not ${of("Limits")} > 50`, ["first", "second", "bare"]],
    [`${of("Flags")} = true`, ["first"]],
    [`${of("Tariff")} = 2`, ["first"]],
    [`${of("Tariff")} is empty`, ["second", "bare"]],
  ])("%s", async (expression, names) => {
    expect(await found(path, expression)).toEqual(names);
    const others = ["first", "second", "bare"].filter((name) => !names.includes(name));
    expect(await found(path, `not (${expression})`)).toEqual(others);
  });

  test("compare a time-sliced value of the moment that AsOf names", async () => {
    expect(await found(path, `${of("Tariff")} = 1`, { AsOf: "2023-12-31T23:59:59.999Z" })).toEqual(["first"]);
    expect(await found(path, `${of("Tariff")} = 2`, { AsOf: "2024-01-01" })).toEqual(["first"]);
    expect(await found(path, `${of("Tariff")} = 3`, { AsOf: "2301-01-01" })).toEqual(["first"]);
    expect(await found(path, `${of("Tariff")} is empty`, { AsOf: "2019-12-31" })).toHaveLength(3);
    expect(await hub.call("GET", path, { query: { AsOf: "yesterday" } })).toMatchObject({
      status: 400,
      body: { errors: [{ path: "AsOf" }] },
    });
  });

  test.each([
    [`${of("Power")} = 'much'`, "is a number, and 'much' is none"],
    [`${of("Power")} like '3%'`, "compares texts"],
    [`${of("Green")} = 1`, "is true or false, and not 1"],
    [`${of("Signed on")} > 'soon'`, "is a date, such as '2026'"],
    [`${of("Signed on")} = '2026-13'`, "is a date"],
    [`${of("Price")} = 1`, 'the form Contract has no field "Main"."Price"; it has "Main"."Supplier"'],
  ])("%s is refused with the position", async (CustomFilter, words) => {
    const answer = await hub.call("GET", path, { query: { CustomFilter } });
    expect(answer).toMatchObject({ status: 400 });
    expect(answer.body.detail).toContain("at position");
    expect(answer.body.detail).toContain(words);
  });
});

test("a form of the other entity is that of the related rows, and can be named by it", async () => {
  expect(await found("/sources", '"Roof"."Main"."Area" > 100')).toEqual(["first"]);
  await hub.ok("PUT", `/sites/${ids.second}`, {
    body: { clientData: { Contract: { Main: { Power: 99 } } } },
  });
  expect(await found("/sites", `${of("Power")} = 99`)).toEqual(["second"]);
  expect(await found("/sources", `${of("Power")} = 99`)).toEqual([]);
  expect(await found("/sources", `Site.${of("Power")} = 99`)).toEqual(["second"]);
  expect(await found("/sites", `Source.${of("Power")} = 36`)).toEqual(["second"]);
});

test("views take them, too, and judge them when they are made", async () => {
  const view = { name: "v", entityType: "Source", customFilter: `${of("Power")} > 10` };
  const ViewId = await hub.post("/views", view);
  expect((await hub.get("/sources", { ViewId })).map(({ id }: { id: number }) => id)).toEqual([ids.second]);
  const body = { ...view, customFilter: `${of("Power")} > 'ten'` };
  expect(await hub.call("POST", "/views", { body })).toMatchObject({ status: 400 });
});
