/**
 * Where an intake puts the bodies that it takes: on the disk of its own gateway (`own-body-store.ts`), or in the ledger that many gateways share
 * (`shared-body-store.ts`). Both pass the same suite. A body and its receipt are durable when `publish` resolves, and not before.
 */

import type { Readable } from "node:stream";
import type { FileEntry } from "../../model.ts";
import type { Drop } from "../drop.ts";
import type { Receipt, Repeat } from "./receipts.ts";

/** Bytes on their way, under a temporary name. */
export interface Received {
  readonly id: number;
  readonly temporary: string;
  readonly size: number;
  readonly mtime: string;
  readonly sha256: string;
}

export class BodyTooLarge extends Error {}

export interface BodyStore {
  /** What access tokens are signed with: whoever opens this shelf takes the tokens that another has given. */
  readonly secret: Buffer;
  /** Bytes of bodies that were not finished yet. */
  waitingBytes(): Promise<number>;
  /** Throws `BodyTooLarge`; then, and when the sender goes away, nothing stays. */
  receive(stream: Readable, nowMs: number, bytesMax: number): Promise<Received>;
  bytes(received: Received): Promise<Buffer>;
  discard(received: Received): Promise<void>;
  /**
   * Durable when it resolves: the body and its receipt. A repeat of an earlier body is not taken; that one is durable, too, when this
   * resolves.
   */
  publish(received: Received, receipt: Receipt): Promise<Repeat | { readonly kind: "taken" }>;
  /** Bodies that were not finished, in the order in which they were taken. */
  waiting(signal: AbortSignal): AsyncIterable<Receipt>;
  byPath(path: string): Promise<Receipt | null>;
  /** As of a drop. */
  stat(path: string, signal: AbortSignal): Promise<FileEntry | null>;
  fetch: Drop["fetch"];
  finish: Drop["finish"];
  clearArchive(
    folder: string,
    isOld: (path: string) => boolean,
    limit: number,
    signal: AbortSignal,
  ): Promise<number>;
  /** Forgets finished bodies that were taken before then. */
  forget(beforeMs: number): Promise<void>;
  /** Calls back when another gateway may have put something here. Answers how to stop. */
  watch(onChange: () => void): () => Promise<void>;
  close(): Promise<void>;
}
