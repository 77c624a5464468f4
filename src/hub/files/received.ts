/** Takes the bytes of an upload, and computes their digest: small ones into memory, others into a file. */
import { createHash } from "node:crypto";
import { type FileHandle, open } from "node:fs/promises";
import { Readable } from "node:stream";
import { PRIVATE_FILE } from "#core/private-files.ts";
import { BlobTooLarge, type Content } from "./blobs.ts";

/** The kind of a file is known by these. */
const HEAD_BYTES = 4_096;

export interface Received {
  readonly sha256: string;
  readonly bytes: number;
  readonly head: Uint8Array;
  /** Null: they are in the file. */
  readonly small: Uint8Array | null;
}

/**
 * `smallMax`: bytes that stay in memory. A file is durable when it resolves, but for the name in its folder; the caller
 * removes it after a failure.
 */
export async function receive(
  content: Content,
  temporary: string,
  { bytesMax, smallMax }: { readonly bytesMax: number; readonly smallMax: number },
): Promise<Received> {
  const hash = createHash("sha256");
  let held: Uint8Array[] = [];
  let head: Uint8Array = new Uint8Array();
  let size = 0;
  let file: FileHandle | null = null;
  try {
    // The stream is not destroyed on a refusal: its connection still has to carry the response.
    const chunks = content instanceof Readable ? content.iterator({ destroyOnReturn: false }) : content;
    for await (const chunk of chunks) {
      const bytes = chunk as Uint8Array;
      if (head.length < HEAD_BYTES) head = Buffer.concat([head, bytes.subarray(0, HEAD_BYTES - head.length)]);
      size += bytes.length;
      if (size > bytesMax) throw new BlobTooLarge();
      hash.update(bytes);
      held.push(bytes);
      if (size <= smallMax) continue;
      file ??= await open(temporary, "wx", PRIVATE_FILE);
      for (const one of held) await writeAll(file, one);
      held = [];
    }
    if (size > smallMax) file ??= await open(temporary, "wx", PRIVATE_FILE);
    await file?.sync();
  } finally {
    await file?.close();
  }
  const small = file === null ? together(held, size) : null;
  return { sha256: hash.digest("hex"), bytes: size, head, small };
}

/** In memory of their own, which is copied to a thread as a whole. */
function together(chunks: readonly Uint8Array[], size: number): Uint8Array {
  const all = new Uint8Array(size);
  let at = 0;
  for (const chunk of chunks) {
    all.set(chunk, at);
    at += chunk.length;
  }
  return all;
}

async function writeAll(file: FileHandle, bytes: Uint8Array): Promise<void> {
  for (let done = 0; done < bytes.length; ) done += (await file.write(bytes, done, bytes.length - done)).bytesWritten;
}
