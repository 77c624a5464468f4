/** Finds which triggers of services cannot work here, and why. */

import { wordsOf } from "#core/errors.ts";
import type { Logger } from "#core/log.ts";
import { type SharedQuery, shareQuery } from "#core/shared-query.ts";
import type { MapperCatalogue } from "#mapping/contract.ts";
import { withSourceZone } from "#mapping/settings.ts";
import type { ListedTriggers, UnusableTrigger } from "./operations/attention.ts";
import type { ServiceTrigger } from "./triggers/bound.ts";
import type { Trigger } from "./triggers/registry.ts";
import type { ServiceTriggerState } from "./triggers/service-triggers.ts";

/** A mapper may be added or corrected at any time. */
const CHECK_EVERY_MS = 30_000;

export interface TriggerMeans {
  readonly catalogue: Pick<MapperCatalogue, "find">;
  /** The gateway is inside a hub, which applies master data and knows the zones of its sources. */
  readonly isInsideHub: boolean;
}

/** Why a trigger cannot work as its service has it; null when it can. */
export async function triggerFault(
  { trigger, fault }: Pick<ServiceTrigger, "trigger" | "fault">,
  means: TriggerMeans,
): Promise<string | null> {
  if (trigger === null) return fault;
  return means.isInsideHub && trigger.structure === true ? null : mapperFault(trigger, means);
}

async function mapperFault(trigger: Trigger, { catalogue, isInsideHub }: TriggerMeans): Promise<string | null> {
  try {
    const mapper = await catalogue.find(trigger.mapper);
    if (mapper === null) return trigger.origin?.unbound ?? `there is no mapper ${trigger.mapper}`;
    const settings = isInsideHub ? withSourceZone(mapper, trigger.metadata) : trigger.metadata;
    const fault = await mapper.checkSettings(settings);
    return fault === null ? null : `the mapper ${trigger.mapper} refuses its metadata: ${fault}`;
  } catch (thrown) {
    return `the mapper ${trigger.mapper} cannot be used: ${wordsOf(thrown)}`;
  }
}

export class TriggerReport {
  readonly #states: () => readonly ServiceTriggerState[];
  /** By services. */
  readonly #unusable: SharedQuery<ReadonlyMap<string, readonly UnusableTrigger[]>>;
  readonly #logged = new Set<string>();

  constructor(states: () => readonly ServiceTriggerState[], means: TriggerMeans, log: Logger) {
    this.#states = states;
    this.#unusable = shareQuery(async () => {
      const found = new Map<string, readonly UnusableTrigger[]>();
      for (const { service, triggers } of states()) {
        const unusable = await unusableOf(triggers, means);
        for (const one of unusable) this.#log(one, log);
        found.set(service, unusable);
      }
      return found;
    });
  }

  /** The triggers may have changed. */
  async check(): Promise<void> {
    await this.#unusable.next();
  }

  async states(): Promise<readonly ListedTriggers[]> {
    const unusable = await this.#unusable.within(CHECK_EVERY_MS);
    // The lists are as they are now, which costs nothing: a gateway is ready as soon as they are known.
    return this.#states().map(({ triggers, ...state }) => ({
      ...state,
      count: triggers.length,
      unusable: unusable.get(state.service) ?? [],
    }));
  }

  #log({ trigger, reason }: UnusableTrigger, log: Logger): void {
    const key = `${trigger} ${reason}`;
    if (this.#logged.has(key)) return;
    this.#logged.add(key);
    log.warn({ trigger }, `the trigger ${trigger} cannot be used: ${reason}`);
  }
}

async function unusableOf(
  triggers: readonly ServiceTrigger[],
  means: TriggerMeans,
): Promise<readonly UnusableTrigger[]> {
  const unusable: UnusableTrigger[] = [];
  for (const one of triggers) {
    const reason = one.isOff ? null : await triggerFault(one, means);
    if (reason !== null) unusable.push({ trigger: one.name, reason });
  }
  return unusable;
}
