/** Direct reads of a sheet: their cost where its rows have another form, and the memory they keep. */
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, it } from "vitest";
import { PartParser } from "#mapping/readers/xlsx-part.ts";
import { PlainPart } from "#mapping/readers/xlsx-plain.ts";
import { SheetHandler } from "#mapping/readers/xlsx-sheet.ts";
import { chunksOf, readsOf, rowsOf, strings } from "./sheet-reads.ts";

it("a row that is longer than what is held for it is read by the parser", () => {
  const value = "7".repeat(1000);
  const cells = Array.from({ length: 400 }, (_, at) => `<c r="A${at + 1}" t="str"><v>${value}</v></c>`).join("");
  const rows = `<row r="1"></row><row r="2">${cells}</row><row r="3">${cells}</row>`;
  const given = `<worksheet><sheetData>${rows}</sheetData></worksheet>`;
  const chunks = chunksOf(given, { lengths: [65_536], isInTag: false });
  expect(rowsOf(chunks, true)).toEqual(rowsOf(chunks, false));
});

it("a tag that is not complete is not forgotten", () => {
  const chunks = ["<worksheet><sheetData> <", '<row r="1"><c r="A1"><v>1</v></c></row>', "/sheetData></worksheet>"];
  const expected = rowsOf(chunks, false);
  expect(expected.fault).toContain("disallowed character in tag name");
  expect(rowsOf(chunks, true)).toEqual(expected);
});

it("a row is read once, when its end is there", () => {
  const cells = ["<f>A2*2</f>", '<f t="shared" si="0"/>', ""].map((one) => `<c r="A1">${one}<v>1</v></c>`);
  const row = `<row r="1">${cells.join("").repeat(200)}</row>`;
  const rest = chunksOf(`${row}${row}</sheetData></worksheet>`, { lengths: [500], isInTag: false });
  const chunks = ["<worksheet><sheetData>", ...rest];
  const reads = readsOf(() => expect(rowsOf(chunks, true)).toEqual(rowsOf(chunks, false)));
  expect(reads).toEqual([row.length, row.length]);
});

it("a sheet whose rows are of another form is left to the parser", () => {
  const row = `<row r="1"><c r="A1"><v>1</v></c>${'<c r="B1"> <v>1</v></c>'.repeat(50)}</row>`;
  const chunks = chunksOf(`<worksheet><sheetData>${row.repeat(2000)}</sheetData></worksheet>`, {
    lengths: [65_536],
    isInTag: false,
  });
  const reads = readsOf(() => expect(rowsOf(chunks, true)).toEqual(rowsOf(chunks, false)));
  expect(reads.length).toBeGreaterThan(100);
  expect(reads.length).toBeLessThan(400);
});

it("keeps nothing of the chunks that it has read", () => {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  const column = (nth: number) => `A${String.fromCharCode(65 + Math.floor(nth / 26), 65 + (nth % 26))}`;
  const handler = new SheetHandler("S", { strings, is1904: false, dateFormat: () => undefined });
  const reader = new PlainPart(new PartParser("the sheet", handler), handler);
  reader.write("<worksheet><sheetData>");
  const filler = '<row r="1"><c r="A1"><v>1</v></c></row>'.repeat(2000);
  collect();
  const before = process.memoryUsage().heapUsed;
  for (let nth = 0; nth < 400; nth += 1) {
    const cell = `<c r="${column(nth)}2" s="${nth}" t="inlineStr"><is><t>x</t></is></c>`;
    const row = `<row r="2" spans="1:${nth}" x14ac:dyDescent="0.25">${cell}</row>`;
    reader.write(Buffer.from(filler + row).toString());
    handler.drain();
  }
  collect();
  expect(process.memoryUsage().heapUsed - before).toBeLessThan(8_000_000);
});
