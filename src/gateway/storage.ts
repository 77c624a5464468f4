/** Opens the spool, and tells how full it is. */
import type { Registry } from "prom-client";
import type { GatewayConfig } from "../config/gateway-config.ts";
import type { Ledger } from "../ledger/ledger.ts";
import { heldRuns } from "../operations/held-runs.ts";
import { measureSpool } from "../operations/spool-state.ts";
import { openSpool, type Spool } from "../runs/spool.ts";
import { SpoolRoom } from "../runs/spool-room.ts";
import type { Clock } from "../support/clock.ts";
import type { Logger } from "../support/log.ts";

export interface Storage {
  readonly spool: Spool;
  readonly room: SpoolRoom;
}

export async function openStorage(
  options: GatewayConfig["spool"],
  {
    metrics,
    ledger,
    ...means
  }: {
    readonly clock: Clock;
    readonly log: Logger;
    readonly metrics: Registry;
    readonly ledger: Pick<Ledger, "runsIn" | "shared">;
  },
): Promise<Storage> {
  const spool = await openSpool(options);
  const { shared } = ledger;
  const room = new SpoolRoom(spool.root, options, {
    ...means,
    held: () => heldRuns(ledger),
    shared: shared === null ? null : () => shared.intake.allLyingBytes(),
  });
  measureSpool(metrics, room);
  return { spool, room };
}
