/** A gateway as the program sees it that it is a part of: its state, and commands. */
import type { Registry } from "prom-client";
import type { Ledger } from "./ledger/ledger.ts";
import { placedAt } from "./operation-rows.ts";
import { countUnresolved, type HealthPart } from "./operations/state-of-work.ts";
import type { OperatorQueries } from "./operations-api.ts";
import type { PlacedReading } from "./spool/placed-readings.ts";
import type { Spool } from "./spool/spool.ts";

export interface GatewayView {
  readonly metrics: Registry;
  /** The state of each part, with the reason. */
  health(): Promise<readonly HealthPart[]>;
  /** Files that need a person. */
  needAttention(): Promise<number>;
  /** The readings of an operation at a date, with their rows, as far as the spool has them. */
  placedAt(operationId: string, atMs: number): Promise<readonly PlacedReading[]>;
  /** Gives up a run, as `headgate cancel` does. Throws `RejectedError` when there is nothing left to cancel. */
  cancel(run: string, by: string, why: string): Promise<unknown>;
}

export function gatewayView(
  metrics: Registry,
  queries: Pick<OperatorQueries, "health" | "command">,
  { ledger, spool }: { readonly ledger: Ledger; readonly spool: Pick<Spool, "root"> },
): GatewayView {
  return {
    metrics,
    health: () => queries.health(),
    needAttention: () => countUnresolved(ledger),
    placedAt: (operationId, atMs) => placedAt(operationId, atMs, { ledger, spool }),
    cancel: (run, by, why) => queries.command({ order: "cancel", run, by, why }),
  };
}
