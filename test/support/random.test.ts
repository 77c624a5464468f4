import { expect, it } from "vitest";
import { randomDigits, randomHex } from "#core/random.ts";

/** More than are asked of the system at a time. */
const MANY = 2_000;

it("returns bytes that were not returned before", () => {
  const ids = Array.from({ length: MANY }, () => randomHex(8));
  expect(new Set(ids).size).toBe(MANY);
  for (const id of ids) expect(id).toMatch(/^[0-9a-f]{16}$/);
});

it("draws every digit at every place about as often as the others", () => {
  const digits = "0123456789abcdefghjkmnpqrstvwxyz";
  const texts = Array.from({ length: MANY }, () => randomDigits(16, digits));
  expect(new Set(texts).size).toBe(MANY);
  for (let at = 0; at < 16; at += 1) {
    const counts = new Map([...digits].map((digit) => [digit, 0]));
    for (const text of texts) counts.set(text[at] ?? "", (counts.get(text[at] ?? "") ?? 0) + 1);
    // 62.5 are expected of each; that one of the 512 lies outside by chance is less likely than one in a million.
    for (const count of counts.values()) {
      expect(count).toBeGreaterThan(15);
      expect(count).toBeLessThan(130);
    }
  }
});
