/** The report of a migration as a workbook, read back by our reader and by exceljs. */
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import exceljs from "exceljs";
import { expect, it } from "vitest";
import { writeWorkbook } from "#core/workbook-writer.ts";
import type { MigrationReport, ReportedFile } from "#gateway/migration/report/report.ts";
import { writeReportWorkbook } from "#gateway/migration/report/workbook.ts";
import { collect, openFile, temporaryFolder } from "../mapping/kit.ts";

function reportedFile(nth: number, facts: Partial<ReportedFile> = {}): ReportedFile {
  return {
    ...{
      drop: "history",
      path: `2025/${nth}.csv`,
      run: `r${nth}`,
      state: "confirmed",
      mapped: 31,
      accepted: 31,
    },
    ...{ rejected: 0, refused: 0, reason: null, operations: 1 },
    ...facts,
  };
}

const REPORT: MigrationReport = {
  id: "3f2a000000",
  patterns: ["/history/*.csv"],
  mapper: "standard",
  madeAt: "2026-03-01T08:00:00Z",
  startedAt: "2026-03-01T07:00:00Z",
  endedAt: "2026-03-01T07:30:00Z",
  files: [
    reportedFile(1),
    reportedFile(2, {
      path: "=1+1 <&> Zähler\u0000.csv",
      state: "quarantined",
      accepted: 0,
      reason: "x".repeat(40_000),
    }),
  ],
  points: { mapped: 62, accepted: 31, rejected: 0 },
  timeline: [],
  coverage: null,
  refusals: [{ reason: "a blank value", rows: 3, files: 1 }],
  findings: [
    {
      ...{ kind: "gap", files: ["a.csv", "b.csv"], targets: ["meter A"], words: "two days are missing" },
      ...{ count: 1, places: ["two days are missing"], needsPerson: false, isInformation: false },
    },
  ],
  empty: [],
  reconciliation: {
    ...{ targets: 1, points: 31, superseded: 0, months: 1, stored: 30, unknown: [] },
    differences: [
      {
        ...{ target: "variable 7", variableId: 7, from: "2025-01-01T00:00:00Z", to: "2025-02-01T00:00:00Z" },
        ...{ expected: { count: 31, sum: 12.5 }, stored: { count: 30, sum: 12 } },
        reason: "one reading is missing",
      },
    ],
  },
  reconciledAt: "2026-03-01T07:45:00Z",
};

async function bookAt(path: string) {
  return (await openFile(await readFile(path), "report.xlsx")).file;
}

it("contains summary, files, differences, refusals and findings, equal to the page and the JSON", async () => {
  const folder = await temporaryFolder();
  const path = join(folder, "report.xlsx");
  await writeReportWorkbook(REPORT, path);
  expect(await readdir(folder)).toEqual(["report.xlsx"]);
  const book = await bookAt(path);
  expect(await book.sheets()).toEqual(["Summary", "Files", "Differences", "Refused rows", "Findings"]);
  const facts = await collect(book.xlsx({ sheet: "Summary" }));
  const summary = Object.fromEntries(facts.map(([name, value]) => [name, value]));
  expect(summary).toMatchObject({
    migration: "3f2a000000",
    "report made at (UTC)": { kind: "date", local: "2026-03-01T08:00:00" },
    files: 2,
    "files delivered": 1,
    differences: 1,
  });
  const [first, second] = await collect(book.xlsx({ sheet: "Files", columns: true }));
  expect(first).toMatchObject({
    path: "2025/1.csv",
    state: "confirmed",
    "points accepted": 31,
    reason: null,
  });
  expect(second).toMatchObject({ path: "=1+1 <&> Zähler\ufffd.csv", reason: "x".repeat(32_767) });
  expect(await collect(book.xlsx({ sheet: "Differences", columns: true }))).toEqual([
    {
      target: "variable 7",
      "variable id": 7,
      "from (UTC)": { kind: "date", local: "2025-01-01T00:00:00" },
      "to (UTC)": { kind: "date", local: "2025-02-01T00:00:00" },
      "readings mapped": 31,
      "readings stored": 30,
      "sum mapped": 12.5,
      "sum stored": 12,
      "likely reason": "one reading is missing",
    },
  ]);
  expect(await collect(book.xlsx({ sheet: "Findings" }))).toContainEqual([
    ...["gap", "no", 1, "two days are missing", "meter A", "a.csv, b.csv"],
  ]);
});

it("opens in exceljs, with texts that look like formulas as texts", async () => {
  const path = join(await temporaryFolder(), "report.xlsx");
  await writeReportWorkbook(REPORT, path);
  const book = new exceljs.Workbook();
  await book.xlsx.readFile(path);
  const cell = book.getWorksheet("Files")?.getCell("B3");
  expect(cell?.type).toBe(exceljs.ValueType.String);
  expect(book.getWorksheet("Files")?.getCell("D2").numFmt).toBe("#,##0");
});

it("continues in a further sheet when a sheet is full, and replaces a file only when it is complete", async () => {
  const path = join(await temporaryFolder(), "long.xlsx");
  const columns = [{ name: "nth", width: 8 }];
  const rows = Array.from({ length: 25 }, (_, nth) => [nth]);
  await writeWorkbook([{ name: "Files", columns, rows }], path, 10);
  const sizes: number[] = [];
  for (const sheet of ["Files", "Files 2", "Files 3"])
    sizes.push((await collect((await bookAt(path)).xlsx({ sheet }))).length);
  expect(sizes).toEqual([11, 11, 6]);
  const failing = (function* () {
    yield [1];
    throw new Error("no more rows");
  })();
  await expect(writeWorkbook([{ name: "Files", columns, rows: failing }], path)).rejects.toThrow("no more rows");
  expect(await (await bookAt(path)).sheets()).toEqual(["Files", "Files 2", "Files 3"]);
  const elsewhere = join(path, "..", "absent", "report.xlsx");
  await expect(writeReportWorkbook(REPORT, elsewhere)).rejects.toMatchObject({ code: "ENOENT" });
});
