/** Every row of the table in `docs/silent-failures.md` names a test that exists. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";

const ROOT = join(import.meta.dirname, "..");
const text = readFileSync(join(ROOT, "docs/silent-failures.md"), "utf8");

/** Rows of the tables whose last column is named `test`. */
function rowsOf(page: string): readonly { readonly what: string; readonly tests: string }[] {
  const rows: { what: string; tests: string }[] = [];
  let inTable = false;
  for (const line of page.split("\n")) {
    const cells = line.split("|").map((cell) => cell.trim());
    if (!line.startsWith("|")) inTable = false;
    else if (cells.at(-2) === "test") inTable = true;
    else if (inTable && !/^\|(-+\|)+$/.test(line)) rows.push({ what: cells[1] ?? "", tests: cells.at(-2) ?? "" });
  }
  return rows;
}

/** The six that the specification lists by number (*Errors*, silent failures), in words that their rows hold. */
const LISTED = [
  /token is for another account/,
  /without Api-Version/,
  /CustomFilter that matches nothing/,
  /conversion between units of different families/,
  /whose name no trigger matches/,
  /another unit than the variable's/,
];

describe("the table of silent failures", () => {
  const rows = rowsOf(text);

  it("names every case of the specification", () => {
    for (const words of LISTED)
      expect(
        rows.filter(({ what }) => words.test(what)),
        String(words),
      ).toHaveLength(1);
  });

  it.each(rows)("has a test that exists: $what", ({ tests }) => {
    const named = [...tests.matchAll(/`(test\/[^`]+)` "([^"]+)"/g)];
    expect(named.length).toBeGreaterThan(0);
    for (const [, file = "", title = ""] of named) {
      expect(existsSync(join(ROOT, file)), file).toBe(true);
      expect(readFileSync(join(ROOT, file), "utf8"), `${file}: ${title}`).toContain(`"${title}"`);
    }
  });
});
