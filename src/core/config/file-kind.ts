/** Whether a configuration is that of a gateway or of a hub, by its sections. */
import { ConfigError } from "../errors.ts";
import type { ParsedDocument } from "./document.ts";

const OF_HUB = ["accounts", "store"];
const OF_GATEWAY = ["drops", "services", "triggers"];

/** Undefined where the sections are of both or of none: the faults of the file say more then. */
export function kindOf({ sections }: Pick<ParsedDocument, "sections">): "gateway" | "hub" | undefined {
  const isHub = OF_HUB.some((name) => sections.has(name));
  const isGateway = OF_GATEWAY.some((name) => sections.has(name));
  if (isHub === isGateway) return undefined;
  return isHub ? "hub" : "gateway";
}

/** Throws `ConfigError` for a configuration of the other kind, whose faults would only be a list of unknown keys. */
export function requireKind(wanted: "gateway" | "hub", document: ParsedDocument, path: string): void {
  const found = kindOf(document);
  if (found === undefined || found === wanted) return;
  const code = found === "hub" ? "HG-CONF-006" : "HG-CONF-007";
  throw new ConfigError(code, { operation: "read configuration", subject: path });
}
