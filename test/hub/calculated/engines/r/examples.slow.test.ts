/** The examples of docs/r-scripts.md, as they are written there, on every engine. */
import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { CalculationEngine, InputVariable } from "#hub/calculated/engines/engine.ts";
import { engineNames, openEngine, run } from "./engines.ts";

const page = readFileSync(new URL("../../../../../docs/r-scripts.md", import.meta.url), "utf8");
const examples = [...page.matchAll(/^```r\n(.*?)^```$/gms)].map(([, script = ""]) => script);
const exampleWith = (word: string) => examples.find((script) => script.includes(word)) ?? "no such example";

const HOUR = 3_600_000;
const series = (alias: string, hours: readonly number[], values: readonly number[]): InputVariable => ({
  alias,
  metadata: {},
  unitId: 1,
  atMs: Float64Array.from(hours, (hour) => hour * HOUR),
  values: Float64Array.from(values),
  versions: values.map((_, row) => (row === 0 ? "final" : null)),
  tags: null,
});

describe.each(engineNames())("examples on %s", (name) => {
  let engine: CalculationEngine;
  beforeAll(() => {
    engine = openEngine(name);
  });
  afterAll(() => engine.close());

  test("there are four", () => {
    expect(examples).toHaveLength(4);
  });

  test("a difference of two series has the dates of both", async () => {
    const variables = [series("total", [0, 1, 2], [10, 20, 30]), series("pump", [1, 2, 3], [1, 2, 3])];
    expect(await run(engine, exampleWith("$pump"), { variables })).toMatchObject({
      atMs: Float64Array.of(HOUR, 2 * HOUR),
      values: Float64Array.of(19, 28),
    });
  });

  test("versions follow those of the input", async () => {
    const constants = [{ alias: "factor", value: 3 }];
    const result = await run(engine, exampleWith("from "), { variables: [series("meter", [0, 1], [1, 2])], constants });
    expect(result).toMatchObject({
      values: Float64Array.of(3, 6),
      versions: ["from final", null],
      tags: [{ kind: "computed" }, { kind: "computed" }],
    });
  });

  test("the value of a slice holds from its date", async () => {
    const forms = [
      { alias: "tariff", timeSliced: true, fromMs: [HOUR, 2 * HOUR], untilMs: [2 * HOUR, null], values: [2, 3] },
    ];
    const result = await run(engine, exampleWith("$tariff"), {
      variables: [series("meter", [0, 1, 2], [1, 1, 1])],
      forms,
    });
    expect(result).toMatchObject({ atMs: Float64Array.of(HOUR, 2 * HOUR), values: Float64Array.of(2, 3) });
  });

  test("days are those of the zone, also where one has 23 hours", async () => {
    const start = Date.parse("2026-03-28T23:00:00Z") / HOUR;
    const hours = Array.from({ length: 24 }, (_, hour) => start + hour);
    const meter = series(
      "meter",
      hours,
      hours.map(() => 1),
    );
    expect(await run(engine, exampleWith("tapply"), { variables: [meter] })).toMatchObject({
      atMs: Float64Array.of(Date.parse("2026-03-28T23:00:00Z"), Date.parse("2026-03-29T22:00:00Z")),
      values: Float64Array.of(23, 1),
    });
  });
});
