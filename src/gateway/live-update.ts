/**
 * Applies another configuration while the gateway runs. Services, drops and triggers are exchanged one by one; the
 * ledger, the spool, the operations API and all unchanged parts stay open. A change of the other sections needs a new
 * gateway (`reload.ts`).
 */
import { isDeepStrictEqual } from "node:util";
import type { Logger } from "#core/log.ts";
import type { OpenMapping } from "#mapping/workers/open.ts";
import type { GatewayConfig } from "./config.ts";
import type { DropRegistry } from "./drops.ts";
import type { FleetMember } from "./fleet.ts";
import type { LiveConfig } from "./live-config.ts";
import type { Scheduler } from "./runs/scheduler.ts";
import type { ServiceRegistry } from "./services.ts";
import { offerFiles, type TriggersInForce } from "./triggers-in-force.ts";

export type Exchange =
  | { readonly status: "exchanged"; readonly changed: readonly string[] }
  /** `sections` names those that cannot be exchanged. */
  | { readonly status: "assemble"; readonly sections: readonly string[] };

export interface ExchangedParts {
  readonly live: LiveConfig;
  readonly drops: DropRegistry;
  readonly fleet: Pick<FleetMember, "dropsChanged">;
  readonly services: ServiceRegistry;
  readonly scheduler: Scheduler;
  readonly triggers: Pick<TriggersInForce, "configure">;
  readonly mapping: Pick<OpenMapping, "start">;
  readonly log: Logger;
}

/** Sections that are exchanged, or are read each time they are needed. Any other section needs a new gateway. */
const EXCHANGED: readonly (keyof GatewayConfig)[] = [
  "services",
  "drops",
  "triggers",
  "serviceTriggers",
  "push",
  "held",
  "log",
];

const TRIGGER_SECTIONS = ["triggers", "serviceTriggers"] as const;

/** Throws the `ConfigError` of a drop that cannot be opened; all parts are then as before. */
export async function exchangeParts(next: GatewayConfig, parts: ExchangedParts): Promise<Exchange> {
  const { live, drops, fleet, services, scheduler, triggers, mapping, log } = parts;
  const sections = changedSections(live.file(), next);
  const others = sections.filter((section) => !EXCHANGED.includes(section));
  if (others.length > 0) return { status: "assemble", sections: others };

  const before = live.file();
  const change = drops.changeTo(next.drops);
  const touched = [...change.removed, ...change.added.map(({ name }) => name)];
  if (touched.length > 0) await scheduler.withDropsPaused(touched, () => drops.exchange(change));
  live.replace(next);
  if (touched.length > 0) fleet.dropsChanged();
  triggers.configure();
  const changed = services.configure(next);
  scheduler.servicesChanged(changed, next.push.concurrency);

  const sameTriggers = TRIGGER_SECTIONS.every((section) => isDeepStrictEqual(before[section], next[section]));
  if (!sameTriggers || before.services[0]?.name !== next.services[0]?.name || touched.length > 0)
    offerFiles(live.config.triggers, { drops, mapping, scheduler, log });
  return {
    status: "exchanged",
    changed: [
      ...changed.map((name) => `service ${name}`),
      ...new Set(touched.map((name) => `drop ${name}`)),
      ...(sameTriggers ? [] : ["triggers"]),
      ...sections.filter((section) => section === "push" || section === "held" || section === "log"),
    ],
  };
}

function changedSections(before: GatewayConfig, next: GatewayConfig): readonly (keyof GatewayConfig)[] {
  const sections = Object.keys(next) as (keyof GatewayConfig)[];
  return sections.filter((section) => !isDeepStrictEqual(before[section], next[section]));
}
