/** `--verify`: compares the stored readings with the accepted ones. */

import { join } from "node:path";
import type { GatewayConfig } from "../../config/gateway-config.ts";
import type { Ledger } from "../../ledger/ledger.ts";
import type { PlanFinding } from "../../migration/plan/plan.ts";
import { deliveredRuns } from "../../migration/report/delivered.ts";
import { Expectation } from "../../migration/report/expectation.ts";
import { type Difference, type Reconciliation, reconcile } from "../../migration/report/reconciliation.ts";
import { openStore } from "../../migration/store.ts";
import type { Run } from "../../model.ts";
import { openSpool } from "../../spool/spool.ts";
import { systemClock } from "../../support/clock.ts";
import { counted, grouped, noun } from "../../support/grouped-number.ts";
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

/** `findings`: findings about the files, which the service stores unchanged. */
export function printReconciliation(
  { targets, points, superseded, months, differences, unknown }: Reconciliation,
  findings: readonly PlanFinding[] = [],
): void {
  const readings = `${grouped(points)} ${noun(points, "reading")}`;
  const what = `${readings} of ${counted(targets, "target")} in ${counted(months, "month")} compared`;
  const replaced =
    superseded === 0 ? "" : `; ${counted(superseded, "was", "were")} replaced by later rows of the same date`;
  if (differences.length === 0 && findings.length > 0) {
    print(
      styled(
        "yellow",
        `verified: ${what}, stored as the files say; these have ${counted(findings.length, "finding")}${replaced}`,
      ),
    );
    for (const { kind, words } of findings.slice(0, SHOWN)) print(`  ${kind}: ${words}`);
  } else if (differences.length === 0) print(styled("green", `verified: ${what}, no difference${replaced}`));
  else print(styled("red", `verified: ${what}, ${counted(differences.length, "differs", "differ")}${replaced}`));
  if (differences.length > 0)
    printTable(
      ["  target", "month", "mapped", "stored", "likely reason"],
      differences
        .slice(0, SHOWN)
        .map((one) => [
          `  ${one.target}`,
          one.from.slice(0, 7),
          tallyWords(one.expected),
          tallyWords(one.stored),
          one.reason,
        ]),
    );
  if (differences.length > SHOWN) print(`  … and ${differences.length - SHOWN} more, in the report`);
  for (const run of unknown) print(`  run ${run} could not be compared: its batches are no longer kept`);
}

function tallyWords({ count, sum }: Difference["expected"]): string {
  return `${count} (sum ${Number(sum.toPrecision(12))})`;
}
