/**
 * The contract of the bytes of stored files. They are named by their SHA-256 (lower-case hexadecimal), so that equal
 * contents are kept once; which of them are needed, the records say (`store/stored-files.ts`). Every method may run
 * concurrently.
 *
 * The order of an upload survives a crash at any moment: `put`, commit of the record, answer, `release`. Bytes without
 * a record are removed by `collect`.
 */
import type { Readable } from "node:stream";

/** A stream of buffers, or these themselves. */
export type Content = Readable | AsyncIterable<Uint8Array> | Iterable<Uint8Array>;

export interface PutBlob {
  readonly sha256: string;
  readonly bytes: number;
  /** The first bytes, by which the kind of a file is known. */
  readonly head: Uint8Array;
  /** Until then the bytes stay, with or without a record. */
  release(): void;
}

/** Both ends are included. */
export interface ByteRange {
  readonly start: number;
  readonly end: number;
}

/** The place of a content in the file into which it was copied, and its digest as it was read. */
export interface CopiedContent {
  readonly offset: number;
  readonly bytes: number;
  readonly sha256: string;
}

export type IsReferred = (sha256: string) => Promise<boolean>;

export interface BlobStore {
  /**
   * Durable when it resolves. Throws `BlobTooLarge` beyond `bytesMax`, and the error of the stream; then nothing is
   * kept. A stream is not destroyed.
   */
  put(content: Content, bytesMax: number): Promise<PutBlob>;
  /** Throws `BlobMissing` before the first byte. */
  read(sha256: string, range?: ByteRange): Promise<Readable>;
  /**
   * Copies small contents one after another into a new file, with few calls for many of them. Null for each that could
   * not be copied this way, which `read` gives, or says why not; with all null there may be no file.
   */
  copy(
    sha256s: readonly string[],
    destination: string,
    signal: AbortSignal,
  ): Promise<readonly (CopiedContent | null)[]>;
  /** A file of this machine with the bytes, for a program that only reads it; valid until `end` is called. */
  local(sha256: string): Promise<{ readonly path: string; end(): Promise<void> }>;
  /** Has no effect while the bytes are held by an upload, or when a record refers to them. */
  remove(sha256: string, isReferred: IsReferred): Promise<void>;
  /** Removes bytes that no record refers to; `referred` returns those of a list that one does. Returns their number. */
  collect(referred: (sha256s: readonly string[]) => Promise<ReadonlySet<string>>): Promise<number>;
  close(): Promise<void>;
}

export class BlobTooLarge extends Error {}

export class BlobMissing extends Error {
  constructor(sha256: string) {
    super(`the bytes with the SHA-256 ${sha256} are missing from the stored files`);
  }
}
