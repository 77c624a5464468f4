/** The files of a migration with their states, and the configuration that excludes some of them. */
import type { GatewayConfig } from "../../config/gateway-config.ts";
import { createDrop } from "../../drops/create.ts";
import { isLedgerMissing, openLedger } from "../../ledger/open.ts";
import { systemClock } from "../../support/clock.ts";
import { silentLog } from "../../support/log.ts";
import { type HistoryFile, listHistory, type Standing, standingOf } from "./history-files.ts";

/** The files, and their states in the ledger of an earlier call. */
export async function listStanding(own: GatewayConfig, stop: AbortSignal): Promise<Standing> {
  const drops = await Promise.all(own.drops.map((options) => createDrop(options, { log: silentLog })));
  try {
    const files = await listHistory(drops, stop);
    if (isLedgerMissing(own.ledger)) return standingOf(files, null);
    const ledger = await openLedger(own.ledger, { clock: systemClock, readOnly: true });
    try {
      return await standingOf(files, ledger);
    } finally {
      await ledger.close();
    }
  } finally {
    for (const drop of drops) await drop.close();
  }
}

/** Returns the configuration with patterns that exclude these files. */
export function without(own: GatewayConfig, skipped: readonly HistoryFile[]): GatewayConfig {
  if (skipped.length === 0) return own;
  return {
    ...own,
    drops: own.drops.map((drop) => ({
      ...drop,
      exclude: [
        ...drop.exclude,
        ...skipped.filter((file) => file.drop === drop.name).map(({ path }) => asPattern(path)),
      ],
    })),
  };
}

/** A pattern that matches this path alone. */
function asPattern(path: string): string {
  return path.replace(/[*?[\]{}!()]/g, "[$&]");
}
