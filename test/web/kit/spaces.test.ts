/** The template tag drops a break of lines beside a tag or a value, and with it the space that a reader expects. */
import { globSync, readFileSync } from "node:fs";
import { resolve } from "node:path";
import { expect, test } from "vitest";

const root = resolve(import.meta.dirname, "../../..");
const INLINE = "(?:a|strong|code|em|span|time)\\b";
const LOST = [
  // Words, the end of the line, then a value or a tag within the sentence.
  new RegExp(`[\\w,.;:)”]\\n\\s*(?:\\$\\{|<${INLINE}[^>]*>(?! ))`, "g"),
  // Such a tag, the end of the line, then words.
  new RegExp(`</${INLINE}>\\n\\s*[\\w“(]`, "g"),
];

function lostSpaces(text: string): readonly string[] {
  return LOST.flatMap((pattern) => [...text.matchAll(pattern)].map(({ index }) => text.slice(index - 30, index + 40)));
}

test.each(globSync(["src/pages/**/*.ts", "src/hub/pages/*.ts"], { cwd: root }).sort())("%s loses no space", (file) => {
  expect(lostSpaces(readFileSync(resolve(root, file), "utf8"))).toEqual([]);
});

test("a lost space is found", () => {
  const start = "x".repeat(30);
  expect(lostSpaces(`${start}html\`<p>in the account\n  \${name}</p>\``)).toHaveLength(1);
  expect(lostSpaces(`${start}html\`<p>a <strong>b</strong>\n  c</p>\``)).toHaveLength(1);
  expect(lostSpaces(`${start}html\`<p>in the\n  account \${name}</p>\``)).toHaveLength(0);
});
