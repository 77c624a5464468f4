import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createUnitTool } from "#mapping/context.ts";
import { RowError } from "#mapping/readers/row-error.ts";
import { findUnit, UNIT_FAMILIES, UNITS } from "#wire/index.ts";

const unit = createUnitTool();

describe("the list of units", () => {
  it("has the anchors of the specification", () => {
    const anchors = { 1: "Watt", 4: "Kilowatt", 7: "Watt-hour", 8: "Kilowatt-hour", 9: "Megawatt-hour" };
    for (const [id, name] of Object.entries({ ...anchors, 18: "Litre", 19: "Cubic meter" }))
      expect(UNITS.find((one) => one.id === Number(id))?.name).toBe(name);
  });

  it("names each unit once, in a family whose reference points at itself and changes nothing", () => {
    for (const key of ["id", "name", "symbol"] as const)
      expect(new Set(UNITS.map((one) => one[key])).size, key).toBe(UNITS.length);
    for (const one of UNITS) {
      const reference = UNITS.find(({ id }) => id === one.parentId);
      expect(reference, one.name).toMatchObject({
        parentId: one.parentId,
        unitFamilyId: one.unitFamilyId,
        divisor: 1,
        offset: 0,
      });
      expect(UNIT_FAMILIES.map(({ id }) => id)).toContain(one.unitFamilyId);
    }
  });

  it("knows other spellings, but never another prefix", () => {
    expect(["kWh", "KWH", "m3", "M3", "l", "℃", "degC", "kilowatt-hour"].map((text) => findUnit(text)?.symbol)).toEqual(
      ["kWh", "kWh", "m³", "m³", "L", "°C", "°C", "kWh"],
    );
    expect(findUnit("mW")?.name).toBe("Milliwatt");
    expect(findUnit("MW")?.name).toBe("Megawatt");
    expect(findUnit("mwh")).toBeUndefined();
  });
});

describe("unit", () => {
  // Exact values of the SI brochure, of NIST SP 811 (appendix B.8), and of definitions by law.
  it.each([
    [1, "MWh", "kWh", 1000],
    [0.7, "kWh", "MWh", 0.0007],
    [3.6, "MJ", "kWh", 1],
    [1, "GJ", "kWh", 277.777777777778],
    [1, "thm", "kWh", 29.3071070172222],
    [1, "toe", "MWh", 11.63],
    [1, "Gcal", "MWh", 1.163],
    [1, "hp", "W", 745.69987158227],
    [100, "°C", "°F", 212],
    [-40, "°F", "°C", -40],
    [0, "K", "°C", -273.15],
    [451, "degF", "K", 505.927777777778],
    [1, "CCF", "m³", 2.8316846592],
    [1000, "L", "m3", 1],
    [1, "gal", "L", 3.785411784],
    [1, "bbl", "gal", 42],
    [60, "L/min", "m³/h", 3.6],
    [1, "m³/s", "L/h", 3_600_000],
    [1, "bar", "psi", 14.5037737730209],
    [760, "mmHg", "kPa", 101.3250144354],
    [36, "km/h", "m/s", 10],
    [50, "Hz", "rpm", 3000],
  ])("converts %d %s to %s", (value, from, to, expected) => {
    expect(unit(value, from, to)).toBeCloseTo(expected, 12 - Math.ceil(Math.log10(Math.abs(expected) + 1)));
  });

  it("returns factors of ten and the like without noise", () => {
    expect([unit(0.1, "kWh", "Wh"), unit(1.1, "MWh", "kWh"), unit(0.3, "kW", "MW"), unit(212, "°F", "°C")]).toEqual([
      100, 1100, 0.0003, 100,
    ]);
  });

  const pair = fc
    .constantFrom(...UNITS)
    .chain((from) =>
      fc.tuple(fc.constant(from), fc.constantFrom(...UNITS.filter((to) => to.unitFamilyId === from.unitFamilyId))),
    );
  const value = fc.double({ min: -1e9, max: 1e9, noNaN: true });

  it("returns the value after a conversion there and back, to fourteen digits", () => {
    fc.assert(
      fc.property(pair, value, ([from, to], given) => {
        const back = unit(unit(given, from.symbol, to.name), to.symbol, from.name);
        // An offset such as that of kelvin takes its own size of digits away.
        expect(Math.abs(back - given)).toBeLessThanOrEqual(1e-13 * (Math.abs(given) + 1000));
      }),
    );
  });

  it("follows the rule of the specification, through the reference unit", () => {
    fc.assert(
      fc.property(pair, value, ([from, to], given) => {
        const reference = (given - from.offset) * from.divisor;
        const expected = reference / to.divisor + to.offset;
        expect(Math.abs(unit(given, from.symbol, to.symbol) - expected)).toBeLessThanOrEqual(
          1e-13 * (Math.abs(expected) + 1000),
        );
      }),
    );
  });

  it("keeps a value unchanged in its own unit", () => {
    fc.assert(
      fc.property(value, (given) => {
        expect(unit(given, "degF", "°F")).toBe(given);
      }),
    );
  });

  it("refuses every pair of different families", () => {
    const two = fc.tuple(fc.constantFrom(...UNITS), fc.constantFrom(...UNITS));
    fc.assert(
      fc.property(two, ([from, to]) => {
        fc.pre(from.unitFamilyId !== to.unitFamilyId);
        expect(() => unit(1, from.symbol, to.symbol)).toThrow(RowError);
      }),
    );
    expect(() => unit(1, "kWh", "m3")).toThrow(
      "kWh cannot be converted to m³: one is a unit of energy, the other of volume",
    );
  });

  it.each([
    ["kWhh", "Is kWh (Kilowatt-hour) meant?"],
    ["Kelvyn", "Is K (Kelvin) meant?"],
    ["mwh", "Is MWh (Megawatt-hour) meant?"],
    ["quux", undefined],
    // One letter of a symbol makes another unit: cubic metres written in German are no kilometres.
    ["qm/h", undefined],
    ["kWg", undefined],
    ["m 3", "Is m³ (Cubic meter) meant?"],
  ])("refuses the unknown unit %s with the nearest known", (text, hint) => {
    expect(refusalOf(() => unit(1, text, "kWh"))).toMatchObject({ text, hint });
  });

  it("refuses a missing unit and a value that is not a number", () => {
    expect(() => unit(1, " ", "kWh")).toThrow("the unit is missing");
    expect(() => unit(Number.NaN, "Wh", "kWh")).toThrow("not a finite number");
  });
});

function refusalOf(act: () => unknown): unknown {
  try {
    act();
  } catch (thrown) {
    if (thrown instanceof RowError) return thrown;
    throw thrown;
  }
  throw new Error("it was not refused");
}
