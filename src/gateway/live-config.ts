/** The configuration in force, for components that read it each time they need it. */
import type { GatewayConfig } from "../config/gateway-config.ts";

export interface LiveConfig {
  /** Its sections are always those in force. */
  readonly config: GatewayConfig;
  replace(next: GatewayConfig): void;
}

export function liveConfig(first: GatewayConfig): LiveConfig {
  let current = first;
  return {
    config: new Proxy({} as GatewayConfig, { get: (_none, section) => Reflect.get(current, section) }),
    replace(next) {
      current = next;
    },
  };
}
