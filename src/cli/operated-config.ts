/** The gateway that a command works on: that of a gateway.yaml, or the one inside the hub of a hub.yaml. */
import type { Option } from "commander";
import { type ParsedDocument, readDocument } from "../config/document.ts";
import { kindOf } from "../config/file-kind.ts";
import { type GatewayConfig, gatewayConfigOf } from "../config/gateway-config.ts";
import type { HubOptions } from "../hub/options.ts";
import { configOption } from "./command.ts";

export function operatedConfigOption(): Option {
  return configOption("gateway", "configuration of the gateway, or of the hub that it is inside");
}

interface Operated {
  readonly config: GatewayConfig;
  /** Null for a gateway of its own. */
  readonly hub: HubOptions | null;
}

/** Throws `ConfigError`, and `TransientError` while the store of the hub does not answer. */
export async function loadOperated(path: string): Promise<Operated> {
  const document = readDocument(path);
  if (kindOf(document) !== "hub") return { config: gatewayConfigOf(document, path), hub: null };
  const hub = await hubOf(document, path);
  const { storedInnerConfig } = await import("../platform/inner-config.ts");
  return { config: await storedInnerConfig(hub), hub };
}

/** Null for the configuration of a gateway. Throws `ConfigError`. */
export async function operatingHub(path: string): Promise<HubOptions | null> {
  const document = readDocument(path);
  return kindOf(document) === "hub" ? await hubOf(document, path) : null;
}

/** Commands of a gateway do not load the settings of hubs. */
async function hubOf(document: ParsedDocument, path: string): Promise<HubOptions> {
  return (await import("../config/hub-config.ts")).hubOptionsOf(document, path);
}

/** Throws as `loadOperated` does. */
export async function loadOperatedConfig(path: string): Promise<GatewayConfig> {
  return (await loadOperated(path)).config;
}
