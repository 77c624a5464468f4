/** The gateway that a command works on: that of a gateway.yaml, or the one inside the hub of a hub.yaml. */
import { readFileSync } from "node:fs";
import type { Option } from "commander";
import { parse } from "yaml";
import { type GatewayConfig, loadGatewayConfig } from "../config/gateway-config.ts";
import { loadHubOptions } from "../config/hub-config.ts";
import { storedInnerConfig } from "../platform/inner-config.ts";
import { configOption } from "./command.ts";

export function operatedConfigOption(): Option {
  return configOption("gateway", "configuration of the gateway, or of the hub that it is inside");
}

/** Throws `ConfigError`, and `TransientError` while the store of the hub does not answer. */
export async function loadOperatedConfig(path: string): Promise<GatewayConfig> {
  if (!isOfHub(path)) return loadGatewayConfig(path);
  return await storedInnerConfig(loadHubOptions(path));
}

/** False for a file that cannot be read: loading it says why. */
function isOfHub(path: string): boolean {
  try {
    const sections: unknown = parse(readFileSync(path, "utf8"));
    if (typeof sections !== "object" || sections === null) return false;
    const has = (...names: string[]) => names.some((name) => name in sections);
    return has("accounts", "store") && !has("drops", "services", "triggers");
  } catch {
    return false;
  }
}
