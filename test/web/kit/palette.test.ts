import { describe, expect, test } from "vitest";
import { contrastOf, DARK, LIGHT, OUTLINE_PAIRS, TEXT_PAIRS } from "#pages/kit/stylesheet.ts";

describe.each([
  ["light", LIGHT],
  ["dark", DARK],
])("the %s colours", (_, palette) => {
  test.each(TEXT_PAIRS)("%s on %s can be read", (text, ground) => {
    expect(contrastOf(palette[text], palette[ground])).toBeGreaterThanOrEqual(4.5);
  });
  test.each(OUTLINE_PAIRS)("%s on %s can be seen", (line, ground) => {
    expect(contrastOf(palette[line], palette[ground])).toBeGreaterThanOrEqual(3);
  });
});

test("contrast is that of WCAG", () => {
  expect(contrastOf("#000000", "#ffffff")).toBeCloseTo(21, 5);
  expect(contrastOf("#777777", "#ffffff")).toBeCloseTo(4.48, 2);
});
