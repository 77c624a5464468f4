/** Opens the ledger that the configuration names. */
import type { LedgerEvent } from "../model.ts";
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
