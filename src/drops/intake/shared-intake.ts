/** The contract of a ledger that stores the bodies of intakes. */
import type { FileEntry } from "../../model.ts";

/** The part of the ledger that the store uses; `SharedIntake` there has this shape. */
export interface SharedIntake {
  secret(drop: string, made: Buffer): Promise<Buffer>;
  nextId(drop: string): Promise<number>;
  publish(drop: string, body: SharedBody, pieces: AsyncIterable<Uint8Array>): Promise<Published>;
  waiting(drop: string, after: number, limit: number): Promise<readonly { id: number; record: string }[]>;
  waitingBytes(drop: string): Promise<number>;
  newest(drop: string): Promise<number>;
  record(drop: string, path: string): Promise<string | null>;
  stat(drop: string, path: string): Promise<{ readonly size: number; readonly mtime: string } | null>;
  open(drop: string, path: string): Promise<AsyncIterable<Buffer> | null>;
  remove(drop: string, path: string): Promise<void>;
  move(drop: string, path: string, to: string): Promise<boolean>;
  below(drop: string, folder: string, after: string, limit: number): Promise<readonly string[]>;
  forget(drop: string, beforeId: number): Promise<void>;
}

export interface SharedBody extends FileEntry {
  readonly id: number;
  readonly content: string;
  readonly byOperation: string | null;
  readonly keyed: string | null;
  readonly record: string;
}

type Published =
  | { readonly kind: "taken" }
  | { readonly kind: "repeat"; readonly record: string }
  | { readonly kind: "conflict" };
