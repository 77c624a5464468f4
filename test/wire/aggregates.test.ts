/** The one table of aggregates: what it says is what the hub computes. */
import { describe, expect, test } from "vitest";
import { Accumulator } from "#hub/data/buckets.ts";
import { AGGREGATE_FACTS, AGGREGATED, AGGREGATES, aggregateUnit, dataRow, isOfParts } from "#wire/index.ts";

const VALUES = [3, -1, 4, 1.5, 9, 2.6, 5];

function of(values: readonly number[]): Accumulator {
  const all = new Accumulator();
  for (const [at, value] of values.entries()) all.add(value, at);
  return all;
}

describe.each(AGGREGATED)("%s", (name) => {
  const facts = AGGREGATE_FACTS[name];

  test("has its id and its column", () => {
    expect(AGGREGATES[name]).toBe(facts.id);
    expect(Object.keys(dataRow.shape)).toContain(facts.column);
    expect(Object.keys(of(VALUES).columns([name]))).toEqual([facts.column]);
  });

  test("follows from sums of parts exactly where the table says so", () => {
    const merged = new Accumulator();
    for (const part of [VALUES.slice(0, 3), VALUES.slice(3)]) {
      const sums = of(part).sums();
      if (sums !== null) merged.merge(sums);
    }
    const [from, whole] = [merged, of(VALUES)].map((one) => one.columns([name])[facts.column]);
    expect(from === whole).toBe(isOfParts(name));
  });

  test("is left out of a period with fewer points than it needs", () => {
    for (const count of [1, 2]) {
      const row = of(VALUES.slice(0, count)).columns([name]);
      expect(facts.column in row).toBe(count >= facts.pointsMin);
    }
  });
});

test("the unit is that of the values, its square, or none", () => {
  expect(AGGREGATED.map((name) => aggregateUnit(name, "kWh"))).toEqual([
    "kWh",
    "kWh",
    "kWh",
    "kWh",
    "",
    "(kWh)²",
    "kWh",
  ]);
  expect([aggregateUnit(null, "kWh"), aggregateUnit("VAR", "")]).toEqual(["kWh", ""]);
});
