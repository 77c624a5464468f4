/** LIKE of texts: as the databases have it, in one pass over the text. */
import { DatabaseSync } from "node:sqlite";
import fc from "fast-check";
import { expect, test } from "vitest";
import { likePattern } from "#hub/store/sqlite/dialect.ts";

const database = new DatabaseSync(":memory:");
const like = database.prepare("SELECT CAST(? AS TEXT) LIKE CAST(? AS TEXT) ESCAPE '\\' AS holds");

const text = fc.string({ unit: fc.constantFrom("a", "b", "%", "_", "é", "🌞") });
const pattern = fc
  .array(fc.constantFrom("a", "b", "aab", "abababababababababababababababababab", "%", "_", "\\%", "\\_", "\\\\", "🌞"))
  .map((parts) => parts.join(""));

test("finds what LIKE of SQLite finds", () => {
  fc.assert(
    fc.property(text, pattern, (one, by) => {
      expect(likePattern(by)(one)).toBe(like.get(one, by)?.["holds"] === 1);
    }),
    { numRuns: 3_000 },
  );
});

test.each([31, 32, 33, 64, 65, 500])("finds a part of %i characters at any place", (length) => {
  const part = `${"ab".repeat(length).slice(0, length - 1)}c`;
  expect(likePattern(`%${part}%`)(`${"ab".repeat(700)}${part}d`)).toBe(true);
  expect(likePattern(`%${part.replace("a", "_")}`)(`x${"ab".repeat(700)}${part}`)).toBe(true);
  expect(likePattern(`%${part}%`)("ab".repeat(700))).toBe(false);
});
