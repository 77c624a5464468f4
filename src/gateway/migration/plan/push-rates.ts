/** The rate of earlier pushes to the service, from the ledgers of migrations. */

import { existsSync } from "node:fs";
import { systemClock } from "#core/clock.ts";
import { openLedger } from "../../ledger/open.ts";
import type { KnownMigration } from "../report/reports.ts";
import { migrationLedger } from "../request.ts";
import type { Sending } from "./estimate.ts";
import { pushRateOf } from "./push-rate.ts";

/** The rate of the first ledger that has one. */
export async function measuredBefore(
  migrations: readonly Pick<KnownMigration, "id" | "folder">[],
): Promise<Sending["measured"]> {
  for (const { id, folder } of migrations) {
    const place = migrationLedger(folder);
    if (!existsSync(place.path)) continue;
    const ledger = await openLedger(place, { clock: systemClock, readOnly: true });
    try {
      const pointsPerSecond = await pushRateOf(ledger);
      if (pointsPerSecond !== null) return { pointsPerSecond, migration: id };
    } finally {
      await ledger.close();
    }
  }
  return null;
}
