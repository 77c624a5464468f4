/** Joins the drops, their watchers and what the HTTP intakes ask of the rest. */
import type { GatewayConfig } from "../config/gateway-config.ts";
import { createDrop } from "../drops/create.ts";
import type { IntakeFacts } from "../drops/intake/intake.ts";
import { Watcher, type WatcherFacts } from "../drops/watcher.ts";
import type { Pauses } from "../runs/pauses.ts";
import type { DropPost } from "../runs/steps.ts";
import type { Clock } from "../support/clock.ts";
import type { TriggerRegistry } from "../triggers/registry.ts";
import type { Closer } from "./closers.ts";

export function createDrops(
  config: GatewayConfig,
  facts: Parameters<typeof createDrop>[1],
  closers: Closer[],
): ReadonlyMap<string, DropPost> {
  const drops = new Map<string, DropPost>();
  for (const options of config.drops) {
    const drop = createDrop(options, facts);
    closers.push(() => drop.close());
    drops.set(options.name, { drop, finish: options.finish, duplicates: options.duplicates });
  }
  return drops;
}

export function createWatchers(
  config: GatewayConfig,
  drops: ReadonlyMap<string, DropPost>,
  {
    pauses,
    ...facts
  }: Pick<WatcherFacts, "journal" | "claim" | "clock" | "log"> & { readonly pauses: Pauses },
): readonly Watcher[] {
  return config.drops.flatMap((options) => {
    const drop = drops.get(options.name)?.drop;
    const paused = () => pauses.reason("drop", options.name);
    return drop === undefined ? [] : [new Watcher({ drop, options, paused, ...facts })];
  });
}

export function intakeFacts(
  config: GatewayConfig,
  parts: { readonly registry: TriggerRegistry; readonly clock: Clock; readonly spool: string },
): IntakeFacts {
  return {
    spool: parts.spool,
    clock: parts.clock,
    defaultService: config.services[0]?.name ?? "",
    accountOf: (service) => config.services.find(({ name }) => name === service)?.account,
    refusalOf: (token, service, drop) => {
      const { claimed } = parts.registry.claim("", "SendViaHttp", drop, { service, token });
      return claimed === null ? `no trigger of ${service} that fires has the token ${token}` : null;
    },
  };
}

/** The drops that senders connect to. */
export async function openIntakes(
  drops: ReadonlyMap<string, DropPost>,
): Promise<Readonly<Record<string, string>>> {
  const urls: Record<string, string> = {};
  for (const [name, { drop }] of drops) {
    const url = await drop.open?.();
    if (url !== undefined) urls[name] = url;
  }
  return urls;
}
