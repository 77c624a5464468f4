/**
 * The part of the ledger that stores bytes: those that every node must be able to read, and that no drop
 * keeps. A ledger that one process owns has none, since the disk of that process serves as well. Faults are
 * those of the ledger (`TransientError` when the database cannot be used now).
 */
import type { SharedIntake } from "../model.ts";

export interface SharedBytes {
  readonly intake: SharedIntake;
  /** Content that is named by its digest, and so never changes. */
  readonly content: SharedContent;
}

export interface SharedContent {
  /** Durable for all nodes when it resolves; a repeated call notes that the content is in use. */
  keep(kind: ContentKind, name: string, bytes: () => Promise<Buffer>): Promise<void>;
  /** Null when no node kept it. */
  find(kind: ContentKind, name: string): Promise<Buffer | null>;
  /** Removes content that was last used before this time. Returns how many. */
  prune(beforeMs: number): Promise<number>;
}

export type ContentKind = "mapper" | "lookup";
