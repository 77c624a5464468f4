/** Lines that need no parser give the rows that csv-parse gives, with the same line numbers. */
import { CsvError, type Info, parse } from "csv-parse/sync";
import fc from "fast-check";
import { expect, it } from "vitest";
import { placeOf } from "#mapping/readers/row-place.ts";
import { collect, openFile } from "../mapping/kit.ts";

const BLOCK_BYTES = 16 * 1024;

/** Mostly plain cells, so that plain blocks and others alternate within a file. */
const cell = fc.oneof(
  { weight: 40, arbitrary: fc.stringMatching(/^[a-z0-9 .:;|é€-]{0,12}$/) },
  { weight: 1, arbitrary: fc.constantFrom('"a,b"', '"c\nd"', '"e""f"', "\ufeff", "'") },
);
const line = fc.array(cell, { minLength: 1, maxLength: 5 });

it("plain lines and parsed ones give the rows of csv-parse", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.oneof({ weight: 20, arbitrary: line }, { weight: 1, arbitrary: fc.constant([""]) })),
      fc.constantFrom(",", ";", "||", "\t"),
      fc.constantFrom("\n", "\r\n"),
      fc.boolean(),
      fc.nat({ max: 3 }),
      async (rows, delimiter, lineEnd, endsWithLine, length) => {
        const texts = rows.map((cells) => cells.join(delimiter));
        // Longer files are read in several blocks, whose borders are anywhere.
        const times = Math.ceil((length * BLOCK_BYTES) / Math.max(1, texts.join(lineEnd).length));
        const all = length === 0 ? texts : Array.from({ length: Math.min(times, 20_000) }, () => texts).flat();
        const text = all.join(lineEnd) + (endsWithLine ? lineEnd : "");
        const { file } = await openFile(text);
        const found = collect(file.csv({ delimiter }));
        const expected = withLines(text.replace(/^\ufeff/, ""), delimiter);
        // A cell may end with a part of the delimiter, so that a quote after it does not begin a cell.
        if (expected === null) await expect(found).rejects.toThrow("is not valid CSV");
        else expect((await found).map((cells) => ({ cells, line: placeOf(cells)?.row }))).toEqual(expected);
      },
    ),
    {
      numRuns: 150,
      examples: [[[["|", '"a,b"', ""]], "||", "\n", false, 0]],
    },
  );
});

/** Null: csv-parse refuses the text. */
function withLines(text: string, delimiter: string) {
  const rows: { cells: string[]; line: number }[] = [];
  let breaks = 0;
  let skipped = 0;
  const onRecord = (cells: string[], info: Info) => {
    skipped = info.empty_lines;
    rows.push({ cells, line: rows.length + 1 + skipped + breaks });
    breaks += cells.join("").split("\n").length - 1;
    return null;
  };
  try {
    parse(text, { delimiter, relax_column_count: true, skip_empty_lines: true, on_record: onRecord });
  } catch (thrown) {
    if (thrown instanceof CsvError && thrown.code === "INVALID_OPENING_QUOTE") return null;
    throw thrown;
  }
  return rows;
}
