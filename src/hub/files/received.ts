/** Takes the bytes of an upload into a file of this machine, and computes their digest. */
import { createHash } from "node:crypto";
import { open } from "node:fs/promises";
import type { Readable } from "node:stream";
import { PRIVATE_FILE } from "../../support/private-files.ts";
import { BlobTooLarge } from "./blobs.ts";

/** The kind of a file is known by these. */
const HEAD_BYTES = 4_096;

/** Durable when it resolves, but for the name in its folder. The caller removes the file after a failure. */
export async function receive(stream: Readable, temporary: string, bytesMax: number) {
  await using file = await open(temporary, "wx", PRIVATE_FILE);
  const hash = createHash("sha256");
  const head: Buffer[] = [];
  let size = 0;
  // The stream is not destroyed on a refusal: its connection still has to carry the response.
  for await (const chunk of stream.iterator({ destroyOnReturn: false })) {
    const bytes = chunk as Buffer;
    if (size < HEAD_BYTES) head.push(Buffer.from(bytes.subarray(0, HEAD_BYTES - size)));
    size += bytes.length;
    if (size > bytesMax) throw new BlobTooLarge();
    hash.update(bytes);
    for (let done = 0; done < bytes.length; ) done += (await file.write(bytes, done, bytes.length - done)).bytesWritten;
  }
  await file.sync();
  return { sha256: hash.digest("hex"), bytes: size, head: Buffer.concat(head) };
}
