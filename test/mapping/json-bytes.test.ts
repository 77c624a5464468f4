import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { JsonBytes } from "#mapping/batches.ts";

function written(epochMs: number, value: number): string {
  const json = new JsonBytes();
  json.reading(epochMs, value);
  return json.written.toString("latin1");
}

const dates = fc.integer({ min: Date.UTC(1901, 0, 1), max: Date.UTC(2199, 11, 31) });

/** As meters write them: a few decimals. */
const decimals = fc
  .tuple(fc.integer({ min: -1_000_000_000_000, max: 1_000_000_000_000 }), fc.integer({ min: 0, max: 9 }))
  .map(([digits, places]) => Number(`${digits}e-${places}`));

describe("a reading written as bytes", () => {
  it("has its date and its number in the form of JSON.stringify, without zero milliseconds", () => {
    const values = fc.oneof(decimals, fc.double({ noNaN: true, noDefaultInfinity: true }), fc.maxSafeInteger());
    fc.assert(
      fc.property(dates, values, (epochMs, value) => {
        const date = new Date(epochMs).toISOString().replace(".000Z", "Z");
        expect(written(epochMs, value)).toBe(JSON.stringify({ date, value }).slice(0, -1));
      }),
      { numRuns: 2000 },
    );
  });

  it("has the date of each of many days, whatever came between", () => {
    const days = Array.from({ length: 5000 }, (_, at) => at * 86_400_000);
    const json = new JsonBytes();
    for (const at of [...days, ...days.reverse()]) {
      json.length = 0;
      json.reading(at, 1);
      expect(json.written.toString("latin1")).toContain(new Date(at).toISOString().slice(0, 19));
    }
  });

  it.each([
    0,
    -0,
    1,
    -1,
    0.1,
    -0.000001,
    0.000001,
    0.0000001,
    999_999_999.999999,
    1e9,
    1_000_000_000.5,
    1e21,
    5e-324,
    123.456,
    0.30000000000000004,
    1.0000005,
    2 ** 53,
  ])("writes %d as the shortest digits of its value", (value) => {
    expect(written(0, value)).toBe(`{"date":"1970-01-01T00:00:00Z","value":${JSON.stringify(value)}`);
  });
});
