/** Opens a gateway's ledger read-only, beside the running daemon. */

import { join } from "node:path";
import { systemClock } from "#core/clock.ts";
import { ConfigError, invalidOption } from "#core/errors.ts";
import { type GatewayConfig, requireResolved } from "#gateway/config.ts";
import type { Ledger } from "#gateway/ledger/ledger.ts";
import { isLedgerMissing, ledgerWords, openLedger } from "#gateway/ledger/open.ts";
import { loadOperatedConfig } from "../operated-config.ts";

export async function openLedgerToRead(configPath: string): Promise<{ ledger: Ledger; config: GatewayConfig }> {
  const config = await loadOperatedConfig(configPath);
  requireLedger(config);
  return { ledger: await openLedger(config.ledger, { clock: systemClock, readOnly: true }), config };
}

/** Throws `ConfigError` where no gateway has run yet. */
export function requireLedger(config: GatewayConfig): void {
  requireResolved(config, "ledger", "spool");
  if (!isLedgerMissing(config.ledger)) return;
  throw new ConfigError("HG-CLI-003", {
    operation: "open ledger",
    subject: ledgerWords(config.ledger),
    message: "there is no ledger yet: no gateway has run with this configuration",
  });
}

/** A ledger, and the places of the files that it knows. */
export interface LedgerView {
  readonly ledger: Ledger;
  /** In words. */
  readonly owner: string;
  readonly spool: string;
  readonly drops: GatewayConfig["drops"];
}

/** Opens the ledger of the gateway and those of its migrations except one, one after the other; there may be none. */
export async function searchLedgers(
  config: GatewayConfig,
  look: (view: LedgerView) => Promise<void>,
  except?: string,
): Promise<void> {
  const { ledger, spool, drops } = config;
  const [{ historyDrops }, { knownMigrations }, { isUrl, migrationLedger }] = await Promise.all([
    import("#gateway/migration/plan/sources.ts"),
    import("#gateway/migration/report/reports.ts"),
    import("#gateway/migration/request.ts"),
  ]);
  const own = { place: ledger, owner: "the gateway", spool: spool.path, drops };
  const others = (await knownMigrations(spool.path)).filter(({ id }) => id !== except);
  const migrations = others.map(({ id, folder, order }) => ({
    place: migrationLedger(folder),
    owner: `migration ${id}`,
    spool: join(folder, "spool"),
    // Files of servers are known by their names only.
    drops: [
      ...historyDrops(
        order.patterns.filter((pattern) => !isUrl(pattern)),
        [],
      ),
    ],
  }));
  for (const { place, ...view } of [own, ...migrations]) {
    if (isLedgerMissing(place)) continue;
    const opened = await openLedger(place, { clock: systemClock, readOnly: true });
    try {
      await look({ ...view, ledger: opened });
    } finally {
      await opened.close();
    }
  }
}

/** `--limit` */
export function limitOption(text: string): number {
  const count = Number(text);
  if (Number.isInteger(count) && count > 0) return count;
  throw invalidOption("--limit", `${text} is not a whole number above 0`);
}
