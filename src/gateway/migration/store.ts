/** The service of a migration, to read and to remove stored readings. */

import { systemClock } from "#core/clock.ts";
import { ConfigError } from "#core/errors.ts";
import { ServiceClient } from "#wire/client/index.ts";
import type { GatewayConfig } from "../config.ts";
import { TargetResolver } from "../delivery/targets.ts";
import type { StoreReader } from "./report/reconciliation.ts";
import type { StoreRemover } from "./undo/undo.ts";

export interface OpenStore extends StoreReader, StoreRemover {
  readonly client: ServiceClient;
  close(): Promise<void>;
}

/** `service` null: the only one. Throws `ConfigError` when there is none of that name. */
export function openStore(config: GatewayConfig, service: string | null): OpenStore {
  const options = config.services.find(({ name }) => service === null || name === service);
  if (options === undefined)
    throw new ConfigError("HG-CLI-001", {
      operation: "open service",
      subject: service ?? "",
      message: `there is no service ${service} in the configuration`,
    });
  const client = new ServiceClient(options, {
    connections: 2,
    timeouts: config.push.timeouts,
    clock: systemClock,
  });
  const targets = new TargetResolver(client, systemClock, config.push.guard.remember);
  return {
    client,
    async resolve(asked, signal) {
      const meanings = await targets.resolve(asked, signal);
      return new Map([...meanings].map(([words, one]) => [words, one.kind === "none" ? null : one.variable]));
    },
    postData: (query, signal) => client.postData(query, signal),
    deleteData: (query, signal) => client.deleteData(query, signal),
    async close() {
      targets.close();
      await client.close();
    },
  };
}
