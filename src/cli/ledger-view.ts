/** Opens a gateway's ledger beside the running daemon, to read. */
import { existsSync } from "node:fs";
import { type GatewayConfig, loadGatewayConfig } from "../config/gateway-config.ts";
import type { Ledger } from "../ledger/ledger.ts";
import { openLedger } from "../ledger/open.ts";
import { systemClock } from "../support/clock.ts";
import { ConfigError } from "../support/errors.ts";

export async function openLedgerToRead(
  configPath: string,
): Promise<{ ledger: Ledger; config: GatewayConfig }> {
  const config = loadGatewayConfig(configPath);
  if (config.ledger.kind === "sqlite" && !existsSync(config.ledger.path)) {
    throw new ConfigError("HG-CLI-003", {
      operation: "open ledger",
      subject: config.ledger.path,
      message: "there is no ledger yet: no gateway has run with this configuration",
    });
  }
  return { ledger: await openLedger(config.ledger, { clock: systemClock, readOnly: true }), config };
}
