/** Opens the spool, and tells how full it is. */
import type { Registry } from "prom-client";
import type { GatewayConfig } from "../config/gateway-config.ts";
import type { Ledger } from "../ledger/ledger.ts";
import { heldRuns } from "../operations/held-runs.ts";
import { measureSpool } from "../operations/spool-state.ts";
import { SpoolRoom } from "../spool/quota.ts";
import { openSpool, type Spool } from "../spool/spool.ts";
import type { Clock } from "../support/clock.ts";
import type { Logger } from "../support/log.ts";

export interface Storage {
  readonly spool: Spool;
  readonly room: SpoolRoom;
}

/** Who calls it closes the spool, and so the room with it. */
export async function openStorage(
  options: GatewayConfig["spool"],
  {
    metrics,
    ledger,
    onRun,
    ...means
  }: {
    readonly clock: Clock;
    readonly log: Logger;
    readonly metrics: { readonly registry: Registry };
    readonly ledger: Pick<Ledger, "runsIn" | "shared">;
    /** Of a run for which the spool had no room, and may have it now. */
    readonly onRun: (id: string) => void;
  },
): Promise<Storage> {
  const spool = await openSpool(options);
  const { shared } = ledger;
  const room = new SpoolRoom(spool.root, options, {
    ...means,
    held: () => heldRuns(ledger),
    onRoom: (ids) => {
      for (const id of ids) onRun(id);
    },
    shared: shared === null ? null : () => shared.intake.allLyingBytes(),
  });
  measureSpool(metrics.registry, room);
  return { spool: telling(spool, room), room };
}

/** What leaves the spool makes room. */
function telling(spool: Spool, room: SpoolRoom): Spool {
  const freeing =
    <Args extends readonly unknown[]>(work: (...args: Args) => Promise<void>) =>
    (...args: Args) =>
      work(...args).finally(() => room.freed());
  return {
    ...spool,
    retire: freeing(spool.retire),
    retireTogether: freeing(spool.retireTogether),
    discard: freeing(spool.discard),
    close() {
      room.close();
      return spool.close();
    },
  };
}
