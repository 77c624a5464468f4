/** The parts that a hub gives to the gateway inside it. */

import type { Settled } from "#core/promises.ts";
import type { DeliveryParts } from "./delivery/service-delivery.ts";
import type { Drop } from "./drops/drop.ts";
import type { HubDropOptions } from "./drops/options.ts";
import type { Run } from "./model.ts";
import type { ZoneTables } from "./runs/source-zones.ts";
import type { ApplyStructure } from "./runs/steps/steps.ts";

/** `mtime`: null for a file that was removed. `no account`: nothing is known of a drop that belongs to none. */
export type StoredVersion = { readonly mtime: string | null } | "no account";

/**
 * Files of accounts that have none in progress are fetched and mapped beside those of others, however slow these are:
 * so many. An account alone has all workers anyway.
 */
export const SPARE_RUNS = 16;
export const SPARE_WORKERS = 2;

export interface InnerGateway {
  /** Uses neither disk nor network. */
  hubDrop(options: HubDropOptions): Drop;
  /** Where the tokens of a service come from instead of its token endpoint. */
  mintOf(service: string): DeliveryParts["mint"];
  readonly applyStructure: ApplyStructure;
  /** Which version of each file is stored; an entry of a container counts as the container. */
  storedVersions(files: readonly Pick<Run, "drop" | "path">[]): Promise<readonly Settled<StoredVersion>[]>;
  /** The zones of the sources of each account. */
  readonly zoneTables: ZoneTables;
  /** Another node of the fleet has left or was lost; called now and then for a while. */
  onNodeLeft(): void;
}
