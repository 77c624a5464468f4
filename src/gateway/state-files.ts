/**
 * Protects the ledger, the spool and the files beside them: they hold keys, file contents and names that no other
 * user may read.
 */

import type { Logger } from "#core/log.ts";
import { filesOf, logNarrowed, narrowModes } from "#core/private-files.ts";
import type { GatewayConfig } from "./config.ts";
import { ledgerFile } from "./ledger/options.ts";

/** Called before any of these files is opened. Throws `ConfigError` when a mode is too wide and cannot be changed. */
export function protectState({ ledger, spool }: Pick<GatewayConfig, "ledger" | "spool">, log: Logger): void {
  const places = [ledgerFile(ledger), spool.path].filter((path) => path !== null);
  logNarrowed(narrowModes(places.flatMap(filesOf)), log);
}
