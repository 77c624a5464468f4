import fc from "fast-check";
import { expect, it } from "vitest";
import { isoInstant } from "#core/clock.ts";

it("writes an instant with milliseconds, whatever was written before it", () => {
  const instant = fc
    .bigInt({ min: -(10n ** 20n), max: 10n ** 21n })
    .map((ns) => Temporal.Instant.fromEpochNanoseconds(ns));
  fc.assert(
    fc.property(fc.array(fc.oneof(instant, fc.constant(Temporal.Instant.fromEpochMilliseconds(0)))), (all) => {
      for (const one of all) {
        expect(isoInstant(one)).toBe(one.toString({ fractionalSecondDigits: 3 }));
        expect(isoInstant(one.round("second"))).toBe(one.round("second").toString({ fractionalSecondDigits: 3 }));
      }
    }),
  );
});
