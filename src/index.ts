/**
 * The interface for programs that embed Headgate: `import { startGateway } from "headgate"`. Mappers use
 * `headgate/mapper`.
 */
export { type GatewayConfig, loadGatewayConfig } from "./config/gateway-config.ts";
export { loadHubOptions } from "./config/hub-config.ts";
export {
  type FileEvent,
  type Gateway,
  type GatewayDependencies,
  type IntakeRule,
  startGateway,
} from "./gateway.ts";
export { type RunningHub, startHub } from "./hub/hub.ts";
export type { HubOptions } from "./hub/options.ts";
export type * from "./model.ts";
export { type Platform, startPlatform } from "./platform.ts";
export {
  ConfigError,
  HeadgateError,
  InvariantError,
  RejectedError,
  TransientError,
} from "./support/errors.ts";
export { createLog } from "./support/log.ts";
