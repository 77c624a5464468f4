import fc from "fast-check";
import { expect, it } from "vitest";
import { halve } from "#gateway/delivery/children.ts";
import type { PushElement } from "#gateway/model.ts";
import { countReadings } from "#wire/index.ts";

const reading = fc.record({ date: fc.constant("2026-01-01T00:00:00Z"), value: fc.double({ noNaN: true }) });
const elements = fc.array(
  fc.record({ variableId: fc.integer(), version: fc.string(), data: fc.array(reading, { maxLength: 12 }) }),
  { minLength: 1, maxLength: 12 },
);

const flat = (some: readonly PushElement[]) =>
  some.flatMap(({ data, ...target }) => data.map((one) => ({ ...target, ...one })));

it("halving keeps every reading with its target, in order, and neither half is empty", () => {
  fc.assert(
    fc.property(elements, (whole) => {
      const halves = halve(whole);
      if (halves === null) {
        expect(whole).toHaveLength(1);
        expect(countReadings(whole)).toBeLessThanOrEqual(1);
        return;
      }
      expect(flat([...halves[0], ...halves[1]])).toEqual(flat(whole));
      expect(Math.min(halves[0].length, halves[1].length)).toBeGreaterThan(0);
    }),
  );
});

it("repeated halving ends at single readings", () => {
  fc.assert(
    fc.property(elements, (whole) => {
      const waiting: (readonly PushElement[])[] = [whole];
      let leaves = 0;
      for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
        const halves = halve(next);
        if (halves !== null) waiting.push(...halves);
        else leaves += countReadings(next);
      }
      expect(leaves).toBe(countReadings(whole));
    }),
  );
});
