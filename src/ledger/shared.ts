/**
 * What of the ledger is bytes: what every node that shares it must be able to have, and no drop keeps. A ledger that one process owns has
 * none of it, since the disk of that process does as well. Faults are those of the ledger (`TransientError` when the database cannot be
 * used now).
 */

export interface SharedBytes {
  readonly intake: SharedIntake;
  /** What is named by its digest, and so never changes. */
  readonly content: SharedContent;
}

export interface SharedContent {
  /** Durable for all nodes when it resolves; asked again, it notes that it is in use. */
  keep(kind: ContentKind, name: string, bytes: () => Promise<Buffer>): Promise<void>;
  /** Null when nobody kept it. */
  find(kind: ContentKind, name: string): Promise<Buffer | null>;
  /** Removes what was last in use before this time. Answers how many. */
  prune(beforeMs: number): Promise<number>;
}

export type ContentKind = "mapper" | "lookup";

/** The bodies of HTTP intakes, by the name of the drop: any node may take one, and any node may go on with it. */
export interface SharedIntake {
  /** Bytes that all nodes sign with: those given, unless there are some already. */
  secret(drop: string, made: Buffer): Promise<Buffer>;
  /** Microseconds since 1970 by the server's clock, greater than all before it. */
  nextId(drop: string): Promise<number>;
  /** The body and what is known of it, in one transaction: both are durable when it resolves. A repeat of an earlier body is not taken. */
  publish(drop: string, body: SharedBody, pieces: AsyncIterable<Uint8Array>): Promise<Published>;
  /** Records of bodies that wait, in the order of their ids. */
  lying(drop: string, after: number, limit: number): Promise<readonly LyingBody[]>;
  /** Bytes of the bodies that wait. */
  lyingBytes(drop: string): Promise<number>;
  /** The same of all drops together. */
  allLyingBytes(): Promise<number>;
  /** The greatest id of a body that waits; 0 when there is none. */
  newest(drop: string): Promise<number>;
  record(drop: string, path: string): Promise<string | null>;
  stat(drop: string, path: string): Promise<{ readonly size: number; readonly mtime: string } | null>;
  /** The bytes that lie at a path, a piece at a time; null when nothing does. */
  open(drop: string, path: string): Promise<AsyncIterable<Buffer> | null>;
  /** It does not lie there any more, and nowhere else. */
  remove(drop: string, path: string): Promise<void>;
  /** It does not wait any more, and lies at another path. False when something lies there already. */
  move(drop: string, path: string, to: string): Promise<boolean>;
  /** Paths below a folder, in their order. */
  below(drop: string, folder: string, after: string, limit: number): Promise<readonly string[]>;
  /** Forgets what is known of bodies that do not wait and have a smaller id. */
  forget(drop: string, beforeId: number): Promise<void>;
}

export interface SharedBody {
  readonly id: number;
  readonly path: string;
  readonly size: number;
  readonly mtime: string;
  /** Digest of what must be equal in a repeat. */
  readonly content: string;
  /** Digest by which a repeat is known that says nothing of an Idempotency-Key; null when it cannot be known. */
  readonly told: string | null;
  /** Digest of the Idempotency-Key and its sender; null without one. */
  readonly keyed: string | null;
  /** JSON text. */
  readonly record: string;
}

export interface LyingBody {
  readonly id: number;
  readonly record: string;
}

export type Published =
  | { readonly kind: "taken" }
  /** With the record of the body that came first. */
  | { readonly kind: "repeat"; readonly record: string }
  /** The same Idempotency-Key came with other content. */
  | { readonly kind: "conflict" };
