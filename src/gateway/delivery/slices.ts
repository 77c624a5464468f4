/** Batches as slices of the run's segment file: verified, streamed, and appended by a split. */
import { createHash, hash } from "node:crypto";
import { closeSync, createReadStream, openSync, readSync } from "node:fs";
import type { Readable } from "node:stream";
import { Chunks } from "#core/chunks.ts";
import { InvariantError, systemCode, TransientError } from "#core/errors.ts";
import type { HttpBody } from "#wire/client/index.ts";
import type { BatchSlice } from "../model.ts";
import type { SegmentChanges } from "./delivery.ts";

// A request's body in a buffer that is used again for the next one.

/**
 * A socket may hold the bytes of a request until its answer comes and longer, where a service answers before it has
 * read them. So the buffer is given back only after each call that began has reported that its socket took all of it:
 * an HTTP client that writes an iterable asks for the next piece once the socket has drained or was closed. That holds
 * for pieces that are not smaller than the high-water mark of a socket (64 KiB).
 */
export class LentBody {
  readonly #bytes: Buffer;
  readonly #giveBack: () => void;
  /** Calls whose socket may hold the bytes. */
  #held = 0;
  #isReleased = false;

  constructor(bytes: Buffer, giveBack: () => void) {
    this.#bytes = bytes;
    this.#giveBack = giveBack;
  }

  /** The body of one call. */
  async *open(): AsyncGenerator<Buffer> {
    if (this.#isReleased) throw new Error("the buffer of this body holds another one");
    this.#held += 1;
    yield this.#bytes;
    // Not when the iterable is ended early: then a socket broke off, and the buffer is left to the garbage collector.
    this.#held -= 1;
  }

  /** Called when no further call begins with this body. */
  release(): void {
    if (this.#isReleased) return;
    this.#isReleased = true;
    if (this.#held === 0) this.#giveBack();
  }
}

/** Bytes in memory for each batch that is sent. */
const CHUNK_BYTES = 256 * 1024;

/** A new stream of the bytes of a slice. */
function sliceStream(segmentPath: string, slice: BatchSlice): Readable {
  return createReadStream(segmentPath, {
    start: slice.offset,
    end: slice.offset + slice.length - 1,
    highWaterMark: CHUNK_BYTES,
  });
}

/** Up to this size a slice is read once, to verify and to send it; a larger one is streamed each time. */
const HELD_BYTES = 512 * 1024;

/** From this size on, a buffer is used again: a socket then reports when it has taken all bytes (`LentBody`). */
const LENT_BYTES_MIN = 64 * 1024;
/** For the calls of a few services at one time. */
const LENT_KEPT = 8;

const lent = new Chunks(HELD_BYTES, LENT_KEPT);

export interface SliceBody {
  /** Once for each attempt. */
  open(): HttpBody;
  /** Called when no further call begins with this body. */
  release(): void;
}

/** The body for a slice. `InvariantError` when the bytes differ from the record (invariant 10). */
async function openSlice(segmentPath: string, slice: BatchSlice): Promise<SliceBody> {
  if (slice.length <= HELD_BYTES) return heldBody(segmentPath, slice);
  const digest = createHash("sha256");
  await overSlice(segmentPath, slice, (chunk) => digest.update(chunk));
  assertDigest(segmentPath, slice, digest.digest("hex"));
  return { open: () => sliceStream(segmentPath, slice), release: () => undefined };
}

/** The body is read when `work` first opens it, and its buffer is given back once `work` has settled. */
export async function withSlice<Result>(
  segmentPath: string,
  slice: BatchSlice,
  work: (open: () => Promise<SliceBody>) => Promise<Result>,
): Promise<Result> {
  let opened: Promise<SliceBody> | undefined;
  const open = () => {
    opened ??= openSlice(segmentPath, slice);
    return opened;
  };
  try {
    return await work(open);
  } finally {
    opened?.then(
      (body) => body.release(),
      () => undefined,
    );
  }
}

/**
 * Without buffers that are used again, the 47 MB of a million readings lie in memory until the young generation of the
 * heap is collected, which comes once or twice in such a file.
 */
function heldBody(segmentPath: string, slice: BatchSlice): SliceBody {
  if (slice.length < LENT_BYTES_MIN) {
    const bytes = readSlice(segmentPath, slice);
    return { open: () => bytes, release: () => undefined };
  }
  const buffer = lent.take();
  const bytes = readSlice(segmentPath, slice, buffer.subarray(0, slice.length));
  return new LentBody(bytes, () => lent.giveBack(buffer));
}

/**
 * The verified bytes of a slice. A batch has at most the configured bytes and was written on this machine a moment ago:
 * one synchronous read is faster than an asynchronous one. `bytes`: of the length of the slice, to read into.
 */
export function readSlice(
  segmentPath: string,
  slice: BatchSlice,
  bytes: Buffer = Buffer.allocUnsafe(slice.length),
): Buffer {
  let read = 0;
  try {
    const file = openSync(segmentPath, "r");
    try {
      for (let more = true; more && read < bytes.length; ) {
        const count = readSync(file, bytes, read, bytes.length - read, slice.offset + read);
        more = count > 0;
        read += count;
      }
    } finally {
      closeSync(file);
    }
  } catch (thrown) {
    throw unreadable(segmentPath, slice, thrown);
  }
  const known = bytes.subarray(0, read);
  assertDigest(segmentPath, slice, digestOf(known));
  return known;
}

/** Appends the parts to the segment, durably. Parts that a crash leaves here without a record are never read. */
export async function appendSlices(
  segmentPath: string,
  parts: readonly { readonly sequence: string; readonly points: number; readonly bytes: Buffer }[],
  segments: SegmentChanges,
): Promise<readonly BatchSlice[]> {
  try {
    let offset = await segments.append(segmentPath, Buffer.concat(parts.map(({ bytes }) => bytes)));
    return parts.map(({ sequence, points, bytes }) => {
      const slice = { sequence, offset, length: bytes.length, points, digest: digestOf(bytes) };
      offset += bytes.length;
      return slice;
    });
  } catch (cause) {
    throw new TransientError("HG-PUSH-013", { operation: "split batch", subject: segmentPath, cause });
  }
}

/** Restores the bytes of a recorded slice at its place, durably. `InvariantError` when the bytes differ. */
export async function rewriteSlice(
  segmentPath: string,
  slice: BatchSlice,
  bytes: Buffer,
  segments: SegmentChanges,
): Promise<void> {
  assertDigest(segmentPath, slice, digestOf(bytes));
  try {
    await segments.restore(segmentPath, slice.offset, bytes);
  } catch (cause) {
    throw new TransientError("HG-PUSH-013", { operation: "restore batch", subject: segmentPath, cause });
  }
}

export async function isIntact(segmentPath: string, slice: BatchSlice): Promise<boolean> {
  const digest = createHash("sha256");
  await overSlice(segmentPath, slice, (chunk) => digest.update(chunk));
  return digest.digest("hex") === slice.digest;
}

function digestOf(bytes: Buffer): string {
  return hash("sha256", bytes);
}

async function overSlice(segmentPath: string, slice: BatchSlice, take: (chunk: Buffer) => unknown): Promise<void> {
  try {
    for await (const chunk of sliceStream(segmentPath, slice)) take(chunk as Buffer);
  } catch (thrown) {
    throw unreadable(segmentPath, slice, thrown);
  }
}

function unreadable(segmentPath: string, slice: BatchSlice, thrown: unknown): Error {
  const facts = { operation: "read batch", subject: `${segmentPath} ${slice.sequence}`, cause: thrown };
  if (systemCode(thrown) !== "ENOENT") return new TransientError("HG-PUSH-013", facts);
  return new InvariantError("HG-PUSH-011", { ...facts, message: "the segment of the run is missing" });
}

function assertDigest(segmentPath: string, slice: BatchSlice, digest: string): void {
  if (digest === slice.digest) return;
  throw new InvariantError("HG-PUSH-011", {
    operation: "verify batch",
    subject: `${segmentPath} ${slice.sequence}`,
    message:
      `batch ${slice.sequence} has the digest ${digest.slice(0, 12)}…, but ` +
      `${slice.digest.slice(0, 12)}… is recorded; nothing of it was sent`,
  });
}
