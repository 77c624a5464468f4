/** The configuration in force, for components that read it each time they need it. */
import type { GatewayConfig } from "./config.ts";
import type { Trigger } from "./triggers/registry.ts";

export type GatewayTrigger = GatewayConfig["triggers"][number] & Pick<Trigger, "origin" | "structure">;

export interface LiveConfig {
  /** Its sections are always those in force; its triggers include those of services. */
  readonly config: GatewayConfig;
  /** As the file has it. */
  file(): GatewayConfig;
  replace(next: GatewayConfig): void;
  /** Replaces all triggers in force. */
  setTriggers(triggers: readonly GatewayTrigger[]): void;
}

export function liveConfig(first: GatewayConfig): LiveConfig {
  let file = first;
  let current = first;
  return {
    config: new Proxy({} as GatewayConfig, { get: (_none, section) => Reflect.get(current, section) }),
    file: () => file,
    replace(next) {
      file = next;
      current = { ...next, triggers: current.triggers };
    },
    setTriggers(triggers) {
      current = { ...file, triggers: [...triggers] };
    },
  };
}
