/** What becomes of a file of a history by its name: a trigger takes it, it is opened, or nobody wants it. */
import { basename } from "node:path/posix";
import type { GatewayConfig } from "../../config/gateway-config.ts";
import { unpackingOf } from "../../drops/options.ts";
import type { HistoryFile } from "../../migration/history-files.ts";
import { isContainerName } from "../../runs/unpacking/container.ts";
import { createRegistry, type Trigger, type TriggerRegistry } from "../../triggers/registry.ts";

type Archives = ReturnType<typeof unpackingOf>;

export type Claim =
  | { readonly by: "trigger"; readonly trigger: Trigger }
  | { readonly by: "unpacking"; readonly archives: Archives }
  | { readonly by: "nobody" };

export class Claims {
  readonly #archives: ReadonlyMap<string, Archives>;
  readonly #registry: TriggerRegistry;

  constructor({ drops, triggers }: Pick<GatewayConfig, "drops" | "triggers">) {
    this.#archives = new Map(drops.map((drop) => [drop.name, unpackingOf(drop)]));
    this.#registry = createRegistry(triggers);
  }

  /** No trigger is asked for a container, only for its entries. */
  of({ drop, path }: Pick<HistoryFile, "drop" | "path">): Claim {
    const archives = this.#archives.get(drop);
    if (archives?.unpack === true && isContainerName(basename(path))) return { by: "unpacking", archives };
    const { claimed } = this.#registry.claim(path, "SendViaFtp", drop);
    return claimed === null ? { by: "nobody" } : { by: "trigger", trigger: claimed };
  }
}

/** Files of one group are alike. */
export function groupOf(claim: Claim): string {
  return claim.by === "trigger" ? claim.trigger.name : `(${claim.by})`;
}

/** As the plan counts them by. */
export function mapperOf(claim: Claim): string {
  if (claim.by === "nobody") return "none";
  return claim.by === "trigger" ? claim.trigger.mapper : "(archives)";
}
