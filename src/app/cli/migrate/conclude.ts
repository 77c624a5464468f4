/** Reports the end of a migration: the report, the summary, and the exit code. */
import type { GatewayConfig } from "#gateway/config.ts";
import type { Ledger } from "#gateway/ledger/ledger.ts";
import { isInDelivered } from "#gateway/migration/plan/findings.ts";
import { standingsOf } from "#gateway/migration/report/report.ts";
import { type KnownMigration, writeReport } from "#gateway/migration/report/reports.ts";
import type { Ended } from "#gateway/migration/run/run.ts";
import type { StructureResult } from "#gateway/migration/structure/structure.ts";
import type { Summary } from "#gateway/model.ts";
import { print, printConcern, printJson, summaryLine } from "../output.ts";
import { printFindings } from "./plan-table.ts";
import { printReconciliation, verify } from "./reconciliation.ts";
import { printStructure, weightyWords } from "./structure-table.ts";

export interface ConcludeOptions {
  readonly verify?: boolean;
  readonly json?: boolean;
}

/** Reports the result, and returns the exit code. */
export async function conclude(
  migration: KnownMigration,
  own: GatewayConfig,
  options: ConcludeOptions,
  {
    how,
    ledger,
    summary,
    concerns: ofFiles,
    pausedBecause,
    structure,
    empty,
  }: Ended & { readonly empty: readonly string[] } & {
    readonly ledger: Ledger;
    readonly structure: StructureResult | null;
  },
  stop: AbortSignal,
): Promise<number> {
  const { id, order, folder } = migration;
  const found =
    how === "done" && options.verify === true
      ? await verify(own, order.service, ledger, folder, stop, sayOf(options))
      : null;
  const written = await writeReport(migration, ledger, found, empty);
  const { findings } = written.report;
  const people = findings.filter(({ needsPerson }) => needsPerson);
  const others = [...ofFiles, ...weightyWords(structure)];
  for (const concern of [...people.map(({ words }) => words), ...others]) printConcern(concern);
  if (found !== null && options.json !== true) printReconciliation(found, findings.filter(isInDelivered).length);
  if (options.json !== true) printFindings(findings.filter(({ needsPerson }) => !needsPerson));
  // No outcome is awaited: the stored readings are known when the service was compared.
  const stored = found?.stored ?? null;
  const points = { ...summary.points, ...written.report.points };
  const files = { ...standingsOf(written.report), ...settlingOf(summary) };
  if (options.json === true)
    printJson({
      id,
      how,
      ...(pausedBecause === null ? {} : { pausedBecause }),
      ...summary,
      files,
      points: { ...points, stored },
      ...(structure === null ? {} : { structure }),
      findings,
      report: written.page,
      ...(found === null ? {} : { verified: found }),
    });
  else {
    if (structure !== null) printStructure(structure);
    if (how !== "done") print(resumeWords(how, pausedBecause, migration));
    print(`report: ${written.page}`);
    print(summaryLine({ ...summary, files, points: { ...points, stored: stored ?? 0 } }, stored !== null));
  }
  // A file that no trigger claims is no failure of the migration.
  const isFailed = others.length > 0 || people.some(({ kind }) => kind !== "unclaimed");
  const isProven = found === null || (found.differences.length === 0 && found.unknown.length === 0);
  return how === "done" && !isFailed && isProven ? 0 : 1;
}

/** Files that wait at their drop have no other facts yet. */
function settlingOf({ files: { settling } }: Summary): Summary["files"] {
  return settling === undefined ? {} : { settling };
}

function resumeWords(how: Ended["how"], because: string | null, { id, folder }: KnownMigration): string {
  return how === "paused"
    ? `paused: ${because}. Check the report; the same command resumes and counts from zero, with another ` +
        `--pause-on-errors or none (migration ${id}, ${folder})`
    : `stopped; the same command resumes it (migration ${id}, ${folder})`;
}

/** Where the result goes to standard output as JSON, other lines go to standard error. */
export function sayOf({ json }: Pick<ConcludeOptions, "json">): (line: string) => void {
  return json === true ? (line) => void process.stderr.write(`${line}\n`) : print;
}
