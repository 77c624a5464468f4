/** Opens the ledger that the configuration names. */
import type { LedgerEvent } from "../model.ts";
import type { Clock } from "../support/clock.ts";
import type { Logger } from "../support/log.ts";
import type { Ledger } from "./ledger.ts";
import type { LedgerOptions } from "./options.ts";
import { backupSqliteLedger, type LedgerCopy, type Restored, restoreSqliteLedger } from "./sqlite/backup.ts";
import { openSqliteLedger } from "./sqlite/open.ts";

export interface LedgerMeans {
  readonly clock: Clock;
  readonly log?: Logger;
  /** Beside a running gateway, for commands that only look: needs no lock, and every change is refused. */
  readonly readOnly?: boolean;
  /** Told of each event after it was committed. */
  readonly onEvent?: (event: LedgerEvent & { readonly drop: string; readonly path: string }) => void;
}

/** `ConfigError` when it is in use, missing (read-only), of a newer version, or no ledger at all. */
export function openLedger(
  options: Pick<LedgerOptions, "kind" | "path">,
  means: LedgerMeans,
): Promise<Ledger> {
  return openSqliteLedger({ path: options.path, ...means });
}

/** A consistent copy, also while a gateway writes the ledger. */
export function backupLedger(options: Pick<LedgerOptions, "kind" | "path">, to: string): Promise<LedgerCopy> {
  return backupSqliteLedger(options.path, to);
}

/** Puts a copy in the place of the ledger, which is kept beside. `ConfigError` while a gateway owns it. */
export function restoreLedger(
  options: Pick<LedgerOptions, "kind" | "path">,
  from: string,
  clock: Clock,
): Promise<Restored> {
  return restoreSqliteLedger(options.path, from, clock);
}
