/** The rules of R scripts, on every engine: what a script finds, and what becomes of what it gives. */
import { afterAll, beforeAll, expect } from "vitest";
import type { CalculationEngine, CalculationInput } from "#hub/calculated/engines/engine.ts";
import { engineNames, messageOf, openEngine, run } from "../calculated/engines/r/engines.ts";
import { rule } from "./rule.ts";

let engines: readonly CalculationEngine[];
beforeAll(() => {
  engines = engineNames().map((name) => openEngine(name));
});
afterAll(() => Promise.all(engines.map((engine) => engine.close())));

const VARIABLES: CalculationInput["variables"] = [
  {
    alias: "meter",
    metadata: { id: 7, name: 'Zähler "Süd" \\ 😀', unitId: 5, isVersioned: true, divisor: null },
    unitId: 5,
    atMs: Float64Array.of(0, 900_000, 1_800_000),
    values: Float64Array.of(1.5, -2.25, 0.1 + 0.2),
    versions: ["1.10", null, 'v "ü"\n'],
    tags: [{ note: "a,b", version: "1.10" }, null, null],
  },
  {
    alias: "plain",
    metadata: {},
    unitId: 5,
    atMs: Float64Array.of(0, 900_000),
    values: Float64Array.of(1, 2),
    versions: null,
    tags: null,
  },
];

/** A script that fails unless every condition holds, and then gives one row. */
const holds = (...conditions: string[]) =>
  `stopifnot(\n${conditions.join(",\n")}\n)\nlist(TimeSeries = data.frame(Dates = 0L, Values = 1))`;

async function onEach(check: (engine: CalculationEngine) => Promise<void>): Promise<void> {
  for (const engine of engines) await check(engine);
}

rule("calculated.script-input", () =>
  onEach(async (engine) => {
    const script = holds(
      'identical(names(inputVariables), c("meter", "plain"))',
      "is.list(inputVariables$meter$Variable)",
      "inputVariables$meter$Variable$id == 7",
      "inputVariables$meter$Variable$name == 'Z\u00e4hler \"S\u00fcd\" \\\\ \u{1F600}'",
      "inputVariables$meter$Variable$isVersioned",
      "identical(inputVariables$meter$TimeSeries$Dates, c(0L, 900L, 1800L))",
      "identical(inputVariables$meter$TimeSeries$Values, c(1.5, -2.25, 0.1 + 0.2))",
      "identical(inputVariables$meter$Version, c('1.10', '', 'v \"\u00fc\"\\n'))",
      `identical(inputVariables$meter$Tags[1:2], c('{"note":"a,b","version":"1.10"}', ''))`,
      "grepl('\"version\":', inputVariables$meter$Tags[3])",
      "identical(inputVariables$plain$Version, c('', ''))",
      "identical(inputVariables$plain$Tags, c('', ''))",
      "identical(calculation$TimeZone, 'Europe/Brussels')",
      "identical(inputConstants$factor, 2.5)",
      "identical(inputConstants$label, 'k\u00f6ln')",
    );
    const constants = [
      { alias: "factor", value: 2.5 },
      { alias: "label", value: "köln" },
    ];
    expect(await run(engine, script, { variables: VARIABLES, constants })).toMatchObject({ kind: "computed" });
  }),
);

rule("calculated.script-output", () =>
  onEach(async (engine) => {
    const script = [
      "m <- inputVariables$meter",
      "list(",
      "  TimeSeries = data.frame(Dates = m$TimeSeries$Dates, Values = m$TimeSeries$Values * 2, Version = m$Version,",
      "    Tags = m$Tags, stringsAsFactors = FALSE),",
      '  Errors = c("one", "two")',
      ")",
    ].join("\n");
    const both = await run(engine, script, { variables: VARIABLES });
    expect(both).toEqual({
      kind: "computed",
      atMs: Float64Array.of(0, 900_000, 1_800_000),
      values: Float64Array.of(3, -4.5, 2 * (0.1 + 0.2)),
      versions: ["1.10", null, 'v "ü"\n'],
      tags: [{ note: "a,b" }, null, null],
      errors: ["one", "two"],
      warnings: [],
    });
    const least = await run(engine, "list(TimeSeries = data.frame(Dates = c(60, 0.5), Values = 1:2))");
    expect(least).toMatchObject({ atMs: Float64Array.of(60_000, 500), values: Float64Array.of(1, 2) });
    expect(least).toMatchObject({ versions: null, tags: null, errors: [] });
  }),
);

rule("calculated.lengths", () =>
  onEach(async (engine) => {
    const columns = (more: string) => `list(TimeSeries = list(Dates = 1:3, Values = 1:3, ${more}))`;
    const words = (formula: string) => messageOf(run(engine, formula));
    expect(await words(columns('Version = "a"'))).toBe("Version must be the same length as Dates/Values: 1 and 3");
    expect(await words(columns('Tags = c("{}", "")'))).toBe("Tags must be the same length as Dates/Values: 2 and 3");
    expect(await words("list(TimeSeries = list(Dates = 1:3, Values = 1))")).toContain(
      "must be the same length as Dates",
    );
    const frame = 'list(TimeSeries = data.frame(Dates = 1:3, Values = 1:3, Tags = c("{}", "")))';
    expect(await words(frame)).toContain("must be the same length as Dates/Values");
  }),
);

rule("calculated.bad-tags", () =>
  onEach(async (engine) => {
    const cells = `'{"a":"1","n":1.10}', '{"a":', '[1]', '{"a":{"b":"c"}}', NA, '', '{"version":"x"}'`;
    const script = `list(TimeSeries = data.frame(Dates = 1:7, Values = 1:7, Tags = c(${cells})))`;
    const result = await run(engine, script);
    expect(result).toMatchObject({
      values: Float64Array.of(1, 2, 3, 4, 5, 6, 7),
      tags: [{ a: "1", n: "1.10" }, null, null, null, null, null, null],
      warnings: ["Tags of rows 2, 3, 4 are no JSON object with texts: the rows are stored without tags"],
    });
  }),
);

rule("calculated.slices", () =>
  onEach(async (engine) => {
    const script = holds(
      "identical(inputFormsTimeSliced$tariff$EffectiveDates, c(0L, 86400L))",
      "identical(inputFormsTimeSliced$tariff$EndDates, c(86400L, NA))",
      "identical(inputFormsTimeSliced$tariff$Values, c(0.25, NA))",
      "identical(inputFormsTimeSliced$supplier$Values, c('Stadtwerke K\u00f6ln', NA))",
      "identical(inputFormsTimeSliced$late$EffectiveDates, 4102444800)",
      "identical(inputForms$area, 120.5)",
      "is.null(inputForms$nothing)",
    );
    const dates = { timeSliced: true, fromMs: [0, 86_400_000], untilMs: [86_400_000, null] };
    const plain = { timeSliced: false, fromMs: [], untilMs: [] };
    const forms = [
      { alias: "tariff", ...dates, values: [0.25, null] },
      { alias: "supplier", ...dates, values: ["Stadtwerke Köln", null] },
      { alias: "late", timeSliced: true, fromMs: [4_102_444_800_000], untilMs: [null], values: [true] },
      { alias: "area", ...plain, values: [120.5] },
      { alias: "nothing", ...plain, values: [] },
    ];
    expect(await run(engine, script, { forms })).toMatchObject({ kind: "computed" });
  }),
);
