import fc from "fast-check";
import iconv from "iconv-lite";
import { describe, expect, it } from "vitest";
import { collect, openFile } from "../mapping/kit.ts";

async function text(content: string | Uint8Array, encoding?: string) {
  const { file } = await openFile(content);
  return await file.text({ encoding });
}

const CHUNK = 256 * 1024;

describe("decoding", () => {
  const PAGE = '<!DOCTYPE html>\n<html lang="en"><head><title> Sign in </title></head><body>Please</body></html>\n';

  it.each([
    ["text", Buffer.from(PAGE)],
    ["text with a mark and blank lines", Buffer.from(`\ufeff\n\n${PAGE}`)],
    ["UTF-16", iconv.encode(PAGE, "utf-16le", { addBOM: true })],
    ["XHTML", Buffer.from(`<?xml version="1.0"?><!-- made by a server -->${PAGE}`)],
    ["a long page", Buffer.from(PAGE.replace("Please", "x".repeat(CHUNK)))],
  ])("refuses an HTML page as such: %s", async (_, content) => {
    const fault = {
      unreadable: true,
      message: 'the file is an HTML page ("Sign in"), not a file of data',
      hint: expect.stringContaining("Did a server answer with a page"),
    };
    const { file } = await openFile(content);
    const readers = [
      file.csv(),
      file.csv({ columns: true }),
      file.lines(),
      file.fixedWidth({ columns: [{ name: "a", start: 1, width: 2 }] }),
      file.json({ path: "$" }),
      file.ndjson(),
      file.xml({ elements: "point" }),
      file.xlsx(),
    ];
    for (const reader of readers) await expect(collect<unknown>(reader)).rejects.toMatchObject(fault);
    await expect(file.text()).rejects.toMatchObject(fault);
    expect(await file.text({ html: "read" })).toContain("<body>");
  });

  it("reads markup that is no page", async () => {
    expect(await text("<htmlish/>")).toBe("<htmlish/>");
    expect(await text("a;<html>\n")).toBe("a;<html>\n");
  });

  it.each([
    ["UTF-8", Buffer.from([0x61, 0x0a, 0xc3, 0xa4, 0xe4, 0x0a]), undefined, 2, 2, "not UTF-8 (0xe4)"],
    ["half of a surrogate pair in UTF-8", Buffer.from([0x61, 0xed, 0xa0, 0x80]), undefined, 1, 2, "not UTF-8 (0xed)"],
    ["a character that is cut off", Buffer.from([0x61, 0x0a, 0xe2, 0x82]), undefined, 2, 1, "not UTF-8 (0xe2)"],
    ["a mark and then no UTF-8", Buffer.from([0xef, 0xbb, 0xbf, 0x61, 0xff]), undefined, 1, 2, "not UTF-8 (0xff)"],
    ["NUL", Buffer.from("a\nb\0c"), undefined, 2, 2, "a NUL byte"],
    ["NUL in Windows-1252", Buffer.from("a\nb\0c"), "windows-1252", 2, 2, "a NUL character"],
    [
      "what Windows-1252 does not define",
      Buffer.from([0x61, 0x0a, 0x81]),
      "windows-1252",
      2,
      1,
      "windows-1252 does not define (0x81)",
    ],
    ["what is beyond ASCII", Buffer.from([0x61, 0xe4]), "ascii", 1, 2, "ascii does not define (0xe4)"],
    ["half of a surrogate pair", Buffer.from([0x61, 0, 0x0a, 0, 0x3d, 0xd8, 0x62, 0]), "utf-16le", 2, 1, "surrogate"],
    ["the second half of a pair alone", Buffer.from([0, 0x61, 0xdc, 0, 0, 0x62]), "utf-16be", 1, 2, "surrogate"],
    ["half of a pair at the end", Buffer.from([0xff, 0xfe, 0x61, 0, 0x3d, 0xd8]), undefined, 1, 2, "surrogate"],
    ["half of a unit at the end", Buffer.from([0xff, 0xfe, 0x61, 0, 0x62]), undefined, 1, 2, "middle of a character"],
    ["UTF-16 without mark and declaration", iconv.encode("a;b", "utf-16le"), undefined, 1, 2, "a NUL byte"],
    ["UTF-32", iconv.encode("ab", "utf-32le", { addBOM: true }), undefined, 1, 1, "a NUL character"],
  ])("refuses %s, with line and column", async (_, content, encoding, row, column, what) => {
    await expect(text(content, encoding)).rejects.toMatchObject({
      unreadable: true,
      row,
      column: `character ${column}`,
      message: expect.stringContaining(`line ${row}, character ${column}: `),
      hint: expect.any(String),
    });
    await expect(text(content, encoding)).rejects.toThrow(what);
  });

  it("finds the line also far into a file", async () => {
    const lines = `${"é".repeat(99)}\n`.repeat(5000);
    const content = Buffer.concat([Buffer.from(`\ufeff${lines}ab`), Buffer.from([0xe4])]);
    await expect(text(content)).rejects.toMatchObject({ row: 5001, column: "character 3" });
    const latin = Buffer.concat([iconv.encode(lines.repeat(2), "windows-1252"), Buffer.from([0x61, 0x81])]);
    await expect(text(latin, "windows-1252")).rejects.toMatchObject({ row: 10_001, column: "character 2" });
  });

  it("shows the text of the place in the most likely encoding", async () => {
    await expect(text(iconv.encode("a;b\n12;Zähler;3\nx", "windows-1252"))).rejects.toMatchObject({
      hint: expect.stringContaining('"12;Zähler;3"'),
    });
  });

  it.each(["utf-16le", "utf-16be"])(
    "recognizes %s without a mark by its NULs, and names the declaration",
    async (encoding) => {
      await expect(text(iconv.encode("date;value", encoding))).rejects.toMatchObject({
        hint: expect.stringContaining(`encoding: ${encoding}`),
      });
    },
  );

  it.each([
    ["a workbook", Buffer.from("PK\u0003\u0004rest of it"), ".xlsx"],
    ["an old workbook", Buffer.from("d0cf11e0a1b11ae1", "hex"), ".xls"],
    ["a packed file", Buffer.from("1f8b08000000", "hex"), "gzip"],
  ])("recognizes %s, whatever its name", async (_, content, words) => {
    await expect(text(content)).rejects.toMatchObject({
      unreadable: true,
      message: expect.stringContaining(words),
    });
  });

  it("restores any text in any encoding that has its characters, wherever chunks end", async () => {
    const characters = fc.constantFrom("a", "\n", "é", "€", "😀", "漢", "\r\n", "ß");
    await fc.assert(
      fc.asyncProperty(
        fc.array(characters, { maxLength: 12 }).map((all) => all.join("")),
        fc.constantFrom("utf-8", "utf-16le", "utf-16be"),
        fc.boolean(),
        fc.integer({ min: 0, max: 9 }),
        async (end, encoding, addBOM, short) => {
          // Puts the characters across the end of a chunk.
          const bytes = encoding === "utf-8" ? 1 : 2;
          const content = "x".repeat(CHUNK / bytes - short) + end;
          expect(await text(iconv.encode(content, encoding, { addBOM }), encoding)).toBe(content);
        },
      ),
      { numRuns: 40 },
    );
  });

  it("passes on a replacement character of the file", async () => {
    expect(await text("a\ufffdb")).toBe("a\ufffdb");
  });

  it("limits the size of a file that is read as one text", async () => {
    const { file } = await openFile("x".repeat(1000));
    await expect(file.text({ bytesMax: 999 })).rejects.toThrow("larger than the 999 bytes");
    expect(await file.text({ bytesMax: 1000 })).toHaveLength(1000);
  });
});
