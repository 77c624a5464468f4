/** The triggers of services as the ledger keeps them, for commands beside the gateway or without one. */

import { systemClock } from "#core/clock.ts";
import type { GatewayConfig } from "#gateway/config.ts";
import type { Ledger } from "#gateway/ledger/ledger.ts";
import { isLedgerMissing, openLedger } from "#gateway/ledger/open.ts";
import type { GatewayTrigger } from "#gateway/live-config.ts";
import type { RegistryEntry } from "#gateway/triggers/registry.ts";
import { keptTriggers, type ServiceTriggerState } from "#gateway/triggers/service-triggers.ts";
import { joinTriggers, triggerSources } from "#gateway/triggers-in-force.ts";

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
