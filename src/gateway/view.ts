/** A gateway as the program sees it that it is a part of: its state, and commands. */
import type { Registry } from "prom-client";
import type { Ledger } from "../ledger/ledger.ts";
import { countUnresolved, type HealthPart } from "../operations/state-of-work.ts";
import type { OperatorQueries } from "./operations-api.ts";

export interface GatewayView {
  readonly metrics: Registry;
  /** The state of each part, with the reason. */
  health(): Promise<readonly HealthPart[]>;
  /** Files that need a person. */
  needAttention(): Promise<number>;
  /** Gives up a run, as `headgate cancel` does. Throws `RejectedError` when there is nothing left to cancel. */
  cancel(run: string, by: string, why: string): Promise<unknown>;
}

export function gatewayView(
  metrics: Registry,
  queries: Pick<OperatorQueries, "health" | "command">,
  ledger: Ledger,
): GatewayView {
  return {
    metrics,
    health: () => queries.health(),
    needAttention: () => countUnresolved(ledger),
    cancel: (run, by, why) => queries.command({ order: "cancel", run, by, why }),
  };
}
