import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { bytesOf, hasEscapes, nameOf, unusableName } from "#core/file-names.ts";

const ENCODINGS = ["utf-8", "latin-1"] as const;
const bytes = (text: string) => Buffer.from(text, "latin1");

describe("a file name", () => {
  test.for(ENCODINGS)("of any bytes is restored to these bytes, and no two become one text (%s)", (encoding) => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 1, maxLength: 40 }), (any) => {
        const name = Buffer.from(any);
        expect(Buffer.from(bytesOf(nameOf(name, encoding), encoding))).toEqual(name);
      }),
    );
    const tricky = fc.array(fc.constantFrom("\\", "x", "E", "4", "\xE4", "\xC3", "\xA4", "\n", "5", "C"), {
      minLength: 1,
      maxLength: 12,
    });
    fc.assert(
      fc.property(tricky, (parts) => {
        const name = bytes(parts.join(""));
        expect(Buffer.from(bytesOf(nameOf(name, encoding), encoding))).toEqual(name);
      }),
      { numRuns: 2_000 },
    );
  });

  test("that is text stays unchanged", () => {
    for (const name of ["a b.csv", "größe.csv", "日本.csv", "a\\b.csv", "\\xe4.csv", "\u0085.csv"]) {
      expect(nameOf(Buffer.from(name), "utf-8")).toBe(name);
      expect(hasEscapes(name)).toBe(false);
    }
    expect(nameOf(bytes("Z\xE4hler.csv"), "latin-1")).toBe("Zähler.csv");
  });

  test.for([
    ["Z\xE4hler.csv", "Z\\xE4hler.csv", /not UTF-8 \(byte E4/, /`names: latin-1`/],
    ["a\nb.csv", "a\\x0Ab.csv", /line break/, /renamed/],
    ["a\x1B[2Jb.csv", "a\\x1B[2Jb.csv", /control character/, /renamed/],
    ["a\\x41.csv", "a\\x5Cx41.csv", /reads as an escaped byte/, /renamed/],
  ] as const)("that cannot be text is written with escapes: %j", ([name, text, why, hint]) => {
    expect(nameOf(bytes(name), "utf-8")).toBe(text);
    expect(hasEscapes(text)).toBe(true);
    expect(unusableName(text)).toMatchObject({
      message: expect.stringMatching(why),
      hint: expect.stringMatching(hint),
    });
  });
});
