/** How fast readings went to the service when they were sent before, from the ledgers of migrations. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { openLedger } from "../../ledger/open.ts";
import type { Sending } from "../../migration/estimating.ts";
import { pushRateOf } from "../../migration/push-rate.ts";
import { systemClock } from "../../support/clock.ts";
import type { KnownMigration } from "./reports.ts";

/** Of the first that tells. */
export async function measuredBefore(
  migrations: readonly Pick<KnownMigration, "id" | "folder">[],
): Promise<Sending["measured"]> {
  for (const { id, folder } of migrations) {
    const path = join(folder, "ledger.sqlite");
    if (!existsSync(path)) continue;
    const options = { kind: "sqlite", path, keep: Number.MAX_SAFE_INTEGER } as const;
    const ledger = await openLedger(options, { clock: systemClock, readOnly: true });
    try {
      const pointsPerSecond = await pushRateOf(ledger);
      if (pointsPerSecond !== null) return { pointsPerSecond, migration: id };
    } finally {
      await ledger.close();
    }
  }
  return null;
}
