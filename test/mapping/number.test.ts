import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { NumberOptions } from "#mapping/mapper.ts";
import { readNumber } from "#mapping/number.ts";
import { RowError } from "#mapping/readers/row-error.ts";

describe("number", () => {
  it("returns every finite number from its text, in any declared marks", () => {
    const marks = fc.constantFrom<NumberOptions>(
      {},
      { decimal: "," },
      { decimal: ",", group: "." },
      { group: "," },
      { group: " " },
      { group: "'" },
    );
    fc.assert(
      fc.property(
        fc.double({ noNaN: true, noDefaultInfinity: true }),
        fc.integer(),
        marks,
        (double, integer, options) => {
          const written = String(double).replace(".", options.decimal ?? ".");
          expect(readNumber(written, options)).toBe(double === 0 ? 0 : double);
          const grouped = String(integer).replace(/\B(?=(\d{3})+$)/g, options.group ?? "");
          expect(readNumber(grouped, options)).toBe(integer);
        },
      ),
    );
  });

  it.each<[string, NumberOptions]>([
    ["", {}],
    [" ", {}],
    ["n/a", {}],
    ["1,5", {}],
    ["1.5", { decimal: "," }],
    ["1,234.5", {}],
    ["12.34", { decimal: ",", group: "." }],
    ["0.250", { decimal: ",", group: "." }],
    ["1.2345,6", { decimal: ",", group: "." }],
    ["1e999", {}],
    ["0x10", {}],
    ["Infinity", {}],
    ["NaN", {}],
    ["1 2", {}],
    ["--1", {}],
    ["5 kWh", {}],
    ["12 %", {}],
    ["12-", {}],
    ["1e", {}],
    ["1,23,456", { group: "," }],
  ])("refuses %j with the marks %j", (text, options) => {
    expect(() => readNumber(text, options)).toThrow(RowError);
  });

  it.each<[string, NumberOptions, string]>([
    ["1 234.5", {}, "look grouped"],
    ["1\u202f234,5", { decimal: "," }, "look grouped"],
    ["1'234", {}, "look grouped"],
    ["1,234.5", {}, "look grouped"],
    ["1.234,5", {}, 'is the decimal mark ","?'],
    ["1,5", {}, 'is the decimal mark ","?'],
    ["1.5", { decimal: "," }, 'is the decimal mark "."?'],
    ["5 kWh", {}, "Expected digits"],
    ["12,5 %", { decimal: "," }, "percent sign"],
  ])("explains what is wrong with the marks of %j", (text, options, hint) => {
    expect(() => readNumber(text, options)).toThrow(expect.objectContaining({ hint: expect.stringContaining(hint) }));
  });

  it("treats a missing cell as a fault of the row", () => {
    const row: Record<string, string> = {};
    expect(() => readNumber(row["value"] as string)).toThrow("the number is missing");
  });

  it("accepts signs, exponents and blanks around", () => {
    expect([" +1.5e3 ", "-.5", "\u22127", "5."].map((text) => readNumber(text))).toEqual([1500, -0.5, -7, 5]);
  });

  it("reads a text in other marks as the same number or refuses it", () => {
    const number = fc.double({ noNaN: true, noDefaultInfinity: true, min: -1e15, max: 1e15 });
    const read = fc.constantFrom<NumberOptions>({}, { decimal: "," }, { group: "," }, { decimal: ",", group: "." });
    fc.assert(
      fc.property(number, fc.constantFrom("en", "de", "fr", "de-CH"), read, (value, locale, options) => {
        const rounded = Number(value.toFixed(4));
        // Four decimals: were there three, a decimal could look like a group.
        const text = value.toLocaleString(locale, { minimumFractionDigits: 4, maximumFractionDigits: 4 });
        const got = numberOr(() => readNumber(text, options));
        if (got !== undefined) expect(got).toBeCloseTo(rounded, 3);
      }),
    );
  });

  it("refuses the file, not the row, when the marks themselves are invalid", () => {
    const same = { decimal: ",", group: "," } as const;
    expect(() => readNumber("1", same)).toThrow(expect.objectContaining({ name: "FileError" }));
    expect(() => readNumber("1", { decimal: ";" } as unknown as NumberOptions)).toThrow("is none");
  });

  it("accepts typographic blanks as the blank that groups digits", () => {
    expect(readNumber("1\u202f234\u00a0567,5", { decimal: ",", group: " " })).toBe(1234567.5);
  });
});

function numberOr(read: () => number): number | undefined {
  try {
    return read();
  } catch (thrown) {
    if (thrown instanceof RowError) return undefined;
    throw thrown;
  }
}
