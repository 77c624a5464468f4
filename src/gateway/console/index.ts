/** The endpoints of the operations API that several stages answer, group by group. */

import { FairQueue } from "#core/turns.ts";
import type { GatewayConfig } from "../config.ts";
import { actionEndpoints } from "../operations/api/actions.ts";
import { attentionEndpoints } from "../operations/api/attention.ts";
import { configurationEndpoints } from "../operations/api/configuration.ts";
import { dropEndpoints } from "../operations/api/drops.ts";
import type { EndpointGroup, HandlersOf } from "../operations/api/endpoint.ts";
import { fileEndpoints } from "../operations/api/files.ts";
import { migrationEndpoints } from "../operations/api/migrations.ts";
import { overviewEndpoints } from "../operations/api/overview.ts";
import { playgroundEndpoints } from "../operations/api/playground.ts";
import { readingEndpoints } from "../operations/api/readings.ts";
import { triggerEndpoints } from "../operations/api/triggers.ts";
import { type ServedEndpoint, served } from "../operations/endpoint-routes.ts";
import type { HealthPart } from "../operations/state-of-work.ts";
import { type ActionParts, actionHandlers, MAPPED_AT_ONCE } from "./actions.ts";
import { attentionHandlers } from "./attention.ts";
import { configurationHandlers } from "./configuration.ts";
import { dropHandlers } from "./drops.ts";
import { fileHandlers } from "./files.ts";
import type { SharedInbox } from "./inbox.ts";
import { migrationHandlers } from "./migrations.ts";
import { overviewHandlers } from "./overview.ts";
import type { QueryParts } from "./parts.ts";
import { openPlayground } from "./playground.ts";
import { readingHandlers } from "./reading-origin.ts";

import { triggerHandlers } from "./triggers.ts";

/** All groups whose endpoints have handlers, which `consoleHandlers` makes under the same names. */
const GROUPS = {
  drops: dropEndpoints,
  overview: overviewEndpoints,
  actions: actionEndpoints,
  attention: attentionEndpoints,
  files: fileEndpoints,
  readings: readingEndpoints,
  playground: playgroundEndpoints,
  triggers: triggerEndpoints,
  configuration: configurationEndpoints,
  migrations: migrationEndpoints,
} as const satisfies Readonly<Record<string, EndpointGroup>>;

type ConsoleHandlers = { readonly [Name in keyof typeof GROUPS]: HandlersOf<(typeof GROUPS)[Name]> };

export interface ConsoleParts extends QueryParts, Pick<ActionParts, "binding" | "execute"> {
  health(): Promise<readonly HealthPart[]>;
  /** Shared with the live updates, which count it. */
  readonly inbox: SharedInbox;
}

/** Called once, when all parts are opened. */
function consoleHandlers(config: GatewayConfig, parts: ConsoleParts): ConsoleHandlers {
  const mapping = new FairQueue<string>(MAPPED_AT_ONCE);
  return {
    drops: dropHandlers(config, parts),
    overview: overviewHandlers(config, parts),
    actions: actionHandlers({ ...parts, config, mapping }),
    attention: attentionHandlers(config, parts, parts.inbox),
    files: fileHandlers(config, parts),
    readings: readingHandlers(parts),
    playground: openPlayground(config, { ...parts, mapping }),
    triggers: triggerHandlers(config, parts),
    configuration: configurationHandlers(parts),
    migrations: migrationHandlers(config, parts.migrations),
  };
}

/** `parts`: null before they are opened. */
export function consoleEndpoints(config: GatewayConfig, parts: () => ConsoleParts | null): readonly ServedEndpoint[] {
  let made: ConsoleHandlers | null = null;
  const handlers = () => {
    const opened = parts();
    if (made === null && opened !== null) made = consoleHandlers(config, opened);
    return made;
  };
  return Object.entries(GROUPS as Readonly<Record<string, EndpointGroup>>).flatMap(([name, group]) =>
    served(group, () => (handlers() as Readonly<Record<string, HandlersOf<EndpointGroup>>> | null)?.[name] ?? null),
  );
}
