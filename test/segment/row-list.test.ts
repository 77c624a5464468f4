import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { rowsFrom, storedRows } from "#mapping/segment/row-list.ts";

/** Rows as files have them: parts at one distance, and single ones. */
const rows = fc
  .array(
    fc.oneof(
      fc.nat(60).map((row) => [row]),
      fc
        .tuple(fc.integer({ min: 0, max: 500 }), fc.integer({ min: 0, max: 40 }), fc.integer({ min: 1, max: 12 }))
        .map(([first, distance, count]) => Array.from({ length: count }, (_, nth) => first + nth * distance)),
    ),
    { maxLength: 12 },
  )
  .map((parts) => parts.flat());

describe("stored rows", () => {
  it("are the same rows when they are read", () => {
    fc.assert(
      fc.property(rows, fc.boolean(), (all, isBackwards) => {
        const given = isBackwards ? all.toReversed() : all;
        const stored = JSON.parse(JSON.stringify(storedRows(Uint32Array.from(given))));
        expect(rowsFrom(stored, given.length)).toEqual(given);
      }),
    );
  });

  it("take one entry for all rows at one distance", () => {
    const spread = Array.from({ length: 5000 }, (_, nth) => 2 + nth * 100);
    expect(storedRows([7, ...spread, 7])).toEqual([7, [2, 100, 5000], 7]);
    expect(storedRows([0, 0, 0, 0, 0])).toEqual([[0, 0, 5]]);
  });

  it("are no more than a batch can have", () => {
    expect(rowsFrom([5, [2, 1, 1e15], 8], 4)).toEqual([5, 2, 3, 4, 8].slice(0, 4));
  });

  it.each([undefined, null, 7, "7", [null], [[1, 2]], [1, [1, null, 3]]])("are none of the damaged list %j", (list) => {
    expect(rowsFrom(list, 100)).toEqual([]);
  });
});
