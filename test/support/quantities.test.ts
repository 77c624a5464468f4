import { expect, test } from "vitest";
import { durationText, parseDuration, parseSize, quantityText, sizeText } from "#core/quantities.ts";

test.each([
  [0, "0ms"],
  [1_500, "1500ms"],
  [2_000, "2s"],
  [600_000, "10m"],
  [94_694_400_000, "1096d"],
])("%i ms are written as %s, and read as the same", (ms, text) => {
  expect(durationText(ms)).toBe(text);
  expect(parseDuration(text)).toBe(ms);
});

test.each([
  [0, "0B"],
  [1_048_576, "1MiB"],
  [4_000_000, "4MB"],
  [1_025, "1025B"],
])("%i bytes are written as %s, and read as the same", (bytes, text) => {
  expect(sizeText(bytes)).toBe(text);
  expect(parseSize(text)).toBe(bytes);
});

test("a number with another pattern is no quantity", () => {
  expect(quantityText(5_000, "^[a-z]+$")).toBeNull();
});
