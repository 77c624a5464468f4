/** SHA-256 of files. */
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { pipeline } from "node:stream/promises";
import type { PathOnDisk } from "./file-names.ts";

/** SHA-256 of a file's bytes, lower-case hexadecimal. The file is streamed. Rejects with the errors of the disk. */
export async function digestOfFile(path: PathOnDisk): Promise<string> {
  const hash = createHash("sha256");
  await pipeline(createReadStream(path), hash);
  return hash.digest("hex");
}
