/**
 * The storage of the bodies that an intake receives: on the disk of its own gateway (`own-body-store.ts`), or
 * in the ledger that several gateways share (`shared-body-store.ts`). Both pass the same suite. A body and
 * its receipt are durable when `publish` resolves, and not before.
 */
import type { Readable } from "node:stream";
import type { FileEntry } from "../../model.ts";
import type { Drop } from "../drop.ts";
import type { ArchiveClearing } from "../paths.ts";
import type { Receipt, Repeat } from "./receipts.ts";

/** Bytes that are being received, under a temporary name. */
export interface Received {
  readonly id: number;
  readonly temporary: string;
  readonly size: number;
  readonly mtime: string;
  readonly sha256: string;
}

export class BodyTooLarge extends Error {}

export interface BodyStore {
  /**
   * The key that signs access tokens: every process that opens this store accepts the tokens of the others.
   */
  readonly secret: Buffer;
  /** Bytes of bodies that are not finished yet. */
  waitingBytes(): Promise<number>;
  /** Throws `BodyTooLarge`; then, and when the sender disconnects, no bytes remain. */
  receive(stream: Readable, nowMs: number, bytesMax: number): Promise<Received>;
  bytes(received: Received): Promise<Buffer>;
  discard(received: Received): Promise<void>;
  /**
   * The body and its receipt are durable when it resolves. A repetition of an earlier body is not stored;
   * that one is durable, too, when this resolves.
   */
  publish(received: Received, receipt: Receipt): Promise<Repeat | { readonly kind: "taken" }>;
  /** Bodies that are not finished, in the order in which they were received. */
  waiting(signal: AbortSignal): AsyncIterable<Receipt>;
  byPath(path: string): Promise<Receipt | null>;
  /** As the method of a drop. */
  stat(path: string, signal: AbortSignal): Promise<FileEntry | null>;
  fetch: Drop["fetch"];
  finish: Drop["finish"];
  clearArchive(clearing: ArchiveClearing, signal: AbortSignal): Promise<number>;
  /** Forgets finished bodies that were received before then. */
  forget(beforeMs: number): Promise<void>;
  /** Calls back when another gateway may have added a body. Returns a function that stops it. */
  watch(onChange: () => void): () => Promise<void>;
  close(): Promise<void>;
}
