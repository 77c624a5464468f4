/** The parts that a hub gives to the gateway inside it. */
import type { DeliveryParts } from "../delivery/service-delivery.ts";
import type { Drop } from "../drops/drop.ts";
import type { HubDropOptions } from "../drops/options.ts";
import type { ZoneTables } from "../runs/source-zones.ts";
import type { ApplyStructure } from "../runs/steps/steps.ts";

export interface InnerGateway {
  /** Uses neither disk nor network. */
  hubDrop(options: HubDropOptions): Drop;
  /** Where the tokens of a service come from instead of its token endpoint. */
  mintOf(service: string): DeliveryParts["mint"];
  readonly applyStructure: ApplyStructure;
  /**
   * The version (`mtime`) of each stored file that there is, by its path or that of an entry; null for a drop of no
   * account.
   */
  storedVersions(drop: string, paths: readonly string[]): Promise<ReadonlyMap<string, string> | null>;
  /** The zones of the sources of each account. */
  readonly zoneTables: ZoneTables;
  /** Another node of the fleet has left or was lost; called now and then for a while. */
  onNodeLeft(): void;
}
