/** The triggers of services as the ledger keeps them, for commands beside the gateway or without one. */
import type { GatewayConfig } from "../config/gateway-config.ts";
import type { GatewayTrigger } from "../gateway/live-config.ts";
import { joinTriggers, triggerSources } from "../gateway/triggers-in-force.ts";
import type { Ledger } from "../ledger/ledger.ts";
import { isLedgerMissing, openLedger } from "../ledger/open.ts";
import { systemClock } from "../support/clock.ts";
import type { RegistryEntry } from "../triggers/registry.ts";
import { keptTriggers, type ServiceTriggerState } from "../triggers/service-triggers.ts";

export interface TriggersKnown {
  readonly triggers: readonly GatewayTrigger[];
  /** Also those that are not known, or malformed. */
  readonly entries: readonly RegistryEntry[];
  readonly services: readonly ServiceTriggerState[];
}

/** Of the file and of services; the ledger is opened only where there is an entry `from: service`. */
export async function knownTriggers(config: GatewayConfig): Promise<TriggersKnown> {
  if (config.serviceTriggers.length === 0 || isLedgerMissing(config.ledger)) return joined(config, []);
  const ledger = await openLedger(config.ledger, { clock: systemClock, readOnly: true });
  try {
    return await triggersOf(config, ledger);
  } finally {
    await ledger.close();
  }
}

export async function triggersOf(config: GatewayConfig, ledger: Pick<Ledger, "triggerLists">): Promise<TriggersKnown> {
  const services: ServiceTriggerState[] = [];
  for (const source of triggerSources(config)) services.push(await keptTriggers(ledger.triggerLists, source));
  return joined(config, services);
}

export function joined(config: GatewayConfig, services: readonly ServiceTriggerState[]): TriggersKnown {
  const { triggers, entries } = joinTriggers(config, (name) => services.find(({ service }) => service === name));
  return { triggers, entries, services };
}
