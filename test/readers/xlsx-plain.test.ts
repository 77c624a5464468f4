/** Rows and texts that are read without the parser of XML are those that the parser gives, in everything. */
import fc from "fast-check";
import { expect, it } from "vitest";
import { SharedStrings } from "#mapping/readers/xlsx-strings.ts";
import { type Cuts, chunksOf, eachOf, readsOf, rowsOf } from "./sheet-reads.ts";

const weighted = (...all: readonly (readonly [number, fc.Arbitrary<string>])[]) =>
  fc.oneof(...all.map(([weight, arbitrary]) => ({ weight, arbitrary })));

const plainText = fc.constantFrom(
  "M-1",
  "kWh",
  "é",
  "a b",
  "",
  " ",
  "日本",
  "_x0041_",
  "'\"=>",
  "1",
  "0",
  "2.50",
  "46000.25",
);
const oddText = fc.constantFrom(
  ...["&amp;", "&#65;", "&bad;", "]]>", "]", "\u0001", "\u2028", "\u0085", "😀", "\ud83d", "\n", "\r\n", "\t"],
  ...["<![CDATA[</row>]]>", "<!-- </row> -->", "<?pi </row>?>", "<", "\ufffe", "x".repeat(3000)],
);
const text = weighted([40, plainText], [1, oddText]);
const column = fc.constantFrom("A", "B", "C", "Z", "AB");
const style = fc.constantFrom("", "", ' s="0"', ' s="1"', ' s="2"');
const type = fc.constantFrom("", "", ' t="n"', ' t="s"', ' t="str"', ' t="b"', ' t="e"', ' t="d"', ' t="inlineStr"');

/** Attributes of a cell in the forms of different programs. */
const head = fc
  .tuple(column, fc.nat({ max: 30 }), style, type, fc.boolean())
  .map(([at, row, styled, typed, isFirst]) => ` r="${at}${row}"${isFirst ? typed + styled : styled + typed}`);
/** Attributes and text; that of a shared text is its number. */
const headed = fc
  .tuple(head, text)
  .map(([attributes, value]) => [attributes, attributes.includes('"s"') ? String(value.length % 2) : value] as const);
const formula = fc.constantFrom(
  ...["<f>A1*2</f>", "<f></f>", "<f/>", '<f t="shared" si="0"/>', '<f t="shared" ref="A1:A9" ca="1" si="0">A1+1</f>'],
  ...['<f t="array" aca="1" ref="A1">SUM(A1:B1)</f>', '<f ca="1">NOW()</f>', '<f t="dataTable" ref="A1:B2" r1="C1"/>'],
);
const plainCell = fc.oneof(
  headed.map(([attributes, value]) => `<c${attributes}><v>${value}</v></c>`),
  headed.map(([attributes, value]) => `<c${attributes}><is><t>${value}</t></is></c>`),
  fc
    .tuple(head, text)
    .map(([attributes, value]) => `<c${attributes}><is><t xml:space="preserve">${value}</t></is></c>`),
  fc.tuple(headed, formula).map(([[attributes, value], one]) => `<c${attributes}>${one}<v>${value}</v></c>`),
  head.map((attributes) => `<c${attributes}/>`),
  head.map((attributes) => `<c${attributes}></c>`),
);
const oddFormula = fc.constantFrom(
  ...["<f>A1&amp;B1</f>", "<f>T[x]]></f>", '<f t="a" t="b">1</f>', "<f>1</v>", "<f>1<f/></f>", "<f >1</f>", "<fx/>"],
  ...['<f si="0" t="shared"/>', "<f>&bad;</f>", "<f><!-- </row> --></f>"],
);
const oddCell = fc.oneof(
  fc.tuple(head, oddFormula, text).map(([attributes, odd, value]) => `<c${attributes}>${odd}<v>${value}</v></c>`),
  fc.tuple(head, formula).map(([attributes, only]) => `<c${attributes}>${only}</c>`),
  fc.tuple(head, text).map(([attributes, value]) => `<c${attributes}>\n <v>${value}</v>\n</c>`),
  fc.constantFrom(
    ...["<c><v>1</v></c>", '<c r="A1" r="B1"><v>1</v></c>', '<c r="A1" s="0" s="1"><v>1</v></c>', '<c r="a1"/>'],
    ...[
      '<c r="A1" t="s"><v>99</v></c>',
      '<c r="XFE1"><v>1</v></c>',
      '<c r="A1"><f/></c>',
      '<c r="A1" t="str"><f/></c>',
    ],
    ...[
      '<c t="n" r="A1"><v>1</v></c>',
      '<c r="A0"><v>1</v></c>',
      '<c r="A"><v>1</v></c>',
      '<c r="A1"><v>1</c>',
      "<x/>",
    ],
    '<c r="B1" t="inlineStr"><is><r><t>a</t></r><r><t>b</t></r><rPh><t>c</t></rPh></is></c>',
    '<c r="A1"><v>1</v><v>2</v></c>',
    "<sheetData/>",
  ),
);
const cell = weighted([60, plainCell], [1, oddCell]);
const rowHead = fc.oneof(
  { weight: 40, arbitrary: fc.nat({ max: 40 }).map((row) => ` r="${row}"`) },
  { weight: 20, arbitrary: fc.nat({ max: 40 }).map((row) => ` r="${row}" spans="1:4" x14ac:dyDescent="0.25"`) },
  {
    weight: 1,
    arbitrary: fc.constantFrom(
      "",
      ' r="x"',
      ' r="1234567890"',
      ' r="2" r="3"',
      ' r="2" ht="1" ht="2"',
      ' r="2" ',
      " r='2'",
    ),
  },
);
const row = weighted(
  [
    60,
    fc
      .tuple(rowHead, fc.array(cell, { maxLength: 5 }))
      .map(([attributes, cells]) => `<row${attributes}>${cells.join("")}</row>`),
  ],
  [
    1,
    fc.constantFrom(
      '<row r="7"/>',
      '<row r="7"><c r="A7"><v>1</v></c></row >',
      '<row r="7"></row>\n',
      "<!-- <row> -->",
    ),
  ],
  [
    1,
    fc.constantFrom(
      '<!-- </row><row r="9"><c r="A9"><v>9</v></c></row> -->',
      "&amp;",
      "text",
      " <",
      '<row r="7">',
      "</c>",
    ),
  ],
);
const sheet = fc
  .tuple(fc.array(row, { minLength: 1, maxLength: 12, size: "max" }), fc.nat({ max: 9 }), fc.boolean())
  .map(([rows, nth, hasMore]) => {
    const more = hasMore ? '<mergeCells><row r="1"><c r="A1"><v>1</v></c></row></mergeCells>' : "";
    const end = `</sheetData>${more}${nth > 0 ? "</worksheet>" : ""}`;
    return `<?xml version="1.0"?><worksheet><cols/><sheetData>${rows.join("")}${end}`;
  });

const cuts: fc.Arbitrary<Cuts> = fc.record({
  lengths: fc.array(fc.constantFrom(1, 2, 7, 33, 50, 400, 100_000), { minLength: 1, maxLength: 3 }),
  isInTag: fc.boolean(),
});

it("rows of a sheet, with and without the parser", { timeout: 60_000 }, () => {
  let faults = 0;
  const reads = readsOf(() => {
    fc.assert(
      fc.property(sheet, cuts, (given, at) => {
        const expected = rowsOf(chunksOf(given, at), false);
        if (expected.fault !== undefined) faults += 1;
        expect(rowsOf(chunksOf(given, at), true)).toEqual(expected);
      }),
      { numRuns: 3000 },
    );
  });
  expect(reads.filter((length) => length > 0).length).toBeGreaterThan(1000);
  expect(faults).toBeGreaterThan(100);
  expect(faults).toBeLessThan(2000);
});

/** All texts, or the fault. Names with a prefix are never read directly. */
async function textsOf(given: string, at: Cuts, isDirect: boolean) {
  const xml = isDirect ? given : given.replaceAll(/<(\/?)(?=[a-z])/gi, "<$1x:");
  try {
    const found = await SharedStrings.read("strings", eachOf(chunksOf(xml, at)));
    const texts: string[] = [];
    for (let nth = 0; nth < 100; nth += 1)
      try {
        texts.push(found.at(nth).replaceAll("x:", ""));
      } catch {
        return { texts };
      }
    return { texts };
  } catch (thrown) {
    return { fault: (thrown as Error).message.replaceAll("x:", "") };
  }
}

it("shared texts, with and without the parser", { timeout: 60_000 }, async () => {
  const item = weighted(
    [40, text.map((one) => `<si><t>${one}</t></si>`)],
    [20, text.map((one) => `<si><t xml:space="preserve">${one}</t></si>`)],
    [5, text.map((one) => `<si><r><t>${one}</t></r><rPh sb="0" eb="1"><t>p</t></rPh></si>`)],
    [
      3,
      fc.constantFrom(
        "<si/>",
        "<si><t/></si>",
        "\n",
        "<si><t>a</t></si >",
        "<!-- <si><t>n</t></si> -->",
        "<x><si/></x>",
      ),
    ],
    [1, fc.constantFrom("<si>", "</si>", "<si><t>a</si>", "&amp;")],
  );
  await fc.assert(
    fc.asyncProperty(fc.array(item, { maxLength: 20, size: "max" }), cuts, async (items, at) => {
      const given = `<?xml version="1.0"?><sst count="1">${items.join("")}</sst>`;
      expect(await textsOf(given, at, true)).toEqual(await textsOf(given, at, false));
    }),
    { numRuns: 1000 },
  );
});
