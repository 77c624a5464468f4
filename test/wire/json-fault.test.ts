/** Where a text stops being JSON: always where `JSON.parse` refuses it, too. */
import { expect, test } from "vitest";
import { jsonFault, jsonFaultWords } from "#wire/json-fault.ts";

test.each([
  ["", "line 1, column 1: it ends too early"],
  ["not json", "line 1, column 1: a value must stand there, and not not"],
  ['{"a":1,}', 'line 1, column 8: a name in double quotes ("…") must stand there, and not }'],
  ['{"a" 1}', "line 1, column 6: a colon must stand there, and not 1"],
  ['{\n  "a": 1\n  "b": 2}', 'line 3, column 3: a comma or } must stand there, and not "'],
  ["[1 2]", "line 1, column 4: a comma or ] must stand there, and not 2"],
  ["[1,]", "line 1, column 4: a value must stand there, and not ]"],
  ["[NaN]", "line 1, column 2: a value must stand there, and not NaN"],
  ["{'a':1}", 'line 1, column 2: a name in double quotes ("…") must stand there, and not \''],
  ["[] []", "line 1, column 4: nothing more must stand there, and not ["],
  ['["a', "line 1, column 4: it ends within a text: the closing quote is missing"],
  ['["a\nb"]', "line 1, column 4: a control character, such as a line break, must be escaped"],
  ['["\\x"]', "line 1, column 3: a backslash must begin an escape, such as \\n or \\\\"],
  ["[{]", 'line 1, column 3: a name in double quotes ("…") must stand there, and not ]'],
  ["[01]", "line 1, column 3: a comma or ] must stand there, and not 1"],
])("%j: %s", (text, words) => {
  expect(() => JSON.parse(text)).toThrow(SyntaxError);
  expect(jsonFaultWords(text)).toBe(words);
});

test("no text that is JSON has a fault, and every beginning of one has", () => {
  const text = ' {"a":[1,-2.5e+3,true,false,null,[],{}],"b\\u00e9\\n":{"c":"d\\"é😀"},"":""} ';
  expect(jsonFault(text)).toBe(null);
  const wrong: string[] = [];
  for (let end = 0; end < text.length - 1; end += 1)
    if (jsonFault(text.slice(0, end)) === null) wrong.push(text.slice(0, end));
  expect(wrong).toEqual([]);
});

test("nesting of any depth is judged", () => {
  expect(jsonFault(`${"[".repeat(200_000)}${"]".repeat(200_000)}`)).toBe(null);
});
