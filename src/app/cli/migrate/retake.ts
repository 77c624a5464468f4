/**
 * Before a migration takes files: what is recorded of files that were only touched, and files that a wrong setting held
 * or refused are taken again with the current settings.
 */

import { systemClock } from "#core/clock.ts";
import { silentLog } from "#core/log.ts";
import type { GatewayConfig } from "#gateway/config.ts";
import type { Ledger } from "#gateway/ledger/ledger.ts";
import { isLedgerMissing, openLedger } from "#gateway/ledger/open.ts";
import type { Standing } from "#gateway/migration/plan/history-files.ts";
import { allRuns } from "#gateway/migration/report/delivered.ts";
import { executeCommand, type OperatorCommand } from "#gateway/runs/commands.ts";
import { Pauses } from "#gateway/runs/pauses.ts";
import { openSpool } from "#gateway/spool/spool.ts";
import { runStatesThat } from "#gateway/states.ts";
import { bindingParts } from "../command-client.ts";

/** Not delivered, until a person changes something: held, and refused. */
const REMAPPED = runStatesThat(({ needsAttention, next }) => needsAttention && next.includes("cancelled"));

/** Returns how many files are taken again. `remap`: all that are held or refused, not only those that were touched. */
export async function retake(
  own: GatewayConfig,
  { touched, replaced, files }: Standing,
  { remap, by }: { readonly remap: boolean; readonly by: string },
): Promise<number> {
  if (isLedgerMissing(own.ledger) || (touched.length + replaced.length === 0 && !remap)) return 0;
  const ledger = await openLedger(own.ledger, { clock: systemClock });
  try {
    for (const { arrivalId, mtime } of touched) await ledger.recordTouched(arrivalId, mtime);
    const spool = await openSpool(own.spool);
    const binding = await bindingParts(own, spool.root, ledger);
    const pauses = await Pauses.read(ledger);
    const parts = { ledger, spool, binding, pauses, log: silentLog, isRemoved: async () => false };
    const perform = (asked: OperatorCommand) => executeCommand(asked, parts);
    // The file of another time is listed as another arrival, which its held version would be a duplicate of.
    for (const run of replaced) await perform({ order: "cancel", run, by, why: "its file was replaced or touched" });
    const runs = remap ? await remappable(ledger, files) : [];
    const again = { order: "replay", rejectedOnly: false, overwrite: false, by, why: "migrate --remap" } as const;
    for (const run of runs) await perform({ ...again, run });
    return replaced.length + runs.length;
  } finally {
    await ledger.close();
  }
}

/** The latest runs of files that are still as they were; one that changed is taken again anyway. */
async function remappable(ledger: Ledger, files: Standing["files"]): Promise<readonly string[]> {
  const listed = new Map(files.map(({ drop, path, size, mtime }) => [`${drop}\n${path}`, `${size} ${mtime}`]));
  const found: string[] = [];
  for await (const { id, arrivalId, drop, path, size, mtime } of allRuns(ledger, REMAPPED)) {
    const latest = await ledger.runOf(arrivalId);
    const there = listed.get(`${drop}\n${path.split("!/")[0] ?? path}`);
    const isEntry = path.includes("!/");
    if (latest?.id === id && there !== undefined && (isEntry || there === `${size} ${mtime}`)) found.push(id);
  }
  return found;
}
