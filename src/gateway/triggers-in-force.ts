/** Joins the triggers of the configuration's file and those of services, in the order of the file. */

import type { Registry } from "prom-client";
import type { Clock } from "#core/clock.ts";
import { wordsOf } from "#core/errors.ts";
import type { Logger } from "#core/log.ts";
import type { MapperCatalogue } from "#mapping/contract.ts";
import { createCatalogue } from "#mapping/workers/catalogue.ts";
import type { OpenMapping } from "#mapping/workers/open.ts";
import type { Closer } from "./closers.ts";
import { type GatewayConfig, isInsideHub } from "./config.ts";
import type { DropRegistry } from "./drops.ts";
import type { InnerGateway } from "./inner.ts";
import type { Ledger } from "./ledger/ledger.ts";
import type { GatewayTrigger, LiveConfig } from "./live-config.ts";
import { type ListedTriggers, measureTriggers } from "./operations/attention.ts";
import type { Scheduler } from "./runs/scheduler.ts";
import { TriggerReport } from "./trigger-report.ts";
import { createRegistry, type RegistryEntry, type TriggerRegistry } from "./triggers/registry.ts";
import { type ServiceTriggerState, ServiceTriggers, type TriggerSource } from "./triggers/service-triggers.ts";
import type { ServiceTriggersParts } from "./triggers/source-watch.ts";

export function triggerSources(config: GatewayConfig): readonly TriggerSource[] {
  const { services, serviceTriggers, push } = config;
  // The account of the hub that the gateway is inside is the same at any address of that hub.
  const isOfHub = isInsideHub(config);
  return serviceTriggers.flatMap(({ position: _, ...rule }) => {
    const access = services.find(({ name }) => name === rule.service);
    if (access === undefined) return [];
    return [{ rule, access, timeouts: push.timeouts, ...(isOfHub ? { keptAs: `${access.name} of the hub` } : {}) }];
  });
}

/** `triggers`: those that can claim files; `entries`: also those whose files are not known. */
export function joinTriggers(
  { triggers: own, serviceTriggers }: Pick<GatewayConfig, "triggers" | "serviceTriggers">,
  stateOf: (service: string) => ServiceTriggerState | undefined,
): { readonly triggers: readonly GatewayTrigger[]; readonly entries: readonly RegistryEntry[] } {
  const entries: (GatewayTrigger | Exclude<RegistryEntry, { mapper: string }>)[] = [];
  for (let position = 0; position <= own.length; position += 1) {
    for (const { service, guard, drops, ...source } of serviceTriggers) {
      if (source.position !== position) continue;
      const state = stateOf(service);
      if (state === undefined || state.listedAt === null) entries.push({ ...unknownEntry(service, state), drops });
      else
        for (const { name, trigger, fault, isOff } of state.triggers) {
          if (trigger !== null) entries.push({ ...trigger, guard });
          else if (!isOff) entries.push({ name, unknown: fault ?? "", blocks: false, drops });
        }
    }
    const next = own[position];
    if (next !== undefined) entries.push(next);
  }
  return { entries, triggers: entries.filter((entry) => "mapper" in entry) };
}

function unknownEntry(service: string, state: ServiceTriggerState | undefined) {
  const reason = state?.fault === null || state === undefined ? "" : `: ${state.fault}`;
  const unknown = `they are not known yet${reason}; the file is offered to them when they are`;
  return { name: `triggers of the service ${service}`, unknown, blocks: true };
}

export interface OfferParts {
  readonly drops: Pick<DropRegistry, "watchers">;
  readonly mapping: Pick<OpenMapping, "start">;
  readonly scheduler: Pick<Scheduler, "triggersChanged">;
  readonly log: Logger;
}

/** Offers unmatched files to the triggers, which changed, and checks held runs again. */
export function offerFiles(triggers: readonly GatewayTrigger[], parts: OfferParts): void {
  const { drops, mapping, scheduler, log } = parts;
  // Loading a mapper for the first time may take long; its callers wait for it where they need it.
  const offer = async () => {
    await mapping.start(triggers.map((trigger) => trigger.mapper));
    for (const watcher of drops.watchers()) await watcher.rematch();
    scheduler.triggersChanged();
  };
  offer().catch((thrown) =>
    log.warn({ err: thrown }, `files are not offered to the new triggers yet: ${wordsOf(thrown)}`),
  );
}

/** Reads the triggers of services; the kept ones are in force when it resolves. */
export async function openTriggers(
  live: LiveConfig,
  {
    ledger,
    inner,
    metrics,
    ...own
  }: {
    readonly ledger: Ledger;
    readonly clock: Clock;
    readonly log: Logger;
    readonly metrics: { readonly registry: Registry };
    readonly inner: Pick<InnerGateway, "mintOf"> | undefined;
  },
  closers: Closer[],
): Promise<TriggersInForce> {
  // A list that another hub kept may be older than what this one has read from itself.
  const recheckMs = inner === undefined ? ledger.fleet.recheckMs : null;
  const catalogue = createCatalogue(live.config.mappers.folders);
  const mintOf = (service: string) => inner?.mintOf(service);
  const triggers = new TriggersInForce(live, catalogue, { ...own, lists: ledger.triggerLists, recheckMs, mintOf });
  closers.push(() => Promise.all([triggers.services.close(), catalogue.close()]));
  measureTriggers(metrics.registry, () => triggers.listed());
  triggers.configure();
  await triggers.services.restored();
  return triggers;
}

/** The triggers in force, which change with the file and with those of the services. */
export class TriggersInForce {
  readonly services: ServiceTriggers;
  readonly #live: LiveConfig;
  readonly registry: TriggerRegistry;
  readonly #report: TriggerReport;
  #offer: OfferParts | null = null;

  constructor(
    live: LiveConfig,
    catalogue: Pick<MapperCatalogue, "find">,
    parts: Omit<ServiceTriggersParts, "onChange">,
  ) {
    this.#live = live;
    // The drops of a gateway inside a hub are its accounts.
    this.registry = createRegistry([], { walled: isInsideHub(live.file()) });
    const means = { catalogue, isInsideHub: isInsideHub(live.file()) };
    this.#report = new TriggerReport(() => this.services.states(), means, parts.log);
    this.services = new ServiceTriggers({ ...parts, onChange: () => this.#changed() });
  }

  /** From now on, unmatched files are offered to the triggers again whenever those of a service change. */
  offerTo(parts: OfferParts): void {
    this.#offer = parts;
  }

  /** The triggers of services, for people. */
  listed(): Promise<readonly ListedTriggers[]> {
    return this.#report.states();
  }

  /** Applies the configuration's file as it is now. */
  configure(): void {
    this.services.configure(triggerSources(this.#live.file()));
    this.#apply();
    this.#check();
  }

  #changed(): void {
    this.#apply();
    this.#check();
    if (this.#offer !== null) offerFiles(this.#live.config.triggers, this.#offer);
  }

  #check(): void {
    this.#report.check().catch(() => undefined); // `listed` reports it.
  }

  #apply(): void {
    const { triggers, entries } = joinTriggers(this.#live.file(), (service) => this.services.state(service));
    this.#live.setTriggers(triggers);
    this.registry.replace(entries);
  }
}
