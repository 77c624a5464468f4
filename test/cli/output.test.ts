import { describe, expect, it } from "vitest";
import { shown, sizeWords, summaryLine, withReadableTime } from "#app/cli/output.ts";
import { placeWords } from "#core/text.ts";

describe("the summary line", () => {
  it("shows how many files ended in which state, and the outcome of the points", () => {
    const line = summaryLine({
      files: { delivered: 5, quarantined: 1, unmatched: 1 },
      points: { mapped: 12345, accepted: 12345, stored: 12345, rejected: 0 },
      drops: {},
    });
    expect(line).toBe(
      "files 7: 5 delivered, 1 quarantined, 1 unmatched · points 12345 mapped, 12345 " +
        "accepted, 12345 stored, 0 rejected",
    );
  });

  it("shows that there were no files", () => {
    expect(summaryLine({ files: {}, points: { mapped: 0, accepted: 0, stored: 0, rejected: 0 }, drops: {} })).toBe(
      "files 0 · points 0 mapped, 0 accepted, 0 stored, 0 rejected",
    );
  });
});

describe("a readable text", () => {
  it.each([
    [0, "0 B"],
    [999, "999 B"],
    [1_000, "1.0 KB"],
    [52_231, "52 KB"],
    [4_200_000_000, "4.2 GB"],
  ])("shows %d bytes as %s", (bytes, words) => expect(sizeWords(bytes)).toBe(words));

  it("shows a place as far as it is known", () => {
    expect(placeWords({ sheet: "Export", row: 43, column: "value" })).toBe("sheet Export, row 43, column value: ");
    expect(placeWords({ row: 43 })).toBe("row 43: ");
    expect(placeWords({ row: 2, column: "column 3" })).toBe("row 2, column 3: ");
    expect(placeWords(undefined)).toBe("");
  });
});

describe("times of files in events", () => {
  it.each([
    ["a.csv, 5 bytes, time 1795236524972665825", "a.csv, 5 bytes, time 2026-11-21T"],
    ["time 1795236524, later", "time 2026-11-21T"],
    ["time 1795236524972", "time 2026-11-21T"],
  ])("are shown as instants, whatever their unit: %s", (detail, told) => {
    expect(withReadableTime(detail)).toContain(told);
  });

  it.each(["time 20260301001500", "time 5", "time Mar 1 00:15", "time 2026-03-01T00:15:00Z"])(
    "stay in the server's format where they are not such a number: %s",
    (detail) => expect(withReadableTime(detail)).toBe(detail),
  );
});

describe("text on a terminal", () => {
  it("keeps colours and line breaks, and no control character that would control the terminal", () => {
    const text = "\u001b[31mred\u001b[39m\n\tin/a\u001b[2Jb\u0007\u009bc.csv";
    expect(shown(text, { isTTY: true })).toBe("\u001b[31mred\u001b[39m\n\tin/a\\x1B[2Jb\\x07\\x9Bc.csv");
    expect(shown(text, {})).toBe(text);
  });
});
