/** Opens the ledger that the configuration names. */
import type { Clock } from "../support/clock.ts";
import type { Logger } from "../support/log.ts";
import type { Ledger } from "./ledger.ts";
import type { LedgerOptions } from "./options.ts";
import { openSqliteLedger } from "./sqlite/open.ts";

export interface LedgerMeans {
  readonly clock: Clock;
  readonly log?: Logger;
  /** Beside a running gateway, for commands that only look: needs no lock, and every change is refused. */
  readonly readOnly?: boolean;
}

/** `ConfigError` when it is in use, missing (read-only), of a newer version, or no ledger at all. */
export function openLedger(options: LedgerOptions, means: LedgerMeans): Promise<Ledger> {
  return openSqliteLedger({ path: options.path, ...means });
}
