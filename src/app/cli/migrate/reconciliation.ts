/** `--verify`: compares the stored readings with the accepted ones. */

import { join } from "node:path";
import { systemClock } from "#core/clock.ts";
import { commonText } from "#core/common-text.ts";
import { counted, grouped, noun } from "#core/grouped-number.ts";
import type { GatewayConfig } from "#gateway/config.ts";
import type { Ledger } from "#gateway/ledger/ledger.ts";
import { deliveredRuns } from "#gateway/migration/report/delivered.ts";
import { Expectation } from "#gateway/migration/report/expectation.ts";
import { type Difference, type Reconciliation, reconcile } from "#gateway/migration/report/reconciliation.ts";
import { openStore } from "#gateway/migration/store.ts";
import type { Run } from "#gateway/model.ts";
import { openSpool } from "#gateway/spool/spool.ts";
import { print, printTable, styled } from "../output.ts";

const CHECK_EVERY_MS = 1_000;
/** A longer comparison reports its progress in these intervals. */
const PRINT_EVERY_MS = 5_000;
/** After this many equal comparisons in a row, nothing more is being stored. */
const EQUAL_CHECKS = 4;

/**
 * `service` null: the only one. The service stores after it responded, so that a difference is compared again for a
 * while.
 */
export async function verify(
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

const SHOWN = 30;

/** `findings`: how many causes were found in the files themselves, which the service stores unchanged. */
export function printReconciliation(
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
