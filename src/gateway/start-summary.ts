/** The summary that a started gateway writes as one line of the log. */

import { packageVersion } from "#core/package/version.ts";
import type { GatewayConfig } from "./config.ts";
import { ledgerWords } from "./ledger/open.ts";

export function startSummary(config: GatewayConfig, configFile: string | undefined) {
  return {
    version: packageVersion(),
    ...(configFile === undefined ? {} : { config: configFile }),
    drops: config.drops.map(({ name, kind }) => `${name} (${kind})`),
    triggers: config.triggers.map(({ name, mapper, state }) =>
      state === "Active" || state === "Updated" ? `${name} (${mapper})` : `${name} (${mapper}, ${state})`,
    ),
    services: config.services.map(({ name, base }) => `${name} (${new URL(base).host})`),
    ledger: ledgerWords(config.ledger),
    spool: config.spool.path,
  };
}
