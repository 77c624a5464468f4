/** Hostile and damaged files: each ends in a clear error or in right readings. */
import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import type { MapperFile } from "#mapping/mapper.ts";
import type { EndlessCase, EndlessResult } from "./endless.ts";
import { collect, openFile, temporaryFolder, zipOf } from "./kit.ts";

const run = promisify(execFile);
const CHILD = join(import.meta.dirname, "endless-reader.ts");

const ENDLESS: readonly EndlessCase[] = [
  {
    name: "one line",
    reader: "csv",
    start: "a,b\n",
    repeat: "xxxxxxxx",
    says: "the row at line 2 is longer than 8388608 bytes",
  },
  {
    name: "one row of empty cells",
    reader: "csvRows",
    start: "a,b\n",
    repeat: ",",
    says: "the row at line 2 is longer",
  },
  {
    name: "a quote",
    reader: "csv",
    start: 'a,b\n1,"',
    repeat: "xxxxxxx ",
    says: "the row at line 2 is longer",
  },
  {
    name: "a line before the header",
    reader: "csvHeaderAt",
    start: "note\n",
    repeat: "xxxxxxxx",
    says: "line 2 is longer",
  },
  {
    name: "one line, for the reader of lines",
    reader: "lines",
    start: "a\n",
    repeat: "xxxxxxxx",
    says: "line 2 is longer than 8388608 characters",
  },
  { name: "a text", reader: "text", start: "", repeat: "xxxxxxxx", says: "larger than the 67108864 bytes" },
  {
    name: "a JSON text",
    reader: "json",
    start: '[1,\n"',
    repeat: "xxxxxxxx",
    says: "line 2 is not valid JSON: a text or number is longer than 16777216",
  },
  {
    name: "a JSON text in what is not looked for",
    reader: "json",
    start: '{"a": {"b": "',
    repeat: "\\\\n\\\\u00e4",
    says: "a text or number is longer than 16777216",
  },
  {
    name: "a JSON number",
    reader: "json",
    start: "[",
    repeat: "12345678",
    says: "a text or number is longer than 16777216",
  },
  {
    name: "a JSON item of many values",
    reader: "json",
    start: "[[1",
    repeat: ",1",
    says: "$[0] holds more than 1000000 values",
  },
  {
    name: "JSON arrays within each other",
    reader: "json",
    start: "",
    repeat: "[",
    says: "deeper than 100 levels",
  },
  {
    name: "one line of NDJSON",
    reader: "ndjson",
    start: '{"a": 1}\n"',
    repeat: "xxxxxxxx",
    says: "line 2 is longer",
  },
  {
    name: "an attribute",
    reader: "xml",
    start: '<r>\n<a b="',
    repeat: "xxxxxxxx",
    says: "a tag or text is longer than 16777216",
  },
  {
    name: "the text of an element that is not looked for",
    reader: "xml",
    start: "<r>",
    repeat: "xxxxxxxx",
    says: "longer than 16777216",
  },
  {
    name: "an element of small ones",
    reader: "xml",
    start: "<r>\n<a>",
    repeat: "<b/>",
    says: "holds more than 500000 elements",
  },
  {
    name: "elements within each other",
    reader: "xml",
    start: "",
    repeat: "<b>",
    says: "deeper than 100 levels",
  },
  {
    name: "a DOCTYPE",
    reader: "xml",
    start: "<!DOCTYPE r [",
    repeat: "xxxxxxxx",
    says: "longer than 16777216",
  },
];

describe("streams that never end", () => {
  it("are refused at a named limit, with the place and the next step, in little memory", async () => {
    const { stdout } = await run(process.execPath, [
      "--max-old-space-size=160",
      CHILD,
      await temporaryFolder(),
      JSON.stringify(ENDLESS),
    ]);
    const { results, peakMB } = JSON.parse(stdout) as { results: EndlessResult[]; peakMB: number };
    const told = results.map((result, nth) => ({ name: ENDLESS[nth]?.name, ...result }));
    expect(told).toEqual(
      ENDLESS.map(({ name, says }) =>
        expect.objectContaining({ name, message: expect.stringContaining(says), hint: expect.any(String) }),
      ),
    );
    expect(peakMB).toBeLessThan(400);
  }, 120_000);
});

type Read = (file: MapperFile) => Promise<unknown>;
const csv: Read = (file) => collect(file.csv());
const json: Read = (file) => collect(file.json({ path: "$.*" }));
const xml: Read = (file) => collect(file.xml({ elements: "r" }));
const xlsx: Read = (file) => collect(file.xlsx());

const LAUGHS =
  "<!DOCTYPE r [<!ENTITY a " +
  `"ha">${Array.from({ length: 30 }, (_, nth) => `<!ENTITY a${nth} "${"&a;".repeat(10)}">`).join("")}]><r>&a29;</r>`;
const BOOK = {
  "xl/workbook.xml": `<workbook xmlns:r="r"><sheets><sheet name="Data" sheetId="1" r:id="R1"/></sheets></workbook>`,
  "xl/_rels/workbook.xml.rels":
    `<Relationships><Relationship Id="R1" Type="x/worksheet" ` + `Target="worksheets/sheet1.xml"/></Relationships>`,
};
const bookOf = (parts: Readonly<Record<string, string>>) =>
  zipOf({ ...BOOK, "xl/worksheets/sheet1.xml": "<worksheet><sheetData/></worksheet>", ...parts }, true);
const spaces = " ".repeat(40 * 1024 * 1024);

describe("files of the wrong kind, and hostile files", () => {
  it.each<[string, Read, string | Uint8Array, string]>([
    ["a workbook that is called CSV", csv, bookOf({}), "a ZIP archive or a workbook"],
    ["a CSV file that is called a workbook", xlsx, "a,b\n1,2\n", "it is not an archive"],
    ["an archive that is no workbook", xlsx, zipOf({ "data.csv": "a,b\n" }), "an archive, but not a workbook"],
    ["XML for JSON", json, "<r/>", '"<" is not expected here'],
    ["JSON for XML", xml, '{"r": 1}', "does not begin with <"],
    ["NUL bytes for CSV", csv, new Uint8Array(5000), "line 1, character 1: a NUL byte"],
    ["NUL bytes at the end of CSV", csv, `a,b\n1,2\n${"\0".repeat(100)}`, "line 3, character 1: a NUL byte"],
    ["NUL bytes for JSON", json, "[1,\0]", "a NUL byte"],
    ["NUL bytes for XML", xml, "<r>\0</r>", "a NUL byte"],
    ["half of a surrogate pair in CSV", csv, Buffer.from([0x61, 0xed, 0xb0, 0x80, 0x0a]), "not UTF-8 (0xed)"],
    ["half of a surrogate pair in JSON", json, '["\\udc00"]', "half of a surrogate pair"],
    ["half of a surrogate pair in XML", xml, "<r>&#xd800;</r>", "line 1"],
    ["an entity bomb", xml, LAUGHS, "entities of its own"],
    ["an entity bomb in a sheet", xlsx, bookOf({ "xl/worksheets/sheet1.xml": LAUGHS }), "DOCTYPE"],
    [
      "an entity bomb in the names of sheets",
      xlsx,
      bookOf({ "xl/workbook.xml": LAUGHS }),
      "cannot be read as a workbook",
    ],
    [
      "a ZIP bomb in a sheet",
      xlsx,
      bookOf({
        "xl/worksheets/sheet1.xml": `<worksheet><sheetData>${`<row><c t="str"><v>${spaces.slice(0, 1000)}</v></c></row>`.repeat(40_000)}</sheetData></worksheet>`,
      }),
      "unpacks to more than 200 times",
    ],
    [
      "a ZIP bomb in the shared texts",
      xlsx,
      bookOf({
        "xl/sharedStrings.xml": `<sst>${`<si><t>${spaces.slice(0, 1000)}</t></si>`.repeat(40_000)}</sst>`,
      }),
      "unpacks to more than 200 times",
    ],
    [
      "a ZIP bomb in the formats",
      xlsx,
      bookOf({
        "xl/styles.xml": `<styleSheet>${`<a>${spaces.slice(0, 1000)}</a>`.repeat(20_000)}</styleSheet>`,
      }),
      "unpacks to more than 16777216 bytes",
    ],
    [
      "formats without end",
      xlsx,
      bookOf({ "xl/styles.xml": `<styleSheet><cellXfs>${"<xf/>".repeat(300_000)}</cellXfs></styleSheet>` }),
      "it holds more than 300000 elements",
    ],
    [
      "a text of a cell without end",
      xlsx,
      bookOf({
        "xl/worksheets/sheet1.xml":
          "<worksheet><sheetData><row><c " +
          `t="str"><v>${spaces.slice(0, 2_000_000)}</v></c></row></sheetData></worksheet>`,
      }),
      "a tag or text is longer than 1048576",
    ],
    [
      "a row of cells without end",
      xlsx,
      bookOf({
        "xl/worksheets/sheet1.xml": `<worksheet><sheetData><row>${'<c r="A1"><v>1</v></c>'.repeat(40_000)}</row></sheetData></worksheet>`,
      }),
      "row 1 has a cell at A1",
    ],
    [
      "an unclosed quote",
      csv,
      `a,b\n1,"2\n${"3,4\n".repeat(1000)}`,
      "a quote that opens in the row at line 2 is not closed",
    ],
  ])("%s", async (_, read, content, message) => {
    const { file } = await openFile(content, "input.dat");
    await expect(read(file)).rejects.toMatchObject({
      unreadable: true,
      message: expect.stringContaining(message),
    });
  });

  it("reads 10,000 columns of CSV and of a workbook", async () => {
    const names = Array.from({ length: 10_000 }, (_, nth) => `column ${nth}`);
    const { file } = await openFile(`${names.join(",")}\n${`${names.map((_, nth) => nth).join(",")}\n`.repeat(20)}`);
    const rows = await collect(file.csv({ columns: true }));
    expect(rows).toHaveLength(20);
    expect([rows[19]?.["column 0"], rows[19]?.["column 9999"]]).toEqual(["0", "9999"]);
    const cells = names.map((_, nth) => `<c><v>${nth}</v></c>`).join("");
    const sheet = `<worksheet><sheetData>${`<row>${cells}</row>`.repeat(20)}</sheetData></worksheet>`;
    const { file: book } = await openFile(bookOf({ "xl/worksheets/sheet1.xml": sheet }));
    const read = await collect(book.xlsx());
    expect([read.length, read[19]?.length, read[19]?.[9999]]).toEqual([20, 10_000, 9999]);
  });
});
