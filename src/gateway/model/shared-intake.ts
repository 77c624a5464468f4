/** The bodies of HTTP intakes that a ledger keeps for all its nodes. */

/**
 * The bodies of HTTP intakes, by the name of the drop: any node may receive one, and any node may process it.
 */
export interface SharedIntake {
  /** Bytes with which all nodes sign: the given ones, unless some are stored already. */
  secret(drop: string, made: Buffer): Promise<Buffer>;
  /** Microseconds since 1970 by the server's clock, greater than every earlier id. */
  nextId(drop: string): Promise<number>;
  /**
   * Stores the body and its record in one transaction: both are durable when it resolves. A repetition of an
   * earlier body is not stored.
   */
  publish(drop: string, body: SharedBody, pieces: AsyncIterable<Uint8Array>): Promise<Published>;
  /** Records of waiting bodies, in the order of their ids. */
  waiting(drop: string, after: number, limit: number): Promise<readonly WaitingBody[]>;
  /** Bytes of the waiting bodies. */
  waitingBytes(drop: string): Promise<number>;
  /** The same for all drops. */
  allWaitingBytes(): Promise<number>;
  /** The greatest id of a waiting body; 0 when there is none. */
  newest(drop: string): Promise<number>;
  record(drop: string, path: string): Promise<string | null>;
  stat(drop: string, path: string): Promise<{ readonly size: number; readonly mtime: string } | null>;
  /** The bytes at a path, a piece at a time; null when there is no file. */
  open(drop: string, path: string): Promise<AsyncIterable<Buffer> | null>;
  /** Removes the file at a path. */
  remove(drop: string, path: string): Promise<void>;
  /** Moves a body to another path, where it no longer waits. False when there is a file already. */
  move(drop: string, path: string, to: string): Promise<boolean>;
  /** Paths below a folder, in their order. */
  below(drop: string, folder: string, after: string, limit: number): Promise<readonly string[]>;
  /** Forgets the records of bodies that do not wait and have a smaller id. */
  forget(drop: string, beforeId: number): Promise<void>;
}

export interface SharedBody {
  readonly id: number;
  readonly path: string;
  readonly size: number;
  readonly mtime: string;
  /** Digest of the facts that must be equal in a repetition. */
  readonly content: string;
  /** Digest that identifies a repetition without an Idempotency-Key, by its operationId; null without one. */
  readonly byOperation: string | null;
  /** Digest of the Idempotency-Key and its sender; null without one. */
  readonly keyed: string | null;
  /** JSON text. */
  readonly record: string;
}

export interface WaitingBody {
  readonly id: number;
  readonly record: string;
}

export type Published =
  | { readonly kind: "taken" }
  /** With the record of the body that came first. */
  | { readonly kind: "repeat"; readonly record: string }
  /** The same Idempotency-Key came with other content. */
  | { readonly kind: "conflict" };
