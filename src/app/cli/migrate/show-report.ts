/** `headgate migrate report`: writes the report again, and says where it is. */

import { resolve } from "node:path";
import { ConfigError, systemCode } from "#core/errors.ts";
import { counted } from "#core/grouped-number.ts";
import { remakeReport } from "#gateway/migration/report/reports.ts";
import { writeReportWorkbook } from "#gateway/migration/report/workbook.ts";
import { print, printJson } from "../output.ts";
import { printFindings } from "./plan-table.ts";

export interface ReportOptions {
  /** Also as a workbook; the file is replaced. */
  readonly xlsx?: string;
  readonly json?: boolean;
}

export async function showReport(spool: string, id: string, options: ReportOptions): Promise<number> {
  const { report, page } = await remakeReport(spool, id);
  const workbook = options.xlsx === undefined ? null : resolve(options.xlsx);
  if (workbook !== null) await writeReportWorkbook(report, workbook).catch(cannotWrite(workbook));
  if (options.json === true) {
    printJson(report);
    return 0;
  }
  for (const { by, begunAt, endedAt, points } of report.undone)
    print(
      endedAt === null
        ? `being undone since ${begunAt} by ${by}: ${counted(points, "point")} removed`
        : `undone at ${endedAt} by ${by}: ${counted(points, "point")} removed`,
    );
  printFindings(report.findings);
  print(`report: ${page}`);
  if (workbook !== null) print(`workbook: ${workbook}`);
  return 0;
}

function cannotWrite(path: string) {
  return (cause: unknown): never => {
    if (systemCode(cause) === undefined) throw cause;
    throw new ConfigError("HG-MIGR-005", { operation: "write workbook", subject: path, cause });
  };
}
