/** The endpoints of the operations API that several stages answer, group by group. */
import type { GatewayConfig } from "../../config/gateway-config.ts";
import type { EndpointGroup, HandlersOf } from "../../operations/api/endpoint.ts";
import { playgroundEndpoints } from "../../operations/api/playground.ts";
import { type ServedEndpoint, served } from "../../operations/endpoint-routes.ts";
import type { QueryParts } from "../operator-queries.ts";
import { openPlayground } from "./playground.ts";

/** All groups whose endpoints have handlers, which `consoleHandlers` makes under the same names. */
const GROUPS = {
  playground: playgroundEndpoints,
} as const satisfies Readonly<Record<string, EndpointGroup>>;

export type ConsoleHandlers = { readonly [Name in keyof typeof GROUPS]: HandlersOf<(typeof GROUPS)[Name]> };

/** Called once, when all parts are opened. */
export function consoleHandlers(config: GatewayConfig, parts: QueryParts): ConsoleHandlers {
  return {
    playground: openPlayground(config, parts),
  };
}

/** `handlers`: null before the parts are opened. */
export function consoleEndpoints(handlers: () => ConsoleHandlers | null): readonly ServedEndpoint[] {
  return Object.entries(GROUPS as Readonly<Record<string, EndpointGroup>>).flatMap(([name, group]) =>
    served(group, () => (handlers() as Readonly<Record<string, HandlersOf<EndpointGroup>>> | null)?.[name] ?? null),
  );
}
