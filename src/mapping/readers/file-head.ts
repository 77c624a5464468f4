/** The first and the last bytes of files. */
import { closeSync, openSync, readSync } from "node:fs";
import { open } from "node:fs/promises";

/** The first bytes of a file; fewer when it is smaller. */
export async function fileHead(path: string, bytes: number): Promise<Buffer> {
  await using handle = await open(path, "r");
  const { buffer, bytesRead } = await handle.read(Buffer.alloc(bytes), 0, bytes, 0);
  return buffer.subarray(0, bytesRead);
}

/** Bytes of the last line that are shown. */
const TAIL_BYTES = 96;

/**
 * The end of the last line of a text file, where it has no line end; blanks may follow one. Undefined where it has one,
 * and for an empty file.
 */
export function openLastLine({ path, size, content }: { path: string; size: number; content?: Buffer | undefined }) {
  const tail = content === undefined ? fileTail(path, size) : content.subarray(-TAIL_BYTES);
  // In UTF-16 each letter has a zero; DOS ends a text by its own mark.
  const text = tail.toString("utf8").replaceAll("\0", "").replaceAll("\u001a", "");
  const last = text.slice(Math.max(text.lastIndexOf("\n"), text.lastIndexOf("\r")) + 1).trim();
  return last === "" ? undefined : last.replace(/^\ufffd+/, "");
}

function fileTail(path: string, size: number): Buffer {
  const file = openSync(path, "r");
  try {
    const tail = Buffer.alloc(Math.min(size, TAIL_BYTES));
    return tail.subarray(0, readSync(file, tail, 0, tail.length, size - tail.length));
  } finally {
    closeSync(file);
  }
}
