import { open } from "node:fs/promises";

/** The first bytes of a file; fewer when it is smaller. */
export async function fileHead(path: string, bytes: number): Promise<Buffer> {
  await using handle = await open(path, "r");
  const { buffer, bytesRead } = await handle.read(Buffer.alloc(bytes), 0, bytes, 0);
  return buffer.subarray(0, bytesRead);
}
