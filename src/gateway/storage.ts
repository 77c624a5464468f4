/** Opens the spool, and reports how full it is. */
import type { Registry } from "prom-client";
import type { Clock } from "#core/clock.ts";
import type { Logger } from "#core/log.ts";
import type { GatewayConfig } from "./config.ts";
import type { Ledger } from "./ledger/ledger.ts";
import { heldRuns } from "./operations/held-runs.ts";
import { measureSpool } from "./operations/spool-state.ts";
import { SpoolQuota } from "./spool/quota.ts";
import { openSpool, type Spool } from "./spool/spool.ts";

export interface Storage {
  readonly spool: Spool;
  readonly quota: SpoolQuota;
}

/** The caller closes the spool, and with it the quota. */
export async function openStorage(
  options: GatewayConfig["spool"],
  {
    metrics,
    ledger,
    onRun,
    ...rest
  }: {
    readonly clock: Clock;
    readonly log: Logger;
    readonly metrics: { readonly registry: Registry };
    readonly ledger: Pick<Ledger, "runsIn" | "shared">;
    /** Called for a run that the spool had no space for and may have now. */
    readonly onRun: (id: string) => void;
  },
): Promise<Storage> {
  const spool = await openSpool(options);
  const { shared } = ledger;
  const quota = new SpoolQuota(spool.root, options, {
    ...rest,
    held: () => heldRuns(ledger),
    onSpace: (ids) => {
      for (const id of ids) onRun(id);
    },
    shared: shared === null ? null : () => shared.intake.allWaitingBytes(),
  });
  measureSpool(metrics.registry, quota);
  return { spool: releasing(spool, quota), quota };
}

/** Releases quota when files leave the spool. */
function releasing(spool: Spool, quota: SpoolQuota): Spool {
  const freeing =
    <Args extends readonly unknown[], Value>(work: (...args: Args) => Promise<Value>) =>
    (...args: Args) =>
      work(...args).finally(() => quota.freed());
  return {
    ...spool,
    retire: freeing(spool.retire),
    discard: freeing(spool.discard),
    close() {
      quota.close();
      return spool.close();
    },
  };
}
