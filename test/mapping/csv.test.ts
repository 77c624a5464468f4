import fc from "fast-check";
import iconv from "iconv-lite";
import { describe, expect, it } from "vitest";
import { placeOf } from "../../src/mapping/place.ts";
import { collect, openFile } from "./kit.ts";

async function cells(content: string | Uint8Array, options = {}) {
  const { file } = await openFile(content);
  return await collect(file.csv(options));
}

async function rowsWithLines(content: string | Uint8Array, options = {}) {
  const { file } = await openFile(content);
  const rows = await collect(file.csv({ columns: true, ...options }));
  return rows.map((row) => [placeOf(row)?.row, { ...row }]);
}

describe("the CSV reader", () => {
  it.each([
    [
      "plain rows",
      "a,b\n1,2\n",
      [
        ["a", "b"],
        ["1", "2"],
      ],
    ],
    [
      "a last row without a line end",
      "a,b\n1,2",
      [
        ["a", "b"],
        ["1", "2"],
      ],
    ],
    [
      "CRLF",
      "a,b\r\n1,2\r\n",
      [
        ["a", "b"],
        ["1", "2"],
      ],
    ],
    [
      "CR alone",
      "a,b\r1,2\r",
      [
        ["a", "b"],
        ["1", "2"],
      ],
    ],
    [
      "line ends that change in the file",
      "a,b\r\n1,2\n3,4\r\n",
      [
        ["a", "b"],
        ["1", "2"],
        ["3", "4"],
      ],
    ],
    [
      "commas in quotes",
      'a,b\n"x, y",2\n',
      [
        ["a", "b"],
        ["x, y", "2"],
      ],
    ],
    [
      "quotes in quotes",
      'a,b\n1,"ha ""ha"" ha"\n',
      [
        ["a", "b"],
        ["1", 'ha "ha" ha'],
      ],
    ],
    [
      "line ends in quotes",
      'a,b\n"x\ny","z\r\nw"\n',
      [
        ["a", "b"],
        ["x\ny", "z\r\nw"],
      ],
    ],
    [
      "empty cells",
      'a,b,c\n1,"",\n,,\n',
      [
        ["a", "b", "c"],
        ["1", "", ""],
        ["", "", ""],
      ],
    ],
    [
      "JSON in a cell",
      'k,v\n1,"{""type"": ""Point"", ""at"": [1, 2]}"\n',
      [
        ["k", "v"],
        ["1", '{"type": "Point", "at": [1, 2]}'],
      ],
    ],
    [
      "characters beyond ASCII",
      "a,b\nʤ,漢字 😀\n",
      [
        ["a", "b"],
        ["ʤ", "漢字 😀"],
      ],
    ],
    [
      "blank lines between rows",
      "a,b\n\n1,2\n\n",
      [
        ["a", "b"],
        ["1", "2"],
      ],
    ],
    ["an empty file", "", []],
  ])("reads %s", async (_, content, expected) => {
    expect(await cells(content)).toEqual(expected);
  });

  it.each(["utf-16le", "utf-16be", "utf-8"])(
    "reads %s by its byte order mark, whatever is declared",
    async (encoding) => {
      const bytes = iconv.encode("Zähler,b\n1,2\n", encoding, { addBOM: true });
      expect(await cells(bytes, { encoding: "iso-8859-1" })).toEqual([
        ["Zähler", "b"],
        ["1", "2"],
      ]);
    },
  );

  it("reads a declared encoding without a mark", async () => {
    const bytes = iconv.encode("Zähler;°C\n", "windows-1252");
    expect(await cells(bytes, { encoding: "windows-1252", delimiter: ";" })).toEqual([["Zähler", "°C"]]);
  });

  it("refuses bytes that are not of the encoding, with their line, instead of replacing them", async () => {
    const bytes = Buffer.concat([Buffer.from("a,b\n1,ä\n"), Buffer.from([0x31, 0x2c, 0xe4, 0x0a])]);
    await expect(cells(bytes)).rejects.toMatchObject({ row: 3, message: expect.stringContaining("0xe4") });
  });

  it("keeps a character together that two chunks of the file share", async () => {
    const content = `a\n${"x".repeat(256 * 1024 - 3)}😀\n`;
    expect((await cells(content))[1]?.[0]?.endsWith("x😀")).toBe(true);
  });

  it("tells the line at which each row begins, through quoted line ends, comments, blanks and skipped lines", async () => {
    const content = 'pre "amble\nmore\n# note\nk,v\r\n\r\n1,"a\r\nb"\r\n# c\r\n2,x\r\n"3\n3",y\r\n4,z';
    expect(await rowsWithLines(content, { skipLines: 2, comment: "#" })).toEqual([
      [6, { k: "1", v: "a\r\nb" }],
      [9, { k: "2", v: "x" }],
      [10, { k: "3\n3", v: "y" }],
      [12, { k: "4", v: "z" }],
    ]);
  });

  it("hands rows of another length than the header's to be refused, and pads them where allowed", async () => {
    const { file, refused } = await openFile("a,b\n1\n1,2\n1,2,3\n");
    expect((await collect(file.csv({ columns: true }))).map((row) => ({ ...row }))).toEqual([
      { a: "1", b: "2" },
    ]);
    expect(refused.map(({ row, fault }) => [placeOf(row)?.row, fault.message])).toEqual([
      [2, "the row has 1 cells where the header has 2"],
      [4, "the row has 3 cells where the header has 2"],
    ]);
    expect(await rowsWithLines("a,b\n1\n1,2,3\n", { ragged: "allow" })).toEqual([
      [2, { a: "1", b: "" }],
      [3, { a: "1", b: "2" }],
    ]);
  });

  it("takes any name of a column as data", async () => {
    const { file } = await openFile("__proto__,constructor\n1,2\n");
    const [row] = await collect(file.csv({ columns: true }));
    expect(Object.entries(row ?? {})).toEqual([
      ["__proto__", "1"],
      ["constructor", "2"],
    ]);
    const { file: other } = await openFile("a\n1\n");
    expect((await collect(other.csv({ columns: true })))[0]?.["constructor"]).toBeUndefined();
  });

  it("names the line of a quote that is never closed, and of text after a closing quote", async () => {
    await expect(cells('a,b\n1,2\n3,"4\n5,6\n')).rejects.toMatchObject({ row: 3, unreadable: true });
    await expect(cells('a,b\n1,2\n3,"4"5\n')).rejects.toMatchObject({ row: 3, unreadable: true });
    expect(await cells('a,b\n1,"2\n', { quote: null })).toEqual([
      ["a", "b"],
      ["1", '"2'],
    ]);
  });

  it("gives back any table that was written by the rules", async () => {
    const cell = fc.string({ unit: fc.constantFrom("a", ",", '"', "\n", "\r", "é", "😀", " ", "1", "\t") });
    const table = fc
      .integer({ min: 2, max: 4 })
      .chain((width) =>
        fc.array(fc.array(cell, { minLength: width, maxLength: width }), { minLength: 1, maxLength: 8 }),
      );
    await fc.assert(
      fc.asyncProperty(table, fc.constantFrom("\n", "\r\n"), async (rows, end) => {
        const text =
          rows.map((row) => row.map((one) => `"${one.replaceAll('"', '""')}"`).join(",")).join(end) + end;
        expect(await cells(text)).toEqual(rows);
      }),
      { numRuns: 60 },
    );
  });
});

describe("the line and text readers", () => {
  it("reads lines with their numbers, also blank ones and the last without an end", async () => {
    const { file } = await openFile("\ufeffa\r\n\r\nb\rc\nd");
    expect(await collect(file.lines())).toEqual(
      ["a", "", "b", "c", "d"].map((text, at) => ({ row: at + 1, text })),
    );
  });

  it("cuts lines into columns at fixed places, also of characters beyond the basic plane and of short lines", async () => {
    const { file } = await openFile("SITE  2026\n# note\n\n😀1 A 12.50 x\nB2\n");
    const columns = [
      { name: "id", start: 1, width: 2 },
      { name: "raw", start: 4, width: 3, trim: false },
      { name: "value", start: 5, width: 6 },
    ];
    const rows = await collect(file.fixedWidth({ columns, skipLines: 1, comment: "#" }));
    expect(rows.map((row) => [placeOf(row)?.row, { ...row }])).toEqual([
      [4, { id: "😀1", raw: "A 1", value: "12.50" }],
      [5, { id: "B2", raw: "", value: "" }],
    ]);
    await expect(collect(file.fixedWidth({ columns: [{ name: "a", start: 0, width: 1 }] }))).rejects.toThrow(
      "the column a needs a start and a width",
    );
  });

  it("joins a line end that two chunks of the file share", async () => {
    for (const before of [256 * 1024 - 1, 256 * 1024 - 2]) {
      const { file } = await openFile(`${"x".repeat(before)}\r\nb\r\n\r\nc`);
      expect((await collect(file.lines())).map(({ row, text }) => [row, text.length])).toEqual([
        [1, before],
        [2, 1],
        [3, 0],
        [4, 1],
      ]);
    }
  });

  it("reads the whole text in its encoding", async () => {
    const { file } = await openFile(iconv.encode("Größe\n", "latin1"));
    expect(await file.text({ encoding: "latin1" })).toBe("Größe\n");
  });

  it("refuses an encoding that nobody knows", async () => {
    const { file } = await openFile("a");
    await expect(file.text({ encoding: "utf-99" })).rejects.toThrow('the encoding "utf-99" is not known');
  });
});
