/**
 * The interface for programs that embed Headgate: `import { startGateway } from "headgate"`. Mappers use
 * `headgate/mapper`.
 */

export { type Platform, startPlatform } from "#app/platform.ts";
export {
  ConfigError,
  HeadgateError,
  InvariantError,
  RejectedError,
  TransientError,
} from "#core/errors.ts";
export { createLog } from "#core/log.ts";
export { type GatewayConfig, loadGatewayConfig } from "#gateway/config.ts";
export {
  type FileEvent,
  type Gateway,
  type GatewayDependencies,
  type IntakeRule,
  startGateway,
} from "#gateway/gateway.ts";
export type * from "#gateway/model.ts";
export { loadHubOptions } from "#hub/config.ts";
export { type RunningHub, startHub } from "#hub/hub.ts";
export type { HubOptions } from "#hub/options.ts";
