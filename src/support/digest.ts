/** SHA-256 of files. */
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { pipeline } from "node:stream/promises";
import type { PathOnDisk } from "./file-names.ts";

/** SHA-256 of a file's bytes, lower-case hexadecimal. Memory holds a part of it. Rejects as the disk does. */
export async function digestOfFile(path: PathOnDisk): Promise<string> {
  const hash = createHash("sha256");
  await pipeline(createReadStream(path), hash);
  return hash.digest("hex");
}
