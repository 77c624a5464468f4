/** Tables of sites, sources and variables: what they say, and what is refused with its place. */
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { provisionTemplate } from "#gateway/provisioning/options.ts";
import { readTable, TABLE_COLUMNS, TABLE_RULES } from "#gateway/provisioning/table.ts";
import { wantedByTemplate } from "#gateway/provisioning/template.ts";
import { addRows, type StatedRow } from "#mapping/readers/master-data/rows.ts";
import { stampPlace } from "#mapping/readers/row-place.ts";
import { targetWords, UNITS } from "#wire/index.ts";

type Cell = string | number | boolean | null;

async function table(...given: readonly (readonly Cell[])[]) {
  const rows: StatedRow[] = [];
  const cells = given.map((row) => [...row]);
  for (const [at, row] of cells.entries()) stampPlace(row, at + 1);
  await addRows(rows, [cells], "Sheet1", TABLE_RULES);
  return readTable("master.csv", rows);
}
const HEADER = ["site_name", "source_serial_number", "mapping_config", "unit"];

/** What is wrong, a line each. */
async function faultsOf(...rows: readonly (readonly Cell[])[]): Promise<readonly string[]> {
  try {
    await table(...rows);
    return [];
  } catch (thrown) {
    return (thrown as Error).message
      .split("\n")
      .slice(1)
      .map((line) => line.trim());
  }
}

describe("a table of sites, sources and variables", () => {
  it("has a row for each variable, with its source and site, whatever the spelling of the header", async () => {
    const [one] = await table(
      [
        "Site Name",
        "site-type-id",
        "SITE_TIMEZONE",
        "source_serialnumber",
        "source_tags",
        "source_custom.Building",
        "mapping_config",
        "variable_type_id",
        "unit",
        "granularity",
        "quantity_type",
        "is_versioned",
        "energy_type_id",
      ],
      [
        "Plant",
        10,
        "Europe/Brussels",
        "M-1",
        "roof | north",
        "B7",
        "kWh import",
        0,
        "kWh",
        "15 minutes",
        "integrated",
        true,
        "1",
      ],
    );
    expect(one?.target).toEqual({ sourceSerialNumber: "M-1", mappingConfig: "kWh import" });
    expect(one?.words).toBe("sourceSerialNumber=M-1 mappingConfig=kWh import (row 2)");
    expect(one?.meant).toContain("sourceName=M-1 mappingConfig=kWh import");
    expect(one?.site()).toEqual({ name: "Plant", typeId: 10, timeZoneId: "Europe/Brussels" });
    expect(one?.source()).toEqual({
      ...{ name: "M-1", serialNumber: "M-1", timeZoneId: "Europe/Brussels", energyTypeId: 1 },
      ...{ tags: ["roof", "north"], clientData: { Building: "B7" } },
    });
    expect(one?.variable(UNITS)).toEqual({
      ...{ name: "kWh import", mappingConfig: "kWh import", variableTypeId: 0, unitId: 8 },
      ...{ granularity: 15, granularityTimeBase: 2, quantityType: 2, isVersioned: true },
    });
  });

  it("identifies sources by the first identifying column that it has, in every row", async () => {
    const header = ["site_name", "source_name", "source_ean", "variable_type_id", "unit"];
    const [one] = await table(header, ["Plant", "Main", "541448820000000001", 131, "kWh"]);
    expect(one?.target).toEqual({ sourceEan: "541448820000000001", variableTypeId: 131 });
    expect(one?.source()).toMatchObject({ name: "Main", ean: "541448820000000001" });
    expect(await faultsOf(header, ["Plant", "Main", null, 131, "kWh"])).toEqual([
      "row 2, column source_ean: it is empty; fill it in every row, no value is taken over from the row above",
    ]);
  });

  it("refuses columns that are unknown, repeated, or missing", async () => {
    const [twice, unknown, ...others] = await faultsOf(
      ["site_name", "site_name", "meter", "unit"],
      ["a", "a", "b", "kWh"],
    );
    expect(twice).toBe('row 1, column site_name: the header names site_name twice, also as "site_name"');
    expect(unknown).toMatch(/^row 1, column meter: there is no column "meter": there are site_name, /);
    expect(others).toEqual([
      "the column source_serial_number or source_ean or meter_number or source_name is missing; add it",
      "the column mapping_config or variable_type is missing; add it",
    ]);
    expect(await faultsOf(HEADER)).toEqual(["it has a header and no row, or is empty"]);
    expect(() => readTable("master.csv", [])).toThrow("it has a header and no row, or is empty");
  });

  it("names row and column of every doubtful cell at once", async () => {
    const header = [...HEADER, "site_time_zone", "site_type_id", "granularity", "is_versioned", "quantity_type"];
    const zone = "Europe/Brussels";
    expect(
      await faultsOf(
        header,
        ["Plant", "M-1", "a", "kWh", zone, "ten", "4", "maybe", "much"],
        ["Plant", "M-1", "a", "kWh", zone, null, null, null, null],
        [null, null, null, null, "Mars/Base", null, null, null, null],
        ["Plant", "M-2", "b", "kWh", "Europe/Paris", null, null, null, null, "left over"],
        ["Depot", "M-1", "c", "kWh", zone, null, null, null, null],
        ["Plant", Number("541448820000000001"), "d", "kWh", zone, null, null, null, null],
      ),
    ).toEqual([
      'row 2, column site_type_id: the cell is "ten", which is no id and no name of GET /sitetypes',
      'row 2, column granularity: the cell is "4", and not such as 15 minutes or 1 day',
      'row 2, column is_versioned: the cell is "maybe", and neither true nor false',
      expect.stringMatching(/^row 2, column quantity_type: the cell is "much", .* GET \/quantityTypes \(.*Integrated/),
      "row 3, column mapping_config: row 2 is about the same variable; keep one of them",
      expect.stringMatching(
        /^row 4, column site_time_zone: the cell is "Mars.Base", and not a time zone such as Europe/,
      ),
      ...["site_name", "source_serial_number"].map(
        (name) => `row 4, column ${name}: it is empty; fill it in every row, no value is taken over from the row above`,
      ),
      "row 4, column unit: it is empty; state the unit of the values",
      "row 4, column mapping_config: it is empty, and so is variable_type; fill one of them",
      "row 5: the row has 10 cells where the header has 9",
      'row 5, column site_time_zone: row 2 states "Europe/Brussels" for the same Plant; state the same in every row',
      'row 6, column site_name: row 2 states "Plant" for the same M-1; state the same in every row',
      expect.stringMatching(
        /^row 7, column source_serial_number: the cell is the number .* digits .* format it as text$/,
      ),
      expect.stringMatching(/^row 7, column source_serial_number: it is empty/),
    ]);
  });

  it("reports missing facts of a new site, and unknown units", async () => {
    const [one] = await table(HEADER, ["Plant", "M-1", "a", "furlongs"]);
    expect(() => one?.site()).toThrow(
      "(row 2) cannot be created: the site Plant does not exist, and its site_type is not stated",
    );
    expect(() => one?.variable(UNITS)).toThrow("the service has no unit furlongs");
  });

  it("has every column in the documentation, and a valid example", async () => {
    const docs = readFileSync(resolve(import.meta.dirname, "../../docs/migration.md"), "utf8");
    for (const { name } of TABLE_COLUMNS) expect(docs).toContain(`\`${name}\``);
    const lines = docs.split("```csv\n")[1]?.split("\n```")[0]?.split("\n") ?? [];
    const [header = [], ...rows] = lines.map((line) => line.split(","));
    const wanted = await table(header, ...rows);
    expect(wanted.map((one) => one.variable(UNITS).unitId)).toHaveLength(3);
    for (const one of wanted) expect(one.site()).toMatchObject({ typeId: 10 });
  });
});

const word = fc.stringMatching(/^[A-Za-z0-9][A-Za-z0-9 _.-]{0,10}[A-Za-z0-9]$/);
const rowOf = fc.record({
  serial: word,
  config: word,
  unit: fc.constantFrom("kWh", "MWh", "m³", "°C"),
});

it("requests the same as a template with the same texts, whatever the names", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.uniqueArray(rowOf, {
        minLength: 1,
        maxLength: 8,
        selector: ({ serial, config }) => `${serial} ${config}`,
      }),
      fc.constantFrom(undefined, "15 minutes", "1 hour", "1 month"),
      async (rows, granularity) => {
        const template = provisionTemplate.parse({
          site: { name: "Plant", typeId: 10, timeZoneId: "Europe/Brussels" },
          source: { energyTypeId: 1 },
          variable: { isVersioned: true, ...(granularity === undefined ? {} : { granularity }) },
        });
        const targets = rows.map(({ serial, config, unit }) => ({
          target: { sourceSerialNumber: serial, mappingConfig: config },
          ...{ points: 1, fromMs: 0, toMs: 0, untagged: 0, unit },
        }));
        const byTable = await table(
          [...HEADER, "site_type_id", "site_time_zone", "energy_type_id", "is_versioned", "granularity"],
          ...rows.map(({ serial, config, unit }) => [
            ...["Plant", serial, config, unit],
            ...[10, "Europe/Brussels", 1, true, granularity ?? null],
          ]),
        );
        const shown = (wanted: typeof byTable) =>
          wanted.map((one) => ({
            ...{ target: targetWords(one.target), site: one.site(), source: one.source() },
            variable: one.variable(UNITS),
          }));
        expect(shown(byTable)).toEqual(shown(wantedByTemplate(template, targets, {})));
      },
    ),
    { numRuns: 100 },
  );
});
