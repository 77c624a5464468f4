/** What was packed comes back bit by bit. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { type Columns, packed, unpacked } from "../../../src/hub/store/blocks/codec.ts";

const finite = fc.double({ noNaN: true, noDefaultInfinity: true });
const decimal = fc
  .tuple(fc.integer({ min: -2_000_000, max: 2_000_000 }), fc.nat(7))
  .map(([whole, scale]) => whole / 10 ** scale);
const values = fc.oneof(
  fc.array(decimal, { minLength: 1, maxLength: 300 }),
  fc.array(finite, { minLength: 1, maxLength: 300 }),
  fc.array(fc.oneof(decimal, finite, fc.constantFrom(0, -0, 5e-324, Number.MAX_VALUE)), {
    minLength: 1,
    maxLength: 300,
  }),
  // A counter that only grows.
  fc.array(fc.nat(50), { minLength: 1, maxLength: 300 }).map((steps) => {
    let sum = 1_000_000_000;
    return steps.map((step) => {
      sum += step / 10;
      return sum;
    });
  }),
);
const begin = fc.oneof(fc.integer({ min: -8_640_000_000_000_000, max: 0 }), fc.constant(Date.UTC(2026, 2, 29)));
const gap = fc.oneof(fc.constant(900_000), fc.integer({ min: 1, max: 10_000 }), fc.integer({ min: 1, max: 2 ** 40 }));

const columns: fc.Arbitrary<Columns> = fc
  .tuple(values, begin, fc.boolean(), fc.array(gap, { minLength: 300, maxLength: 300 }), fc.array(fc.nat(5)))
  .map(([numbers, first, isRegular, gaps, origins]) => {
    let ms = first;
    const atMs = numbers.map((_, index) => {
      if (index > 0) ms += isRegular ? 900_000 : (gaps[index] ?? 1);
      return ms;
    });
    return {
      atMs: Float64Array.from(atMs),
      values: Float64Array.from(numbers),
      origins: Float64Array.from(numbers, (_, index) => (origins[index] ?? 7) * 1e9),
    };
  });

function bitsOf({ atMs, values: doubles, origins }: Columns): readonly string[] {
  return [atMs, doubles, origins].map((one) => Buffer.from(one.buffer, one.byteOffset, one.byteLength).toString("hex"));
}

test("any columns come back bit by bit", () => {
  fc.assert(
    fc.property(columns, (given) => {
      expect(bitsOf(unpacked(packed(given)))).toEqual(bitsOf(given));
    }),
    { numRuns: 400 },
  );
});

test("regular readings with three decimals take less than four bytes a point", () => {
  const count = 1_000;
  const given = {
    atMs: Float64Array.from({ length: count }, (_, index) => index * 900_000),
    values: Float64Array.from({ length: count }, (_, index) => (Math.imul(index, 2_654_435_761) >>> 12) / 1_000),
    origins: new Float64Array(count).fill(12),
  };
  expect(packed(given).length).toBeLessThan(4 * count);
});

test("a damaged block is refused", () => {
  const count = 200;
  const given = {
    atMs: Float64Array.from({ length: count }, (_, index) => index),
    values: Float64Array.from({ length: count }, (_, index) => Math.sin(index)),
    origins: new Float64Array(count),
  };
  const bytes = Uint8Array.from(packed(given));
  const middle = bytes.length >>> 1;
  bytes[middle] = (bytes[middle] ?? 0) ^ 1;
  expect(() => unpacked(bytes)).toThrow();
});
