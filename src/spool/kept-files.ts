/**
 * What is kept of runs at rest, in the folder `kept` of the spool: the input, the batches and the row index as they were mapped, and what
 * they are about. Compressed, where that saves something: a disk gives whole blocks, so that small files are only moved.
 */
import { createReadStream, createWriteStream, renameSync, statSync } from "node:fs";
import { open, writeFile } from "node:fs/promises";
import { Readable, type Transform } from "node:stream";
import { pipeline } from "node:stream/promises";
import { promisify } from "node:util";
import {
  createGunzip,
  createGzip,
  createZstdCompress,
  createZstdDecompress,
  gzip,
  zstdCompress,
} from "node:zlib";
import type { Span } from "../segment/layout.ts";
import { Chunks } from "../support/chunks.ts";
import { syncFile } from "../support/durable.ts";
import { KEPT_ENDS, type KeptKind, PART, PIECE_MAX, PLAIN_MAX } from "./paths.ts";

const PIECES = new Chunks(PIECE_MAX, 4);

interface Packing {
  readonly stream: () => Transform;
  readonly whole: (bytes: Buffer) => Promise<Buffer>;
}

const GZIP: Packing = { stream: createGzip, whole: promisify(gzip) };
const ZSTD: Packing = { stream: createZstdCompress, whole: promisify(zstdCompress) };

/**
 * Moves a file to what is kept of its run; `kept` is the path there without the end. False when there is no such file. A synced file stays
 * synced; only the name may be lost with the power.
 */
export async function keepFile(
  from: string,
  kept: string,
  kind: KeptKind,
  synced: boolean,
): Promise<boolean> {
  const size = sizeOf(from);
  if (size === null) return false;
  const { packed, plain } = KEPT_ENDS[kind];
  if (size <= PLAIN_MAX) {
    renameSync(from, `${kept}${plain}`);
    return true;
  }
  const part = `${kept}${packed}${PART}`;
  await pack(from, part, size, kind === "input" ? GZIP : ZSTD);
  if (synced) await syncFile(part);
  renameSync(part, `${kept}${packed}`);
  return true;
}

async function pack(from: string, to: string, size: number, { stream, whole }: Packing): Promise<void> {
  if (size > PIECE_MAX) return await pipeline(createReadStream(from), stream(), createWriteStream(to));
  await PIECES.lend(async (chunk) => writeFile(to, await whole(await readInto(chunk, from))));
}

/** The bytes of a file that fit into the chunk. */
async function readInto(chunk: Buffer, path: string): Promise<Buffer> {
  const handle = await open(path, "r");
  try {
    let at = 0;
    for (let more = true; more && at < chunk.length; ) {
      const { bytesRead } = await handle.read(chunk, at, chunk.length - at, at);
      more = bytesRead > 0;
      at += bytesRead;
    }
    return chunk.subarray(0, at);
  } finally {
    await handle.close();
  }
}

/** Where it is kept; null when it is not. */
export function keptPlace(kept: string, kind: KeptKind): string | null {
  const { packed, plain } = KEPT_ENDS[kind];
  return [`${kept}${plain}`, `${kept}${packed}`].find((path) => sizeOf(path) !== null) ?? null;
}

/**
 * The bytes of a file as they were before it was kept, or a part of them, of which fewer come where the file ends before. Its faults are those of what
 * is read.
 */
export function openKept(path: string, span?: Span): Readable {
  if (span?.length === 0) return Readable.from([]);
  if (!path.endsWith(".gz") && !path.endsWith(".zst"))
    return span === undefined
      ? createReadStream(path)
      : createReadStream(path, { start: span.offset, end: span.offset + span.length - 1 });
  const file = createReadStream(path);
  const plain = path.endsWith(".gz") ? createGunzip() : createZstdDecompress();
  file.once("error", (fault) => plain.destroy(fault));
  plain.once("close", () => file.destroy());
  file.pipe(plain);
  if (span === undefined) return plain;
  const part = Readable.from(cut(plain, span), { objectMode: false });
  // Also when nothing was read of it.
  return part.once("close", () => plain.destroy());
}

async function* cut(plain: Readable, { offset, length }: Span): AsyncGenerator<Buffer> {
  let at = 0;
  for await (const chunk of plain as AsyncIterable<Buffer>) {
    const part = chunk.subarray(Math.max(0, offset - at), Math.max(0, offset + length - at));
    at += chunk.length;
    if (part.length > 0) yield part;
    if (at >= offset + length) return;
  }
}

/** Null when there is no such file. Asked at once: a detour over the event loop would cost more than the answer. */
export function sizeOf(path: string): number | null {
  return statSync(path, { throwIfNoEntry: false })?.size ?? null;
}
