/**
 * Decides by name what happens to a file of a history: a trigger takes it, it is opened as a container, or no trigger
 * claims it.
 */
import { basename } from "node:path/posix";
import { isContainerName } from "#core/file-names.ts";
import type { GatewayConfig } from "../../config.ts";
import { unpackingOf } from "../../drops/options.ts";
import { createRegistry, type Trigger, type TriggerRegistry } from "../../triggers/registry.ts";
import type { HistoryFile } from "./history-files.ts";

export type Archives = ReturnType<typeof unpackingOf>;

export type Claim =
  | { readonly by: "trigger"; readonly trigger: Trigger }
  | { readonly by: "unpacking"; readonly archives: Archives }
  | { readonly by: "none" };

export class Claims {
  readonly #archives: ReadonlyMap<string, Archives>;
  readonly #registry: TriggerRegistry;

  constructor({ drops, triggers }: Pick<GatewayConfig, "drops" | "triggers">) {
    this.#archives = new Map(drops.map((drop) => [drop.name, unpackingOf(drop)]));
    this.#registry = createRegistry(triggers);
  }

  /** Triggers are not asked for a container, only for its entries. */
  of({ drop, path }: Pick<HistoryFile, "drop" | "path">): Claim {
    const archives = this.#archives.get(drop);
    if (archives?.unpack === true && isContainerName(basename(path))) return { by: "unpacking", archives };
    const { claimed } = this.#registry.claim(path, "SendViaFtp", drop);
    return claimed === null ? { by: "none" } : { by: "trigger", trigger: claimed };
  }
}

/** Files of one group are alike. */
export function groupOf(claim: Claim): string {
  return claim.by === "trigger" ? claim.trigger.name : `(${claim.by})`;
}

/** The name under which the plan counts the file. */
export function mapperOf(claim: Claim): string {
  if (claim.by === "none") return "none";
  return claim.by === "trigger" ? claim.trigger.mapper : "(archives)";
}
