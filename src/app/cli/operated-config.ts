/** The gateway that a command works on: that of a gateway.yaml, or the one inside the hub of a hub.yaml. */
import { dirname, resolve } from "node:path";
import type { Option } from "commander";
import { z } from "zod";
import { documentOf, kindOf, type ParsedDocument, readableData, readDocument } from "#core/config/document.ts";
import { ConfigError } from "#core/errors.ts";
import { type GatewayConfig, gatewayConfigOf } from "#gateway/config.ts";
import { ledgerOptions, withLedgerFile } from "#gateway/ledger/options.ts";
import { spoolOptions } from "#gateway/spool/options.ts";
import type { HubOptions } from "#hub/options.ts";
import { askGateway } from "./ask-gateway.ts";
import { configOption } from "./command.ts";

export function operatedConfigOption(): Option {
  return configOption("gateway", "configuration of the gateway, or of the hub that it is inside");
}

interface Operated {
  readonly config: GatewayConfig;
  /** Null for a gateway of its own. */
  readonly hub: HubOptions | null;
}

/**
 * References of a gateway's file that cannot be resolved are no fault here (`requireResolved`). Throws `ConfigError`,
 * and `TransientError` while the store of the hub does not answer.
 */
export async function loadOperated(path: string): Promise<Operated> {
  try {
    const document = readDocument(path);
    if (kindOf(document) !== "hub") return { config: gatewayConfigOf(document, path, new Map()), hub: null };
    const hub = await hubOf(document, path);
    const { storedInnerConfig } = await import("../platform/inner-config.ts");
    return { config: await storedInnerConfig(hub), hub };
  } catch (thrown) {
    if (!(thrown instanceof ConfigError)) throw thrown;
    const config = await configInForce(path);
    if (config === null) throw thrown;
    process.stderr.write(`${path} is not valid, and the gateway that runs has its former content, which counts here\n`);
    return { config, hub: null };
  }
}

const places = z.looseObject({ ledger: ledgerOptions, spool: z.looseObject({ path: z.string() }).optional() });

/** The configuration of the gateway that runs, found by what can be read of a file with faults; null without one. */
async function configInForce(path: string): Promise<GatewayConfig | null> {
  const found = places.safeParse(readableData(path));
  if (!found.success) return null;
  const from = (relative: string) => resolve(dirname(path), relative);
  const spool = spoolOptions.parse(found.data.spool === undefined ? {} : { path: found.data.spool.path });
  const ledger = withLedgerFile(found.data.ledger, from);
  const at = { ledger, spool: { ...spool, path: from(spool.path) } };
  const written = await askGateway<object>(at, "configuration/written");
  return written === null ? null : gatewayConfigOf(documentOf(written, path), path, new Map());
}

/** Null for the configuration of a gateway. Throws `ConfigError`. */
export async function operatingHub(path: string): Promise<HubOptions | null> {
  const document = readDocument(path);
  return kindOf(document) === "hub" ? await hubOf(document, path) : null;
}

/** Commands of a gateway do not load the settings of hubs. */
async function hubOf(document: ParsedDocument, path: string): Promise<HubOptions> {
  return (await import("#hub/config.ts")).hubOptionsOf(document, path);
}

/** Throws as `loadOperated` does. */
export async function loadOperatedConfig(path: string): Promise<GatewayConfig> {
  return (await loadOperated(path)).config;
}
