/**
 * The part of the ledger about triggers that come from services: the last complete list of each, so that it stays in
 * force over an outage and a restart, and is the same for all nodes that share the ledger.
 */
import type { IsoInstant } from "../model.ts";

export interface TriggerList {
  /** Identifies service and account. */
  readonly source: string;
  /** When the service listed them. */
  readonly listedAt: IsoInstant;
  /** JSON text of the triggers as the service listed them. */
  readonly triggers: string;
}

export interface TriggerLists {
  /** Null when no complete list was kept. */
  find(source: string): Promise<TriggerList | null>;
  /** Replaces the list of the same source. */
  keep(list: TriggerList): Promise<void>;
}
