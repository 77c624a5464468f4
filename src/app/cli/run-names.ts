/** Finds runs by the names that people use: their ids, or a file, which means its latest run. */

import { RejectedError } from "#core/errors.ts";
import type { GatewayConfig } from "#gateway/config.ts";
import type { Ledger } from "#gateway/ledger/ledger.ts";
import type { Run } from "#gateway/model.ts";
import { openLedgerToRead } from "./ledger/ledger-view.ts";
import { findFiles } from "./trace.ts";

/** Files of one name that are searched for runs. */
const FILES_MAX = 50;
const SHOWN = 20;

/** Opens the ledger of the configuration. */
export async function withLedger<T>(configPath: string, work: (ledger: Ledger) => Promise<T>): Promise<T> {
  const { ledger } = await openLedgerToRead(configPath);
  try {
    return await work(ledger);
  } finally {
    await ledger.close();
  }
}

/**
 * Finds all of them or throws, so that nothing is done when one is missing. Throws `RejectedError` for a name that
 * matches no run, or several files.
 */
export function findRuns(
  names: readonly string[],
  operation: string,
  configPath: string,
  config: GatewayConfig,
): Promise<readonly Run[]> {
  return withLedger(configPath, async (ledger) => {
    const found: Run[] = [];
    for (const name of names) found.push(await findRun(name, operation, ledger, config));
    return found;
  });
}

async function findRun(name: string, operation: string, ledger: Ledger, config: GatewayConfig): Promise<Run> {
  const run = await ledger.run(name);
  if (run !== null) return run;
  const { files, total } = await findFiles(name, ledger, config, FILES_MAX);
  const latest = files.flatMap(({ runs }) => {
    const last = runs.at(-1)?.run;
    return last === undefined || last.binding.unpack !== undefined ? [] : [last];
  });
  const [only] = latest;
  if (only !== undefined && latest.length === 1) return only;
  const facts = { operation, subject: name };
  if (only === undefined)
    throw new RejectedError("HG-CLI-002", { ...facts, message: `the ledger knows no run or file ${name}` });
  throw new RejectedError("HG-CLI-002", {
    ...facts,
    message: `${total} files have this name: ${latest
      .slice(0, SHOWN)
      .map(({ id, path, drop, createdAt }) => `${path} at ${drop} of ${createdAt} (run ${id})`)
      .join(", ")}${latest.length > SHOWN ? ", …" : ""}`,
    hint: "Name the runs.",
  });
}
