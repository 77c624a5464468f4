/** Opens the spool, and tells how full it is. */
import type { Registry } from "prom-client";
import type { GatewayConfig } from "../config/gateway-config.ts";
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
  { metrics, ...means }: { readonly clock: Clock; readonly log: Logger; readonly metrics: Registry },
): Promise<Storage> {
  const spool = await openSpool(options);
  const room = new SpoolRoom(spool.root, options, means);
  measureSpool(metrics, room);
  return { spool, room };
}
