/** The state of a gateway for the program that it is a part of. */
import type { Registry } from "prom-client";
import type { Ledger } from "../ledger/ledger.ts";
import { countUnresolved, type HealthPart } from "../operations/state-of-work.ts";

export interface GatewayView {
  readonly metrics: Registry;
  /** The state of each part, with the reason. */
  health(): Promise<readonly HealthPart[]>;
  /** Files that need a person. */
  needAttention(): Promise<number>;
}

export function gatewayView(metrics: Registry, queries: Pick<GatewayView, "health">, ledger: Ledger): GatewayView {
  return { metrics, health: () => queries.health(), needAttention: () => countUnresolved(ledger) };
}
