import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { placeOf } from "#mapping/readers/row-place.ts";
import { collect, openFile } from "../mapping/kit.ts";

async function items(content: string, path: string | readonly string[] = "$", limits = {}) {
  const { file } = await openFile(content, "input.json");
  return await collect(file.json({ path, ...limits }));
}

describe("the JSON reader", () => {
  it("returns the items at a path, with the path and the line of each", async () => {
    const content = '{\n "unit": "kWh",\n "data": [\n  {"t": "a\\nb", "v": 1.5},\n\n  {"t": "c", "v": null}]\n}\n';
    expect(await items(content, "$.data.*")).toEqual([
      { path: "$.data[0]", row: 4, value: { t: "a\nb", v: 1.5 } },
      { path: "$.data[1]", row: 6, value: { t: "c", v: null } },
    ]);
    const [, second] = await items(content, "$.data[*]");
    expect(placeOf(second ?? {})).toMatchObject({ row: 6 });
  });

  it.each([
    ["$", '[1, "x", true, null]', [["$", [1, "x", true, null]]]],
    ["$", " 12", [["$", 12]]],
    [
      "$.*",
      '{"a": 1, "b.c": [2]}',
      [
        ["$.a", 1],
        ['$["b.c"]', [2]],
      ],
    ],
    ['$["b.c"][0]', '{"a": 1, "b.c": [2, 3]}', [['$["b.c"][0]', 2]]],
    [
      "$.meters[*].readings.*",
      '{"meters": [{"readings": [1]}, {"id": 7}, {"readings": [2, 3]}]}',
      [
        ["$.meters[0].readings[0]", 1],
        ["$.meters[2].readings[0]", 2],
        ["$.meters[2].readings[1]", 3],
      ],
    ],
    ["$.data.*", '{"data": []}', []],
    ["$.data.*", '{"data": {}}', []],
  ])("follows the path %s in %s", async (path, content, expected) => {
    expect((await items(content, path)).map((item) => [item.path, item.value])).toEqual(expected);
  });

  it("follows several paths in the order of the file, and searches nothing within an item", async () => {
    const content = '{"from": "x", "data": [{"data": [1]}], "to": "y"}';
    const found = await items(content, ["$.to", "$.data.*", "$.data[*].data.*", "$.from"]);
    expect(found.map(({ path }) => path)).toEqual(["$.from", "$.data[0]", "$.to"]);
  });

  it("reports when the document has nothing at the paths", async () => {
    await expect(items('{"dat": []}', "$.data.*")).rejects.toMatchObject({
      unreadable: true,
      message: "the document has nothing at $.data.*",
    });
    await expect(items('{"data": 5}', "$.data.*")).rejects.toMatchObject({ unreadable: true });
  });

  it("keeps the digits of whole numbers, and reads others as the nearest double", async () => {
    const [item] = await items(
      "[541448820000000017, 9007199254740993, -9007199254740993, 9007199254740991, 0.1, 1e3, 123456.78901234567890]",
    );
    expect(item?.value).toEqual([
      541448820000000017n,
      9007199254740993n,
      -9007199254740993n,
      9007199254740991,
      0.1,
      1000,
      123456.78901234567,
    ]);
  });

  it.each([
    ["a number beyond doubles", "[1,\n1e999]", 2, "beyond"],
    ["a repeated key", '{"a": 1,\n"a": 2}', 2, 'the key "a" occurs twice'],
    ["a repeated key outside of the items", '{"x": {"a": 1,\n"a": 2}, "data": [1]}', 2, "occurs twice"],
    ["more after the end", '{"a": 1}\n{"a": 2}', 2, "the document is complete"],
    ["a document that is cut off", '{"a": [1,\n2', 2, "ends within $.a[1]"],
    ["a text that is cut off", '{"a": "b', 1, "ends within $.a"],
    ["an empty file", "", 1, "the file is empty"],
    ["a comma too many", "[1,\n]", 2, "a value is due"],
    ["a key without quotes", "{a: 1}", 1, '"a" is not expected'],
    ["NaN", "[NaN]", 1, '"N" is not expected'],
    ["a colon in an array", "[1: 2]", 1, "a comma or the end"],
    ["a wrong bracket", '{"a": 1]', 1, "a comma or the end"],
    ["a line end in a text", '["a\nb"]', 1, "is not expected"],
    ["half of a surrogate pair", '["\\ud800"]', 1, "surrogate"],
  ])("refuses %s, with its line", async (_, content, row, message) => {
    const path = content.includes('"data"') ? "$.data.*" : "$";
    await expect(items(content, path)).rejects.toMatchObject({
      unreadable: true,
      row,
      message: expect.stringContaining(message),
    });
  });

  it("limits the depth and the size of an item", async () => {
    await expect(items("[".repeat(200), "$.*")).rejects.toThrow("deeper than 100 levels");
    expect(await items("[".repeat(200) + "]".repeat(200), "$.*", { depthMax: 200 })).toHaveLength(1);
    await expect(items(`[[${"1,".repeat(100)}1]]`, "$.*", { itemBytesMax: 100 })).rejects.toThrow(
      "$[0] is larger than 100 bytes",
    );
    await expect(items(`["${"x".repeat(300_000)}"]`, "$", { itemBytesMax: 100 })).rejects.toThrow(
      "longer than 100 bytes",
    );
  });

  it("reads long texts of every kind of character, wherever chunks end", async () => {
    const text = 'é"\n😀漢\\\u0001x'.repeat(60_000);
    const content = JSON.stringify([text, text, 12.5]).replaceAll("😀", "\\ud83d\\ude00");
    expect((await items(content, "$.*")).map(({ value }) => value)).toEqual([text, text, 12.5]);
  });

  it("accepts any key as data", async () => {
    const [item] = await items('{"__proto__": {"a": 1}, "constructor": 2}');
    expect(Object.entries(item?.value ?? {})).toEqual([
      ["__proto__", { a: 1 }],
      ["constructor", 2],
    ]);
  });

  it("refuses an invalid path", async () => {
    await expect(items("[]", "data.*")).rejects.toThrow('"data.*" is no path of items');
    await expect(items("[]", "$..a")).rejects.toThrow("is no path of items");
  });

  it("restores any array of written values, each with its line", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.jsonValue({ noUnicodeString: false }), { minLength: 1, maxLength: 20 }),
        fc.integer({ min: 0, max: 2 }),
        async (values, space) => {
          const content = JSON.stringify(values, null, space);
          const found = await items(content, "$.*");
          expect(JSON.stringify(found.map(({ value }) => value))).toEqual(JSON.stringify(JSON.parse(content)));
          if (space > 0) {
            let row = 2;
            for (const [at, value] of values.entries()) {
              expect(found[at]?.row).toBe(row);
              row += JSON.stringify(value, null, space).split("\n").length;
            }
          }
        },
      ),
      { numRuns: 30 },
    );
  });
});

describe("the NDJSON reader", () => {
  it("returns one value per line, and refuses invalid lines", async () => {
    const { file, refused } = await openFile('\ufeff{"a": 1}\r\n\n{"a": \n2\n{"a": 1, "a": 2}\n[1] [2]\n"x"');
    const found = await collect(file.ndjson());
    expect(found.map(({ row, value }) => [row, value])).toEqual([
      [1, { a: 1 }],
      [4, 2],
      [7, "x"],
    ]);
    expect(refused.map(({ row, fault }) => [placeOf(row)?.row, fault.message, fault.text])).toEqual([
      [3, "the line is not valid JSON: it ends within $.a", '{"a": '],
      [5, 'the line is not valid JSON: the key "a" occurs twice in one object', '{"a": 1, "a": 2}'],
      [6, 'the line is not valid JSON: "[" is not expected here: the document is complete', "[1] [2]"],
    ]);
  });
});
