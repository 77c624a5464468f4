/** SHA-256 of files. */
import { createHash } from "node:crypto";
import { closeSync, createReadStream, openSync, readSync } from "node:fs";
import { pipeline } from "node:stream/promises";
import type { PathOnDisk } from "./file-names.ts";

/** SHA-256 of a file's bytes, lower-case hexadecimal. The file is streamed. Rejects with the errors of the disk. */
export async function digestOfFile(path: PathOnDisk): Promise<string> {
  const hash = createHash("sha256");
  await pipeline(createReadStream(path), hash);
  return hash.digest("hex");
}

const PIECE_BYTES = 256 * 1024;

/** The same in the calling thread, for one that has nothing else to do: in a third of the time of the stream. */
export function digestOfFileNow(path: PathOnDisk): string {
  const hash = createHash("sha256");
  const piece = Buffer.allocUnsafeSlow(PIECE_BYTES);
  const file = openSync(path, "r");
  try {
    for (let read = piece.length; read > 0; ) {
      read = readSync(file, piece);
      hash.update(piece.subarray(0, read));
    }
  } finally {
    closeSync(file);
  }
  return hash.digest("hex");
}
