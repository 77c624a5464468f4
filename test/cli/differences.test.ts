import { describe, expect, it } from "vitest";
import { differences } from "#app/cli/mapper/mapper.ts";

describe("a difference between an expected and a found value", () => {
  it("is reported by path, with both values", () => {
    const expected = { readings: [{ value: 1 }, { value: 2, unit: "kWh" }], rejected: [] };
    const found = { readings: [{ value: 1 }, { value: 3 }], rejected: [], period: null };
    expect(differences(expected, found).toSorted()).toEqual([
      "/period: expected nothing, found null",
      '/readings/1/unit: expected "kWh", found nothing',
      "/readings/1/value: expected 2, found 3",
    ]);
  });

  it("is reported as a whole where one is not an object, and shortened when it is long", () => {
    expect(differences(null, { a: 1 })).toEqual(["expected null", 'found    {"a":1}']);
    const many = Array.from({ length: 100 }, (_, value) => value);
    const lines = differences(
      many,
      many.map((value) => value + 1_000),
    );
    expect(lines).toHaveLength(21);
    expect(lines.at(-1)).toBe("… and 80 more");
  });
});
