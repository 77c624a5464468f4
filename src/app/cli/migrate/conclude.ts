/** Reports the end of a migration: the report, the summary, and the exit code. */

import { join } from "node:path";
import { systemClock } from "#core/clock.ts";
import { commonText, counted, grouped, noun } from "#core/text.ts";
import type { GatewayConfig } from "#gateway/config.ts";
import type { Ledger } from "#gateway/ledger/ledger.ts";
import { isInDelivered } from "#gateway/migration/plan/findings.ts";
import { deliveredRuns } from "#gateway/migration/report/delivered.ts";
import { Expectation } from "#gateway/migration/report/expectation.ts";
import { type Difference, type Reconciliation, reconcile } from "#gateway/migration/report/reconciliation.ts";
import { standingsOf } from "#gateway/migration/report/report.ts";
import { type KnownMigration, writeReport } from "#gateway/migration/report/reports.ts";
import type { Ended } from "#gateway/migration/run/run.ts";
import { openStore } from "#gateway/migration/store.ts";
import type { StructureResult } from "#gateway/migration/structure/structure.ts";
import type { Run, Summary } from "#gateway/model.ts";
import { openSpool } from "#gateway/spool/spool.ts";
import { print, printConcern, printJson, printTable, styled, summaryLine } from "../output.ts";
import { printFindings } from "./plan-table.ts";
import { printStructure, weightyWords } from "./structure-table.ts";

export interface ConcludeOptions {
  readonly verify?: boolean;
  readonly json?: boolean;
}

const CHECK_EVERY_MS = 1_000;
/** A longer comparison reports its progress in these intervals. */
const PRINT_EVERY_MS = 5_000;
/** After this many equal comparisons in a row, nothing more is being stored. */
const EQUAL_CHECKS = 4;

const SHOWN = 30;

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

// `--verify`: compares the stored readings with the accepted ones.

/**
 * `service` null: the only one. The service stores after it responded, so that a difference is compared again for a
 * while.
 */
async function verify(
  config: GatewayConfig,
  service: string | null,
  ledger: Ledger,
  folder: string,
  signal: AbortSignal,
  say: (line: string) => void,
): Promise<Reconciliation> {
  const store = openStore(config, service);
  const expectation = new Expectation(join(folder, "reconcile.sqlite"));
  try {
    const spool = await openSpool(config.spool);
    let nextMs = systemClock.monotonicMs() + PRINT_EVERY_MS;
    const onRun = (_run: Run, nth: number) => {
      if (systemClock.monotonicMs() < nextMs) return;
      nextMs = systemClock.monotonicMs() + PRINT_EVERY_MS;
      say(`verifying: the readings of ${grouped(nth)} files are added up`);
    };
    const gone = await expectation.collect(deliveredRuns(ledger), { ledger, spool }, undefined, onRun);
    const unknown = gone.map(({ id }) => id);
    for (let alike = 1, before = ""; ; ) {
      const found = await reconcile(expectation, store, signal);
      const differences = JSON.stringify(found.differences);
      alike = differences === before ? alike + 1 : 1;
      before = differences;
      if (found.differences.length === 0 || alike === EQUAL_CHECKS || signal.aborted) return { ...found, unknown };
      await systemClock.sleep(CHECK_EVERY_MS, signal);
    }
  } finally {
    expectation.close();
    await store.close();
  }
}

/** `findings`: how many causes were found in the files themselves, which the service stores unchanged. */
function printReconciliation(
  { targets, points, superseded, months, differences, unknown }: Reconciliation,
  findings = 0,
): void {
  const readings = `${grouped(points)} ${noun(points, "reading")}`;
  const what = `${readings} of ${counted(targets, "target")} in ${counted(months, "month")} compared`;
  const replaced =
    superseded === 0 ? "" : `; ${counted(superseded, "was", "were")} replaced by later rows of the same date`;
  if (differences.length === 0 && findings > 0) {
    const words = `verified: ${what}, stored as the files say; these have ${counted(findings, "finding")}${replaced}`;
    print(styled("yellow", words));
  } else if (differences.length === 0) print(styled("green", `verified: ${what}, no difference${replaced}`));
  else print(styled("red", `verified: ${what}, ${counted(differences.length, "differs", "differ")}${replaced}`));
  const causes = [...Map.groupBy(differences, ({ reason }) => commonText(reason)).values()];
  if (causes.length > 0)
    printTable(
      ["  target", "month", "mapped", "stored", "likely reason"],
      causes.slice(0, SHOWN).flatMap(([first, ...others]) => (first === undefined ? [] : [causeRow(first, others)])),
    );
  if (causes.length > SHOWN) print(`  … and ${causes.length - SHOWN} more reasons, in the report`);
  for (const run of unknown) print(`  run ${run} could not be compared: its batches are no longer kept`);
}

/** The first month of one reason, with the number of the others. */
function causeRow(first: Difference, others: readonly Difference[]): readonly string[] {
  const targets = new Set([first, ...others].map(({ target }) => target)).size;
  const more =
    others.length === 0 ? "" : `; and ${counted(others.length, "more month")} of ${counted(targets, "target")}`;
  const { target, from, expected, stored, reason } = first;
  return [`  ${target}`, from.slice(0, 7), tallyWords(expected), tallyWords(stored), `${reason}${more}`];
}

function tallyWords({ count, sum }: Difference["expected"]): string {
  return `${count} (sum ${Number(sum.toPrecision(12))})`;
}
