/**
 * The report of a migration as a workbook, for people who sort and filter it in a spreadsheet: all files and all
 * differences.
 */
import { type WorkbookCell, type WorkbookTable, writeWorkbook } from "#core/workbook-writer.ts";
import { deliveredFiles, type MigrationReport } from "./report.ts";

const COUNT = "#,##0";

export async function writeReportWorkbook(report: MigrationReport, path: string): Promise<void> {
  await writeWorkbook(tablesOf(report), path);
}

function tablesOf(report: MigrationReport): readonly WorkbookTable[] {
  return [
    summaryTable(report),
    filesTable(report),
    differencesTable(report),
    refusalsTable(report),
    findingsTable(report),
    structureTable(report),
  ].filter((table) => table !== null);
}

function summaryTable(report: MigrationReport): WorkbookTable {
  const { files, points, coverage, reconciliation, findings, undone = [] } = report;
  const rows: (readonly [string, WorkbookCell])[] = [
    ["migration", report.id],
    ["files from", report.patterns.join(" ")],
    ["mapper", report.mapper ?? "the configured triggers"],
    ["report made at (UTC)", utc(report.madeAt)],
    ["delivered from (UTC)", instant(report.startedAt)],
    ["delivered to (UTC)", instant(report.endedAt)],
    ["files", files.length],
    ["files delivered", deliveredFiles(report)],
    ["points mapped", points.mapped],
    ["points accepted", points.accepted],
    ["points rejected", points.rejected],
    ["operations", files.reduce((sum, { operations }) => sum + operations, 0)],
    ["targets", coverage?.targets ?? 0],
    ["findings", findings.length],
    ["compared with the service at (UTC)", instant(report.reconciledAt)],
    ["differences", reconciliation === null ? "not compared" : reconciliation.differences.length],
    ["runs that could not be compared", reconciliation?.unknown.length ?? null],
    ...undone.flatMap(({ begunAt, endedAt, by, points: removed }): (readonly [string, WorkbookCell])[] => [
      ["undo began at (UTC)", utc(begunAt)],
      ["undo ended at (UTC)", instant(endedAt)],
      ["undone by", by],
      ["points removed", removed],
    ]),
  ];
  return {
    name: "Summary",
    columns: [
      { name: "fact", width: 36 },
      { name: "value", width: 40 },
    ],
    rows,
  };
}

function filesTable({ files }: MigrationReport): WorkbookTable {
  return {
    name: "Files",
    columns: [
      { name: "drop", width: 14 },
      { name: "path", width: 50 },
      { name: "state", width: 14 },
      { name: "points mapped", width: 14, format: COUNT },
      { name: "points accepted", width: 15, format: COUNT },
      { name: "points rejected", width: 15, format: COUNT },
      { name: "rows refused", width: 13, format: COUNT },
      { name: "operations", width: 11, format: COUNT },
      { name: "run", width: 30 },
      { name: "reason", width: 80 },
    ],
    rows: files
      .values()
      .map((file) => [
        ...[file.drop, file.path, file.state, file.mapped, file.accepted, file.rejected],
        ...[file.refused, file.operations, file.run, file.reason],
      ]),
  };
}

function differencesTable({ reconciliation }: MigrationReport): WorkbookTable | null {
  if (reconciliation === null) return null;
  return {
    name: "Differences",
    columns: [
      { name: "target", width: 40 },
      { name: "variable id", width: 12 },
      { name: "from (UTC)", width: 20 },
      { name: "to (UTC)", width: 20 },
      { name: "readings mapped", width: 16, format: COUNT },
      { name: "readings stored", width: 16, format: COUNT },
      { name: "sum mapped", width: 16 },
      { name: "sum stored", width: 16 },
      { name: "likely reason", width: 80 },
    ],
    rows: reconciliation.differences
      .values()
      .map((one) => [
        ...[one.target, one.variableId, utc(one.from), utc(one.to)],
        ...[one.expected.count, one.stored.count, one.expected.sum, one.stored.sum, one.reason],
      ]),
  };
}

function refusalsTable({ refusals }: MigrationReport): WorkbookTable {
  return {
    name: "Refused rows",
    columns: [
      { name: "reason", width: 80 },
      { name: "rows", width: 10, format: COUNT },
      { name: "files", width: 10, format: COUNT },
    ],
    rows: refusals.values().map(({ reason, rows, files }) => [reason, rows, files]),
  };
}

function findingsTable({ findings }: MigrationReport): WorkbookTable {
  return {
    name: "Findings",
    columns: [
      { name: "kind", width: 12 },
      { name: "needs a person", width: 14 },
      { name: "places", width: 10, format: COUNT },
      { name: "finding", width: 80 },
      { name: "targets", width: 40 },
      { name: "files", width: 60 },
    ],
    rows: findings
      .values()
      .map(({ kind, needsPerson, count, words, targets, files }) => [
        ...[kind, needsPerson ? "yes" : "no", count, words],
        ...[shortened(targets), shortened(files)],
      ]),
  };
}

/** A cell holds so many characters. */
const CELL_MAX = 32_000;

function shortened(names: readonly string[]): string {
  const text = names.join(", ");
  return text.length <= CELL_MAX ? text : `${text.slice(0, CELL_MAX)} …`;
}

function structureTable({ structure }: MigrationReport): WorkbookTable | null {
  if (structure === undefined) return null;
  return {
    name: "Structure",
    columns: [
      { name: "kind", width: 12 },
      { name: "name", width: 40 },
      { name: "id", width: 10 },
      { name: "for", width: 40 },
      { name: "created (UTC)", width: 20 },
      { name: "removed (UTC)", width: 20 },
      { name: "removed by", width: 16 },
    ],
    rows: structure.created
      .values()
      .map(({ entity, name, id, target, at, removed }) => [
        ...[entity, name, id, target, utc(at)],
        ...[instant(removed?.at ?? null), removed?.by ?? null],
      ]),
  };
}

function utc(iso: string): Date {
  return new Date(iso);
}

function instant(iso: string | null): Date | null {
  return iso === null ? null : utc(iso);
}
