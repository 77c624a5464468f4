/** The tables of docs/expressions.md: each example has the result that stands beside it. */
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { FUNCTION_NAMES } from "#hub/calculated/engines/expressions/check.ts";
import { computed, hourly } from "./inputs.ts";

const text = readFileSync("docs/expressions.md", "utf8");
const rows = [...text.matchAll(/^\| (`.*`) \| .* \| `(.*)` \| (.*) \|$/gm)].map(
  ([, names = "", example = "", result = ""]) => ({
    names,
    example,
    results: result.split(", ").map((one) => (one === "-" ? null : Number(one))),
  }),
);

const one = (alias: string, value: number) => hourly(alias, [value]);
const variables = [one("a", 6), one("b", 4), one("x", -2.5), hourly("none", [])];
const points = hourly("c", [90, 95, 3, 8, 20], { stepMs: 6 * 3_600_000, unit: "Wh" });
const forms = [{ alias: "tariff", timeSliced: false, fromMs: [], untilMs: [], values: ["peak"] }];

test.each(rows)("$example", async ({ example, results }) => {
  const isOfPoints = /\bc\b/.test(example);
  // Not every example has dates of its own.
  const formula = isOfPoints ? example : `(${example}) + 0 * a`;
  const { at, values } = await computed(formula, { variables: [...variables, points], forms });
  if (!isOfPoints) expect(values).toEqual(results.map((value) => expect.closeTo(value ?? Number.NaN, 12)));
  else if (example.startsWith("aggregate")) {
    expect([at, values]).toEqual([[-12, 12], results]);
  } else
    expect(at.map((hour) => [hour / 6, values[at.indexOf(hour)]])).toEqual(
      results.flatMap((value, index) => (value === null ? [] : [[index, expect.closeTo(value, 12)]])),
    );
});

test("every function has its row", () => {
  const named = new Set(rows.flatMap(({ names }) => [...names.matchAll(/`(\w+)\(/g)].map(([, name]) => name)));
  expect([...named].sort()).toEqual(FUNCTION_NAMES.toSorted());
});
