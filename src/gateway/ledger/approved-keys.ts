/**
 * The part of the ledger about host keys that a person approved in the console of one node. Each node copies them to
 * the files of its own drops, which it reads at each connection.
 */
import type { IsoInstant } from "../model.ts";

export interface ApprovedKey {
  readonly drop: string;
  readonly approvedAt: IsoInstant;
  /** Of a known_hosts file: a comment that says who approved it and when, and the entry. */
  readonly lines: string;
}

export interface ApprovedKeys {
  /** Oldest first. */
  list(): Promise<readonly ApprovedKey[]>;
  keep(key: ApprovedKey): Promise<void>;
}
