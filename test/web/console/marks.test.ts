import { describe, expect, test } from "vitest";
import { cellOf, columnIn, lettersOf } from "#pages/console/files/marks.ts";

describe("the column of a refused row", () => {
  const marked = (line: string, column: string, ...header: string[]) => {
    const range = columnIn(line, column, header);
    return range === null ? null : line.slice(range.from, range.to);
  };

  test.each([
    ["Meter;Date;Value", "M-1;2026;12,5", "Value", "12,5"],
    ["Meter,Date,Value", 'M-1,"a,b",7', "Date", '"a,b"'],
    ['"Meter"\t"Value"', "M-1\t7", "Meter", "M-1"],
    ["Meter;Value", "M-1;", "Value", ""],
  ])("of %j is found in %j", (header, line, column, field) => {
    expect(marked(line, column, header)).toBe(field);
  });

  test("is found below a title, by the line that names it", () => {
    expect(marked("M-1;7", "Value", "Report; of March", "Meter;Value")).toBe("7");
  });

  test("is not guessed where no line names it, or the row is too short", () => {
    expect(marked("M-1;7", "Worth", "Meter;Value")).toBeNull();
    expect(marked("M-1", "Value", "Meter;Value")).toBeNull();
    expect(marked("Value", "Value", "Value")).toBeNull();
  });
});

test("a cell is found by the name of its column, and by its letters", () => {
  const header = [["Meter", "Date", " Value "]];
  expect(cellOf("Value", header)).toBe(2);
  expect(cellOf("B", header)).toBe(1);
  expect(cellOf("AA", [])).toBe(26);
  expect(cellOf("value", [])).toBeNull();
});

test("letters and places of columns are inverse", () => {
  for (const at of [0, 25, 26, 51, 701, 702]) expect(cellOf(lettersOf(at), [])).toBe(at);
  expect([lettersOf(0), lettersOf(25), lettersOf(26), lettersOf(702)]).toEqual(["A", "Z", "AA", "AAA"]);
});
