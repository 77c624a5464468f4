import { inspect } from "node:util";
import fc from "fast-check";
import iconv from "iconv-lite";
import { describe, expect, it } from "vitest";
import type { Line } from "#mapping/readers/contract.ts";
import { placeOf } from "#mapping/readers/row-place.ts";
import { collect, openFile } from "../mapping/kit.ts";

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

  it("hands on the lines that a comment mark leaves out, with their places, whatever is around them", async () => {
    const plain = Array.from({ length: 4_000 }, (_, row) => `${row},1\n`).join("");
    const content = `# a\r\n\r\nx,y\r\n#b "\r\n\r\n"1\n# no comment",2\r\n# c\r\n3,4\r\n${plain}# d\n5,6\n#e`;
    const seen: unknown[] = [];
    const onComment = ({ row, text }: Line, isBehindRow: boolean) => seen.push([row, text, isBehindRow]);
    const rows = await cells(content, { comment: "#", onComment });
    expect(rows).toEqual(await cells(content, { comment: "#" }));
    expect(rows[1]).toEqual(["1\n# no comment", "2"]);
    expect(seen).toEqual([
      [1, "# a", false],
      [4, '#b "', true],
      [8, "# c", true],
      [4_010, "# d", true],
      [4_012, "#e", true],
    ]);
  });

  it("reads a declared encoding without a mark", async () => {
    const bytes = iconv.encode("Zähler;°C\n", "windows-1252");
    expect(await cells(bytes, { encoding: "windows-1252", delimiter: ";" })).toEqual([["Zähler", "°C"]]);
  });

  it("refuses bytes that are not of the encoding, with their line, instead of replacing them", async () => {
    const bytes = Buffer.concat([Buffer.from("a,b\n1,ä\n"), Buffer.from([0x31, 0x2c, 0xe4, 0x0a])]);
    await expect(cells(bytes)).rejects.toMatchObject({ row: 3, message: expect.stringContaining("0xe4") });
  });

  it("joins a character that is split between two chunks of the file", async () => {
    const content = `a\n${"x".repeat(256 * 1024 - 3)}😀\n`;
    expect((await cells(content))[1]?.[0]?.endsWith("x😀")).toBe(true);
  });

  it("knows the line of each row, through quoted line ends, comments, blanks and skipped lines", async () => {
    const content = 'pre "amble\nmore\n# note\nk,v\r\n\r\n1,"a\r\nb"\r\n# c\r\n2,x\r\n"3\n3",y\r\n4,z';
    expect(await rowsWithLines(content, { skipLines: 2, comment: "#" })).toEqual([
      [6, { k: "1", v: "a\r\nb" }],
      [9, { k: "2", v: "x" }],
      [10, { k: "3\n3", v: "y" }],
      [12, { k: "4", v: "z" }],
    ]);
  });

  it("passes rows of another length than the header's to be refused, and pads them where permitted", async () => {
    const { file, refused } = await openFile("a,b\n1\n1,2\n1,2,3\n");
    expect((await collect(file.csv({ columns: true }))).map((row) => ({ ...row }))).toEqual([{ a: "1", b: "2" }]);
    expect(refused.map(({ row, fault }) => [placeOf(row)?.row, fault.message])).toEqual([
      [2, "the row has 1 cell where the header has 2"],
      [4, "the row has 3 cells where the header has 2"],
    ]);
    expect(await rowsWithLines("a,b\n1\n1,2,3\n", { ragged: "pad", extraCells: "ignore" })).toEqual([
      [2, { a: "1", b: "" }],
      [3, { a: "1", b: "2" }],
    ]);
  });

  it("fills short rows where only these are permitted, and refuses those with surplus content", async () => {
    const { file, refused } = await openFile("a,b\n1\n1,2, \n1,2,3\n");
    const rows = await collect(file.csv({ columns: true, ragged: "pad" }));
    expect(rows.map((row) => ({ ...row }))).toEqual([
      { a: "1", b: "" },
      { a: "1", b: "2" },
    ]);
    expect(refused.map(({ row }) => placeOf(row)?.row)).toEqual([4]);
  });

  it("names the nearest column where one is read that the header lacks, and answers for an optional one", async () => {
    const { file } = await openFile("Time,A kWh,B  kWh\n1,2,3\n");
    const [row] = await collect(file.csv({ columns: true }));
    expect(() => row?.["B kWh"]).toThrow(
      expect.objectContaining({
        name: "FileError",
        message: 'the header has no column "B kWh"',
        row: 1,
        column: "B kWh",
        hint: expect.stringContaining('Is "B  kWh" meant? The columns are: Time, A kWh, B  kWh.'),
      }),
    );
    expect(row !== undefined && "B kWh" in row).toBe(false);
    expect(row !== undefined && "A kWh" in row).toBe(true);
  });

  it("returns rows that programs may print, copy, compare and await", async () => {
    const { file } = await openFile("constructor,__proto__,then,a\n1,2,,x\n");
    const [row] = await collect(file.csv({ columns: true }));
    expect(Object.keys(row ?? {})).toEqual(["constructor", "__proto__", "then", "a"]);
    expect(JSON.stringify(row)).toBe('{"constructor":"1","__proto__":"2","then":"","a":"x"}');
    const { file: plain } = await openFile("a,b\n1,\n");
    const [other] = await collect(plain.csv({ columns: true }));
    expect(await Promise.resolve(other)).toBe(other);
    expect(inspect(other)).toContain("a: '1', b: ''");
    expect(structuredClone({ ...other })).toEqual({ a: "1", b: "" });
    expect(structuredClone(other)).toEqual({ a: "1", b: "" });
    expect(other).toEqual({ a: "1", b: "" });
    expect(other).not.toEqual({ a: "1", b: "2" });
    expect(() => String(other)).toThrow(TypeError);
    const names: string[] = [];
    for (const name in other) names.push(name);
    expect(names).toEqual(["a", "b"]);
  });

  it("names the columns of a file without a header, and binds each row to them", async () => {
    const { file, refused } = await openFile("1,2\n3\n4,5,6\n");
    const rows = await collect(file.csv({ columns: ["when", "value"] }));
    expect(rows.map(({ when, value }) => [when, value])).toEqual([["1", "2"]]);
    expect(refused.map(({ row, fault }) => [placeOf(row)?.row, fault.message])).toEqual([
      [2, "the row has 1 cell where 2 columns are named"],
      [3, "the row has 3 cells where 2 columns are named"],
    ]);
    expect(() => (rows[0] as Record<string, string>)["Value"]).toThrow(
      "the list of the mapper's columns has no column",
    );
    await expect(collect(file.csv({ columns: ["a", "a"] }))).rejects.toThrow("names that differ");
  });

  it("joins a header of several rows, and fills the cells that merged cells leave empty", async () => {
    const content = "Date,Meter A,,Meter B\n,Energy,,\n, kWh ,kW,kWh\n2026-01-01,1,2,3\n";
    expect(await rowsWithLines(content, { headerRows: 3 })).toEqual([
      [
        4,
        {
          Date: "2026-01-01",
          "Meter A Energy kWh": "1",
          "Meter A Energy kW": "2",
          "Meter B Energy kWh": "3",
        },
      ],
    ]);
    expect(await rowsWithLines("Date,Value\nDate,kWh\n1,2\n", { headerRows: 2 })).toEqual([
      [3, { Date: "1", "Value kWh": "2" }],
    ]);
    await expect(rowsWithLines("a,b\n", { headerRows: 2 })).rejects.toThrow("ends within its header");
  });

  it("refuses a header that names two columns alike, unless these are numbered", async () => {
    await expect(rowsWithLines("note\nt, v,v \n1,2,3\n", { skipLines: 1 })).rejects.toMatchObject({
      unreadable: true,
      message: 'the header names columns 2 and 3 both "v"',
      row: 2,
      hint: expect.stringContaining("duplicates"),
    });
    expect(await rowsWithLines("v,v,v\n1,2,3\n", { duplicates: "number" })).toEqual([
      [2, { v: "1", "v (2)": "2", "v (3)": "3" }],
    ]);
  });

  it("leaves out columns without a name as long as they are empty", async () => {
    expect(await rowsWithLines("a,b,\n1,2,\n3,4, \n")).toEqual([
      [2, { a: "1", b: "2" }],
      [3, { a: "3", b: "4" }],
    ]);
    await expect(rowsWithLines("a,,b\n1,,2\n3,x,4\n")).rejects.toMatchObject({
      message: "column 2 has content, but has no name in the header (row 1)",
      row: 3,
      column: "column 2",
      text: "x",
    });
    expect(await rowsWithLines("a,,b\n3,x,4\n", { unnamed: "skip" })).toEqual([[2, { a: "3", b: "4" }]]);
  });

  it("finds a header behind a preamble of any length and form, and knows the lines", async () => {
    const headerAt = (found: readonly string[]) => found[0] === "Date" && found.length > 1;
    const anyDate = (found: readonly string[]) => found.length > 1 && /Date$/.test(found[0] ?? "");
    const preamble = 'Report of "ACME\n\n# Date,Value\nDate of report: "x" y\r\nDate\n';
    expect(
      await rowsWithLines(`${preamble}Date,"Val""ue"\n1,2\n`, {
        headerAt: anyDate,
        comment: "#",
        skipLines: 1,
      }),
    ).toEqual([[7, { Date: "1", 'Val"ue': "2" }]]);
    expect(await cells(`${preamble}Date,v\n1,2`, { headerAt })).toEqual([
      ["Date", "v"],
      ["1", "2"],
    ]);
    const far = `${"x".repeat(299)}\n`.repeat(900);
    expect(await rowsWithLines(`${far}Date,v\r1,2`, { headerAt })).toEqual([[902, { Date: "1", v: "2" }]]);
  });

  it("reports a missing header, and searches only the first lines", async () => {
    const headerAt = () => false;
    await expect(cells("a,b\n1,2", { headerAt })).rejects.toMatchObject({
      unreadable: true,
      message: "no line is the header that the mapper expects",
    });
    await expect(cells("a,b\n".repeat(2000), { headerAt })).rejects.toThrow("none of the first 1000 lines");
  });

  it("accepts several characters as delimiter, other escapes, and blanks around cells", async () => {
    expect(await cells('a||b|c||"d||e"\n', { delimiter: "||" })).toEqual([["a", "b|c", "d||e"]]);
    expect(await cells('"a\\"b",c\n', { escape: "\\" })).toEqual([['a"b', "c"]]);
    expect(await cells(' a , " b " ,c\n', { trim: true })).toEqual([["a", " b ", "c"]]);
  });

  it("refuses a row that is longer than the limit, whatever its content", async () => {
    for (const long of ["x".repeat(2_000_000), ",".repeat(2_000_000), `"${"x\n".repeat(1_000_000)}`])
      await expect(cells(`a,b\n1,2\n${long}`, { rowBytesMax: 1_000_000 })).rejects.toMatchObject({
        unreadable: true,
        row: 3,
        message: "the row at line 3 is longer than 1000000 bytes",
      });
    // Comments and blank lines are no part of a row.
    expect(await cells(`a\n${"# note\n".repeat(300_000)}b`, { comment: "#", rowBytesMax: 1_000_000 })).toHaveLength(2);
  });

  it("accepts any name of a column as data", async () => {
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

  it("restores any table that was written by the rules", async () => {
    const cell = fc.string({ unit: fc.constantFrom("a", ",", '"', "\n", "\r", "é", "😀", " ", "1", "\t") });
    const table = fc
      .integer({ min: 2, max: 4 })
      .chain((width) =>
        fc.array(fc.array(cell, { minLength: width, maxLength: width }), { minLength: 1, maxLength: 8 }),
      );
    await fc.assert(
      fc.asyncProperty(table, fc.constantFrom("\n", "\r\n"), async (rows, end) => {
        const text = rows.map((row) => row.map((one) => `"${one.replaceAll('"', '""')}"`).join(",")).join(end) + end;
        expect(await cells(text)).toEqual(rows);
      }),
      { numRuns: 60 },
    );
  });

  it("knows the lines of rows that do not end where a block of the file ends", async () => {
    const count = 4000;
    const row = (nth: number) =>
      nth % 3 === 0 ? `${nth},"two\nlines ""of"" ${nth}"\n` : nth % 7 === 0 ? `\n# note\n${nth},x\n` : `${nth},x\n`;
    let content = "n,text\n";
    let lines = 1;
    const expected: unknown[] = [];
    for (let nth = 1; nth <= count; nth += 1) {
      const written = row(nth);
      const before = written.startsWith("\n") ? 2 : 0;
      expected.push([lines + 1 + before, { n: `${nth}`, text: nth % 3 === 0 ? `two\nlines "of" ${nth}` : "x" }]);
      content += written;
      lines += written.split("\n").length - 1;
    }
    expect(await rowsWithLines(content, { comment: "#" })).toEqual(expected);
  });

  it("reads a cell of many lines, and knows the line of a fault far behind it", async () => {
    const text = "a line of the cell\n".repeat(20_000);
    const content = `a,b\n1,"${text}"\n${'2,"x"\n'.repeat(5000)}`;
    const rows = await rowsWithLines(content);
    expect(rows[0]).toEqual([2, { a: "1", b: text }]);
    expect(rows[1]).toEqual([20_003, { a: "2", b: "x" }]);
    expect(rows.at(-1)).toEqual([25_002, { a: "2", b: "x" }]);
    await expect(cells(`${content}3,"4"5\n`)).rejects.toMatchObject({
      row: 25_003,
      message: expect.stringMatching(/^line 25003 is not valid CSV: Invalid Closing Quote: got "5" at line 25003 /),
    });
    await expect(cells(`${content}3,"4\n5`)).rejects.toMatchObject({
      row: 25_003,
      message: "a quote that opens in the row at line 25003 is not closed",
    });
  });

  it("returns the same rows, lines and faults for a short file at once as for a longer one in blocks", async () => {
    const piece = fc.constantFrom("a", "é", "1", " ", ",", ";", '"', "'", "#", "\n", "\n", "\r\n", "\r", ",b\n", '"c"');
    const text = fc.array(piece, { maxLength: 14 }).map((pieces) => `k,v\n${pieces.join("")}`);
    const options = fc.record(
      {
        delimiter: fc.constantFrom(",", ";", ",,"),
        quote: fc.constantFrom('"', "'", null),
        escape: fc.constantFrom('"', "\\"),
        trim: fc.boolean(),
        comment: fc.constant("#"),
        rowBytesMax: fc.constantFrom(3, 5, 1000),
      },
      { requiredKeys: [] },
    );
    const told = async (content: string, given: object) => {
      const { file } = await openFile(content);
      const rows: unknown[] = [];
      try {
        for await (const chunk of file.csv(given)) for (const row of chunk) rows.push([placeOf(row)?.row, ...row]);
        return { rows };
      } catch (thrown) {
        return { fault: String(thrown), row: Reflect.get(Object(thrown), "row") };
      }
    };
    await fc.assert(
      fc.asyncProperty(text, options, async (content, given) => {
        // Who looks for a header reads in pieces.
        expect(await told(content, given)).toEqual(await told(content, { ...given, headerAt: () => true }));
      }),
      { numRuns: 150 },
    );
  });
});

describe("the line and text readers", () => {
  it("reads lines with their numbers, also blank ones and the last without an end", async () => {
    const { file } = await openFile("\ufeffa\r\n\r\nb\rc\nd");
    const lines = ["a", "", "b", "c"].map((text, at) => ({ row: at + 1, text }));
    expect(await collect(file.lines())).toEqual([...lines, { row: 5, text: "d", isOpen: true }]);
  });

  it.each(["a,1\nb,2", "a,1\r\nb,2", "a,1\rb,2"])("requires the line end of the last line: %j", async (content) => {
    const { file } = await openFile(content);
    const fault = { message: "the last line has no line end, which is required", text: "b,2" };
    for (const reader of [file.csv({ lineEnd: "required" }), file.lines({ lineEnd: "required" })])
      await expect(collect<unknown>(reader)).rejects.toMatchObject(fault);
    const { file: whole } = await openFile(`${content}\r\n \u001a`);
    expect(await collect(whole.csv({ lineEnd: "required" }))).not.toEqual([]);
  });

  it("cuts lines into columns at fixed positions, also characters beyond the basic plane", async () => {
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

  it("joins a line end that is split between two chunks of the file", async () => {
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

  it("refuses an unknown encoding", async () => {
    const { file } = await openFile("a");
    await expect(file.text({ encoding: "utf-99" })).rejects.toThrow('the encoding "utf-99" is unknown');
  });
});
