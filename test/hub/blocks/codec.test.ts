/** What was packed comes back bit by bit. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { type Columns, packed, sumsIn, unpacked } from "#hub/store/blocks/codec.ts";

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

const COUNT = 200;

function columnsOf(valueAt: (index: number) => number): Columns {
  return {
    atMs: Float64Array.from({ length: COUNT }, (_, index) => index),
    values: Float64Array.from({ length: COUNT }, (_, index) => valueAt(index)),
    origins: new Float64Array(COUNT),
  };
}

test.each([
  ["noise", Math.sin],
  ["values that compress well", (index: number) => index % 3],
])("a block of %s that is damaged anywhere is refused", (_, valueAt) => {
  const whole = packed(columnsOf(valueAt));
  for (let at = 0; at < whole.length; at += 1) {
    const bytes = Uint8Array.from(whole);
    bytes[at] = (bytes[at] ?? 0) ^ 1;
    expect(() => unpacked(bytes), `byte ${at}`).toThrow();
  }
});

test("values that compress badly are kept as they are", () => {
  const given = columnsOf(Math.sin);
  const data = packed(given);
  expect(data[0]).toBe(1);
  expect(bitsOf(unpacked(data))).toEqual(bitsOf(given));
});

test("the sums of a block are those of its values, unless one is too large", () => {
  expect(sumsIn(packed(columnsOf((index) => index - 50)))).toEqual({ sum: 9_900, error: 0, min: -50, max: 149 });
  const rounded = sumsIn(packed(columnsOf((index) => (index === 0 ? 1e16 : 1))));
  expect((rounded?.sum ?? 0) + (rounded?.error ?? 0)).toBe(1e16 + 200);
  expect(sumsIn(packed(columnsOf((index) => (index === 7 ? -2e150 : 1))))).toBeNull();
});
