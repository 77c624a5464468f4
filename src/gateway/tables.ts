/** The tables that runs are bound to. */

import type { Clock } from "#core/clock.ts";
import type { GatewayConfig } from "./config.ts";
import type { InnerGateway } from "./inner.ts";
import type { Ledger } from "./ledger/ledger.ts";
import { type LookupStore, openLookupStore } from "./runs/lookups.ts";
import { SourceZones } from "./runs/source-zones.ts";

export interface Tables {
  readonly lookups: LookupStore;
  /** Null for a gateway that is not inside a hub. */
  readonly zones: SourceZones | null;
}

export async function openTables(
  { lookups: configured }: Pick<GatewayConfig, "lookups">,
  spoolRoot: string,
  parts: {
    readonly clock: Clock;
    readonly ledger: Pick<Ledger, "shared">;
    readonly inner: Pick<InnerGateway, "zoneTables"> | undefined;
  },
): Promise<Tables> {
  const { clock, ledger, inner } = parts;
  const lookups = await openLookupStore(configured, spoolRoot, clock, ledger.shared?.content);
  return { lookups, zones: inner === undefined ? null : new SourceZones(inner.zoneTables, lookups, clock) };
}
