/** `CustomFilter` and `OdmSqlFilter`: what they find, and what they say of expressions that cannot be read. */
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parseFilter } from "#hub/filter/parse.ts";
import { startTestHub, type TestHub } from "./fixture.ts";

let hub: TestHub;

beforeAll(async () => {
  hub = await startTestHub();
  const [paris, bergen] = await Promise.all([
    hub.post("/sites", { name: "Paris office", typeId: 3, timeZoneId: "Europe/Paris", city: "Paris" }),
    hub.post("/sites", { name: "Bergen plant", typeId: 10, timeZoneId: "Europe/Oslo", city: "BERGEN" }),
  ]);
  const contract = (supplier: string, power: number) => ({
    Contract: { Main: { Supplier: supplier, Power: power } },
  });
  const sources = [
    {
      name: "Main meter",
      siteId: paris,
      serialNumber: "0042",
      tags: ["grid", "Billing"],
      clientData: contract("Été énergie", 36),
    },
    { name: "Boiler", siteId: paris, serialNumber: "B-1", ean: "541", energyTypeId: 2 },
    {
      name: "100 % roof",
      siteId: bergen,
      serialNumber: "O'Brien",
      energyTypeId: 0,
      clientData: contract("Nord", 100),
    },
    { name: "Ångström", siteId: bergen, description: "" },
  ];
  for (const source of sources) {
    const { id } = await hub.post("/sources", { sourceTypeId: 1, ...source });
    if (source.name === "Boiler")
      await hub.post("/variables", {
        name: "Heat",
        sourceId: id,
        variableTypeId: 0,
        unitId: 8,
        mappingConfig: "Q",
      });
  }
});
afterAll(() => hub.close());

async function found(expression: string, path = "/sources", parameter = "CustomFilter"): Promise<string[]> {
  const rows = (await hub.get(path, { [parameter]: expression })) as { name: string }[];
  return rows.map(({ name }) => name);
}

describe("an expression over sources", () => {
  it.each([
    ["Name = 'Boiler'", ["Boiler"]],
    ["name = Boiler", ["Boiler"]],
    ["NAME = 'BOILER'", ["Boiler"]],
    ["name = 'ÅNGSTRÖM'", ["Ångström"]],
    ["Name <> 'Boiler'", ["Main meter", "100 % roof", "Ångström"]],
    ["not Name = 'Boiler'", ["Main meter", "100 % roof", "Ångström"]],
    ["SerialNumber = 0042", ["Main meter"]],
    ["SerialNumber = 42", []],
    ["SerialNumber = 'O''Brien'", ["100 % roof"]],
    ["Name like '%o%r'", ["Boiler"]],
    ["Name startswith '100 %'", ["100 % roof"]],
    ["Name startswith '1%'", []],
    ["Name ~ '0 %'", ["100 % roof"]],
    ["Name !~ 'O'", ["Main meter", "Ångström"]],
    ["Name not startswith 'm'", ["Boiler", "100 % roof", "Ångström"]],
    ["Name endswith 'ER'", ["Main meter", "Boiler"]],
    ["Name not like '%e%' and Name not endswith 'f'", ["Ångström"]],
    ["EnergyTypeId = 0", ["100 % roof"]],
    ["EnergyTypeId <> 2", ["Main meter", "100 % roof", "Ångström"]],
    ["EnergyTypeId >= 0 and EnergyTypeId < 2", ["100 % roof"]],
    ["Ean is empty", ["Main meter", "100 % roof", "Ångström"]],
    ["Ean is not empty", ["Boiler"]],
    ["Description = ''", ["Main meter", "Boiler", "100 % roof", "Ångström"]],
    ["Tags is empty", ["Boiler", "100 % roof", "Ångström"]],
    ["Tags = 'billing'", ["Main meter"]],
    ["Tags <> 'billing' and Tags is not empty", []],
    ["Name = 'Boiler' or Name = 'Main meter' and EnergyTypeId is not empty", ["Boiler"]],
    ["(Name = 'Boiler' or Name = 'Main meter') and EnergyTypeId is empty", ["Main meter"]],
    ["Site.Name = 'Paris office'", ["Main meter", "Boiler"]],
    ["Site.City startswith 'berg' && Name <> 'Ångström'", ["100 % roof"]],
    ["not Site.TypeId = 3", ["100 % roof", "Ångström"]],
    ["Variable.MappingConfig = 'q'", ["Boiler"]],
    ['"Contract"."Main"."Supplier" = \'ÉTÉ ÉNERGIE\'', ["Main meter"]],
    ['"Contract"."Main"."Power" > 36', ["100 % roof"]],
    ['"Contract"."Main"."Power" is empty', ["Boiler", "Ångström"]],
    ['"Contract"."Other"."Power" = 36', []],
  ])("%s", async (expression, names) => {
    expect(await found(expression)).toEqual(names);
    expect(await found(expression, "/sources", "OdmSqlFilter")).toEqual(names);
  });

  it("combines with the other filters and with paging", async () => {
    const query = { CustomFilter: "Name <> 'Boiler'", "Paging.PageNumber": 1, "Paging.ItemsPerPage": 2 };
    const answer = await hub.call("GET", "/sources", { query: { ...query, IncludeItemsCount: true } });
    expect(answer.body.map(({ name }: { name: string }) => name)).toEqual(["Ångström"]);
    expect(answer.headers.get("x-total-count")).toBe("3");
    expect(await hub.get("/sources", { CustomFilter: "Ean is empty", SerialNumber: "0042" })).toHaveLength(1);
  });
});

it("filters sites by their sources", async () => {
  expect(await found("Source.SerialNumber = 'B-1'", "/sites")).toEqual(["Paris office"]);
  expect(await found("Variable.Name = 'heat'", "/sites")).toEqual(["Paris office"]);
  expect(await found("not Source.EnergyTypeId = 2", "/sites")).toEqual(["Bergen plant"]);
});

it("accepts as many terms as fit into an expression", async () => {
  const terms = [...Array.from({ length: 1_300 }, () => "Id=0"), "Ean=541"].join("||");
  expect(await hub.get("/sources", { CustomFilter: terms })).toMatchObject([{ name: "Boiler" }]);
});

describe("an invalid expression", () => {
  it.each([
    ["", "at position 1: the expression is empty"],
    ["Name", "at position 5: an operator is expected after name, not the end"],
    ["Name constructor 'a'", "at position 6: an operator is expected after name, not constructor"],
    ["Name not toString 'a'", "an operator is expected after name"],
    ["Name __proto__ 'a'", "an operator is expected after name"],
    ["constructor = 'a'", "at position 1: a source has no field constructor"],
    ["constructor.name = 'a'", "at position 1: constructor is none of Site, Source and Variable"],
    ["Name = ", "at position 8: a value is expected after ="],
    ["Name == 'a' 'b'", 'at position 13: "and", "or" or the end is expected, not \'b\''],
    ["(Name = 'a'", 'at position 12: ")" is expected'],
    ["Name = 'a' and", "at position 15: the name of a field is expected"],
    ["Nmae = 'a'", "at position 1: a source has no field Nmae; did you mean name?"],
    ["Name = 'a", "at position 8: the quote ' is not closed"],
    ["SiteId = 'a'", "at position 10: siteId is a number, and 'a' is none"],
    ["SiteId like '1%'", "at position 8: like compares texts, and siteId is a number"],
    ["Meter.Name = 'a'", "at position 1: Meter is none of Site, Source and Variable"],
    ['"Form"."Group" = 1', 'at position 1: a form field has three levels, "form"."group"."field", and this one has 2'],
    ["Name = 'a'; DROP TABLE source", "at position 11: ; is not expected here"],
    [`${"(".repeat(500)}Name = 'a'${")".repeat(500)}`, "nested deeper than 100 levels"],
    [`Name = '${"a".repeat(9_000)}'`, "longer than 8000 characters"],
  ])("%s", async (expression, message) => {
    const { status, body } = await hub.call("GET", "/sources", { query: { CustomFilter: expression } });
    expect(status).toBe(400);
    expect(body.errors).toEqual([{ path: "CustomFilter", message: expect.stringContaining(message) }]);
  });
});

it("divides all rows between an expression and its negation", async () => {
  const field = fc.constantFrom("Name", "Ean", "Description", "Site.City", "Tags", '"Contract"."Main"."Supplier"');
  const operator = fc.constantFrom("=", "<>", "like", "not like", "startswith", "not endswith");
  const value = fc.constantFrom("'Boiler'", "'%e%'", "''", "'541'", "'grid'", "'Nord'");
  const test = fc.tuple(field, operator, value).map((words) => words.join(" "));
  const expression = fc.oneof(
    test,
    fc.tuple(test, fc.constantFrom("and", "or"), test).map((words) => words.join(" ")),
  );
  const all = (await found("Name is not empty")).toSorted();
  await fc.assert(
    fc.asyncProperty(expression, async (text) => {
      const [held, not] = [await found(text), await found(`not (${text})`)];
      expect([...held, ...not].toSorted()).toEqual(all);
    }),
    { numRuns: 60 },
  );
});

it("is accepted or refused with a position, whatever its text", () => {
  const words = [
    "Name",
    "Site",
    ".",
    "=",
    "<>",
    "(",
    ")",
    "not",
    "and",
    "or",
    "'x'",
    '"f"',
    "1",
    "is",
    "empty",
    "%",
    "like",
    " ",
  ];
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string(),
        fc.array(fc.constantFrom(...words)).map((list) => list.join(" ")),
      ),
      (text) => {
        try {
          parseFilter("CustomFilter", text, "source");
        } catch (thrown) {
          expect(String(thrown)).toMatch(/at position \d+: /);
        }
      },
    ),
  );
});
