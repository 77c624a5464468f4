/** Tables of sites, sources and variables: what they say, and what is refused with its place. */
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { COLUMNS } from "../../src/provisioning/columns.ts";
import { provisionTemplate } from "../../src/provisioning/options.ts";
import { readTable } from "../../src/provisioning/table.ts";
import { wantedByTemplate } from "../../src/provisioning/template.ts";
import { targetWords, UNITS } from "../../src/wire/index.ts";

type Cell = string | number | boolean | null;

const table = (header: readonly string[], ...rows: readonly (readonly Cell[])[]) =>
  readTable(
    "master.csv",
    [header, ...rows].map((cells, at) => ({ row: at + 1, cells })),
  );
const HEADER = ["site_name", "source_serial_number", "mapping_config", "unit"];

/** What is wrong, a line each. */
function faultsOf(header: readonly string[], ...rows: readonly (readonly Cell[])[]): readonly string[] {
  try {
    table(header, ...rows);
    return [];
  } catch (thrown) {
    return (thrown as Error).message
      .split("\n")
      .slice(1)
      .map((line) => line.trim());
  }
}

describe("a table of sites, sources and variables", () => {
  it("has a row for each variable, with its source and site, whatever the spelling of the header", () => {
    const [one] = table(
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

  it("identifies sources by the first identifying column that it has, in every row", () => {
    const header = ["site_name", "source_name", "source_ean", "variable_type_id", "unit"];
    const [one] = table(header, ["Plant", "Main", "541448820000000001", 131, "kWh"]);
    expect(one?.target).toEqual({ sourceEan: "541448820000000001", variableTypeId: 131 });
    expect(one?.source()).toMatchObject({ name: "Main", ean: "541448820000000001" });
    expect(faultsOf(header, ["Plant", "Main", null, 131, "kWh"])).toEqual([
      "row 2, column source_ean: it is empty; fill it in every row, no value is taken over from the row above",
    ]);
  });

  it("refuses columns that are unknown, repeated, or missing", () => {
    const [unknown, ...others] = faultsOf(["site_name", "site_name", "meter", "unit"], ["a", "a", "b", "kWh"]);
    expect(unknown).toMatch(/^row 1, column meter: there is no such column; there are site_name, /);
    expect(others).toEqual([
      "row 1, column site_name: the column occurs twice; keep one of them",
      "row 1: the column source_serial_number or source_ean or meter_number or source_name is missing; add it",
      "row 1: the column mapping_config or variable_type_id is missing; add it",
    ]);
    expect(faultsOf(HEADER)).toEqual(["it has a header and no row"]);
    expect(() => readTable("master.csv", [])).toThrow("it is empty");
  });

  it("names row and column of every doubtful cell at once", () => {
    const header = [...HEADER, "site_time_zone", "site_type_id", "granularity", "is_versioned", "quantity_type"];
    const zone = "Europe/Brussels";
    expect(
      faultsOf(
        header,
        ["Plant", "M-1", "a", "kWh", zone, "ten", "4", "maybe", "much"],
        ["Plant", "M-1", "a", "kWh", zone, null, null, null, null],
        [null, null, null, null, "Mars/Base", null, null, null, null],
        ["Plant", "M-2", "b", "kWh", "Europe/Paris", null, null, null, null, "left over"],
        ["Depot", "M-1", "c", "kWh", zone, null, null, null, null],
        ["Plant", Number("541448820000000001"), "d", "kWh", zone, null, null, null, null],
      ),
    ).toEqual([
      'row 2, column site_type_id: "ten": expected a whole number',
      'row 2, column granularity: "4": expected such as 15 minutes or 1 day',
      'row 2, column is_versioned: "maybe": expected true or false',
      expect.stringMatching(/^row 2, column quantity_type: "much": expected one of .*Integrated/),
      "row 3, column mapping_config: row 2 is about the same variable; keep one of them",
      'row 4, column site_time_zone: "Mars/Base": expected a time zone such as Europe/Brussels',
      ...["site_name", "source_serial_number"].map(
        (name) => `row 4, column ${name}: it is empty; fill it in every row, no value is taken over from the row above`,
      ),
      "row 4, column unit: it is empty; state the unit of the values",
      "row 4, column mapping_config: it is empty, and so is variable_type_id; fill one of them",
      'row 5, column 10: it holds "left over" and has no name; name it in the header, or empty it',
      'row 5, column site_time_zone: row 2 states "Europe/Brussels" for the same Plant; state the same in every row',
      'row 6, column site_name: row 2 states "Plant" for the same M-1; state the same in every row',
      "row 7, column source_serial_number: a number of so many digits is rounded by the spreadsheet; write it as text",
      expect.stringMatching(/^row 7, column source_serial_number: it is empty/),
    ]);
  });

  it("reports missing facts of a new site, and unknown units", () => {
    const [one] = table(HEADER, ["Plant", "M-1", "a", "furlongs"]);
    expect(() => one?.site()).toThrow(
      "(row 2) cannot be created: the site Plant does not exist, and its site_type_id is not stated",
    );
    expect(() => one?.variable(UNITS)).toThrow("the service has no unit furlongs");
  });

  it("has every column in the documentation, and a valid example", () => {
    const docs = readFileSync(resolve(import.meta.dirname, "../../docs/migration.md"), "utf8");
    for (const { name } of COLUMNS) expect(docs).toContain(`\`${name}\``);
    const lines = docs.split("```csv\n")[1]?.split("\n```")[0]?.split("\n") ?? [];
    const [header = [], ...rows] = lines.map((line) => line.split(","));
    const wanted = table(header, ...rows);
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

it("requests the same as a template with the same texts, whatever the names", () => {
  fc.assert(
    fc.property(
      fc.uniqueArray(rowOf, {
        minLength: 1,
        maxLength: 8,
        selector: ({ serial, config }) => `${serial} ${config}`,
      }),
      fc.constantFrom(undefined, "15 minutes", "1 hour", "1 month"),
      (rows, granularity) => {
        const template = provisionTemplate.parse({
          site: { name: "Plant", typeId: 10, timeZoneId: "Europe/Brussels" },
          source: { energyTypeId: 1 },
          variable: { isVersioned: true, ...(granularity === undefined ? {} : { granularity }) },
        });
        const targets = rows.map(({ serial, config, unit }) => ({
          target: { sourceSerialNumber: serial, mappingConfig: config },
          ...{ points: 1, fromMs: 0, toMs: 0, untagged: 0, unit },
        }));
        const byTable = table(
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
