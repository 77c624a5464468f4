/**
 * Cases of public collections, written anew: csv-spectrum (github.com/maxogden/csv-spectrum), csv-test-data
 * (github.com/sineemore/csv-test-data), and the rules of RFC 4180, section 2. The names are those of the
 * collections.
 *
 * In one thing the reader goes its own way: a blank line is no row, where the collections read it as a row of
 * one empty cell.
 */
import { describe, expect, it } from "vitest";
import { collect, openFile } from "../mapping/kit.ts";

interface Case {
  readonly name: string;
  readonly text: string;
  /** Rows, of which cells are separated by `|`. */
  readonly rows?: readonly string[];
  /** Words of the error. */
  readonly error?: string;
  /** Line of the error. */
  readonly line?: number;
}

const SPECTRUM: readonly Case[] = [
  {
    name: "comma_in_quotes",
    text: 'meter,site,kWh\nM1,"Gent, north",4\n',
    rows: ["meter|site|kWh", "M1|Gent, north|4"],
  },
  { name: "empty", text: 'a,b,c\n1,"",""\n2,3,4', rows: ["a|b|c", "1||", "2|3|4"] },
  { name: "empty_crlf", text: 'a,b,c\r\n1,"",""\r\n2,3,4', rows: ["a|b|c", "1||", "2|3|4"] },
  {
    name: "escaped_quotes",
    text: 'a,b\n1,"a ""smart"" meter"\n3,4\n',
    rows: ["a|b", '1|a "smart" meter', "3|4"],
  },
  {
    name: "json",
    text: 'k,v\n1,"{""unit"": ""kWh"", ""at"": [3.5, 0.5]}"\n',
    rows: ["k|v", '1|{"unit": "kWh", "at": [3.5, 0.5]}'],
  },
  {
    name: "newlines",
    text: 'a,b,c\n1,2,3\n"read \nby hand",5,6\n7,8,9\n',
    rows: ["a|b|c", "1|2|3", "read \nby hand|5|6", "7|8|9"],
  },
  {
    name: "newlines_crlf",
    text: 'a,b,c\r\n1,2,3\r\n"read \r\nby hand",5,6\r\n7,8,9\r\n',
    rows: ["a|b|c", "1|2|3", "read \r\nby hand|5|6", "7|8|9"],
  },
  {
    name: "quotes_and_newlines",
    text: 'a,b\n1,"so \n""they"" \nsay"\n3,4\n',
    rows: ["a|b", '1|so \n"they" \nsay', "3|4"],
  },
  { name: "simple", text: "a,b,c\n1,2,3\n", rows: ["a|b|c", "1|2|3"] },
  { name: "simple_crlf", text: "a,b,c\r\n1,2,3\r\n", rows: ["a|b|c", "1|2|3"] },
  { name: "utf8", text: "a,b,c\n1,2,3\n4,5,ʤ\n", rows: ["a|b|c", "1|2|3", "4|5|ʤ"] },
];

const TEST_DATA: readonly Case[] = [
  { name: "all-empty", text: ",,\n,,\n,,\n", rows: ["||", "||", "||"] },
  { name: "bad-header-less-fields", text: "a,b,c\n1,2\n", rows: ["a|b|c", "1|2"] },
  { name: "bad-missing-quote", text: 'a,b\n"1,2\n3,4\n', error: "is not closed", line: 2 },
  { name: "bad-quotes-with-unescaped-quote", text: 'a,b\n"1"x",2\n', error: "not valid CSV", line: 2 },
  { name: "bad-unescaped-quote", text: 'a,b\n1"x,2\n', error: "not valid CSV", line: 2 },
  { name: "empty-field", text: "a,b,c\n1,,3\n,5,\n", rows: ["a|b|c", "1||3", "|5|"] },
  { name: "empty-one-column", text: 'a\n""\n3\n', rows: ["a", "", "3"] },
  { name: "header-no-rows", text: "a,b,c\n", rows: ["a|b|c"] },
  { name: "leading-space", text: " a,  b,\tc\n", rows: [" a|  b|\tc"] },
  { name: "trailing-space", text: "a ,b  ,c\t\n", rows: ["a |b  |c\t"] },
  { name: "one-column", text: "a\n1\n2\n", rows: ["a", "1", "2"] },
  { name: "quotes-empty", text: '"","",""\n"","",""\n', rows: ["||", "||"] },
  { name: "quotes-with-comma", text: '"a,b",",",c\n', rows: ["a,b|,|c"] },
  { name: "quotes-with-escaped-quote", text: '"""a""","b""b",""""\n', rows: ['"a"|b"b|"'] },
  { name: "quotes-with-newline", text: '"a\nb","\n","c\n"\n', rows: ["a\nb|\n|c\n"] },
  { name: "quotes-with-space", text: '" a","b ","  "\n', rows: [" a|b |  "] },
  { name: "simple-crlf", text: "a,b\r\n1,2\r\n", rows: ["a|b", "1|2"] },
  { name: "simple-lf", text: "a,b\n1,2\n", rows: ["a|b", "1|2"] },
  { name: "trailing-newline", text: "a,b\n1,2\n", rows: ["a|b", "1|2"] },
  { name: "trailing-newline-one-field", text: "a\n1\n", rows: ["a", "1"] },
  { name: "utf8", text: "名,值\n表,1,5 €\n", rows: ["名|值", "表|1|5 €"] },
];

const RFC_4180: readonly Case[] = [
  {
    name: "2.1: each record on a line, ended by CRLF",
    text: "aaa,bbb,ccc\r\nzzz,yyy,xxx\r\n",
    rows: ["aaa|bbb|ccc", "zzz|yyy|xxx"],
  },
  {
    name: "2.2: the last record may have no line end",
    text: "aaa,bbb,ccc\r\nzzz,yyy,xxx",
    rows: ["aaa|bbb|ccc", "zzz|yyy|xxx"],
  },
  { name: "2.4: spaces are part of a field", text: "a a, b ,c\r\n", rows: ["a a| b |c"] },
  { name: "2.4: the last field is not followed by a comma", text: "a,b,\r\n", rows: ["a|b|"] },
  {
    name: "2.5: fields may be quoted or not",
    text: '"aaa","bbb","ccc"\r\nzzz,"yyy",xxx\r\n',
    rows: ["aaa|bbb|ccc", "zzz|yyy|xxx"],
  },
  {
    name: "2.5: no quote within a field that is not quoted",
    text: 'a,b"c\r\n',
    error: "not valid CSV",
    line: 1,
  },
  {
    name: "2.6: line breaks in quotes",
    text: '"aaa","b\r\nbb","ccc"\r\nzzz,yyy,xxx\r\n',
    rows: ["aaa|b\r\nbb|ccc", "zzz|yyy|xxx"],
  },
  { name: "2.7: a quote in quotes is doubled", text: '"aaa","b""bb","ccc"\r\n', rows: ['aaa|b"bb|ccc'] },
];

/** Line ends and quotes as programs write them, beyond the collections. */
const FIELD: readonly Case[] = [
  { name: "CR alone", text: "a,b\r1,2\r", rows: ["a|b", "1|2"] },
  { name: "CR alone, in quotes with it", text: 'a,b\r"1\r1",2', rows: ["a|b", "1\r1|2"] },
  { name: "line ends that change in the file", text: "a,b\r\n1,2\n3,4\r\n", rows: ["a|b", "1|2", "3|4"] },
  { name: "a stray CR in a cell", text: "a,b\n1\r,2\n", rows: ["a|b", "1\r|2"] },
  { name: "blank lines", text: "\na,b\n\n\n1,2\n\n", rows: ["a|b", "1|2"] },
  { name: "an empty file", text: "", rows: [] },
  { name: "a byte order mark and nothing else", text: "\ufeff", rows: [] },
  { name: "a mark before a quoted cell", text: '\ufeff"a",b\n', rows: ["a|b"] },
  { name: "a spreadsheet formula that keeps digits", text: '="0541",b\n', error: "not valid CSV", line: 1 },
  { name: "such a formula in quotes", text: '"=""0541""",b\n', rows: ['="0541"|b'] },
  { name: "a pair of characters beyond the basic plane", text: "😀,b\n", rows: ["😀|b"] },
  { name: "a quote that opens in the last cell", text: 'a,b\n1,"', error: "is not closed", line: 2 },
];

describe.each([
  ["csv-spectrum", SPECTRUM],
  ["csv-test-data", TEST_DATA],
  ["RFC 4180", RFC_4180],
  ["the field", FIELD],
])("the CSV reader on the cases of %s", (_, cases) => {
  it.each(cases)("$name", async ({ text, rows, error, line }) => {
    const { file } = await openFile(text);
    const cells = collect(file.csv());
    if (rows !== undefined) {
      const read = await cells;
      expect(read.map((row) => row.join("|"))).toEqual(rows);
      expect(read.map((row) => row.length)).toEqual(rows.map((row) => row.split("|").length));
    } else
      await expect(cells).rejects.toMatchObject({
        unreadable: true,
        row: line,
        message: expect.stringContaining(error ?? ""),
        hint: expect.any(String),
      });
  });
});
