/**
 * The folder `kept` of the spool: of runs at rest the input, and the segment with its indexes. Compressed, where that
 * saves something: a disk gives whole blocks, so that small files are only moved. Large files are moved first, and
 * compressed later (`kept-packer.ts`).
 */
import { createReadStream, createWriteStream, openSync, renameSync, statSync } from "node:fs";
import { open, writeFile } from "node:fs/promises";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { promisify } from "node:util";
import { createZstdDecompress, zstdCompress } from "node:zlib";
import { Chunks } from "#core/chunks.ts";
import { syncFile } from "#core/durable.ts";
import type { Span } from "#mapping/segment/layout.ts";
import type { CompressibleFile } from "./kept-segments.ts";
import { isKeptPlain, KEPT_ENDS, type KeptKind, PACKABLE, PART, PIECE_MAX } from "./paths.ts";

const PIECES = new Chunks(PIECE_MAX, 4);

const compressWhole = promisify<Buffer, Buffer>(zstdCompress);

/**
 * Moves a file to the kept files of its run, or copies a part of one; `kept` is the path there without the end. A
 * synced file stays synced; only the name may be lost with the power. The original of a compressed file stays.
 */
export async function keepFile(
  { from, kind, size, span }: CompressibleFile,
  kept: string,
  synced: boolean,
): Promise<void> {
  const { packed, plain } = KEPT_ENDS[kind];
  const isPlain = isKeptPlain(kind, size);
  const end = isPlain ? plain : packed;
  if (isPlain && span === undefined) {
    renameSync(from, `${kept}${end}`);
    return;
  }
  const part = `${kept}${end}${PART}`;
  if (isPlain) await pipeline(openKept(from, span), createWriteStream(part));
  else
    await PIECES.lend(async (chunk) =>
      writeFile(part, await compressWhole(await readInto(chunk.subarray(0, size), from, span?.offset ?? 0))),
    );
  if (synced) await syncFile(part);
  renameSync(part, `${kept}${end}`);
}

/** The bytes of a file from an offset that fit into the chunk. */
async function readInto(chunk: Buffer, path: string, first: number): Promise<Buffer> {
  const handle = await open(path, "r");
  try {
    let at = 0;
    for (let more = true; more && at < chunk.length; ) {
      const { bytesRead } = await handle.read(chunk, at, chunk.length - at, first + at);
      more = bytesRead > 0;
      at += bytesRead;
    }
    return chunk.subarray(0, at);
  } finally {
    await handle.close();
  }
}

/** Null when it is not kept. */
export function keptPlace(kept: string, kind: KeptKind): string | null {
  const { plain, packed } = KEPT_ENDS[kind];
  return [plain, packed].map((end) => `${kept}${end}`).find((path) => sizeOf(path) !== null) ?? null;
}

/**
 * The bytes of a file as they were before it was kept, or a part of them; fewer where the file ends before. The stream
 * fails as reading the file does. Between the search for a place and this call, the file may have been compressed.
 */
export function openKept(path: string, span?: Span): Readable {
  if (span?.length === 0) return Readable.from([]);
  if (path.endsWith(".zst")) return openPacked(path, span);
  const range = span === undefined ? {} : { start: span.offset, end: span.offset + span.length - 1 };
  try {
    return createReadStream(path, { ...range, fd: openSync(path, "r") });
  } catch {
    const packed = packedPlace(path);
    return packed !== null && sizeOf(packed) !== null ? openPacked(packed, span) : createReadStream(path, range);
  }
}

/** Where the file would be when it was compressed. */
function packedPlace(path: string): string | null {
  const ends = PACKABLE.map((kind) => KEPT_ENDS[kind]).find(({ plain }) => path.endsWith(plain));
  return ends === undefined ? null : `${path.slice(0, -ends.plain.length)}${ends.packed}`;
}

function openPacked(path: string, span?: Span): Readable {
  const file = createReadStream(path);
  const plain = createZstdDecompress();
  file.once("error", (fault) => plain.destroy(fault));
  plain.once("close", () => file.destroy());
  file.pipe(plain);
  if (span === undefined) return plain;
  const part = Readable.from(cut(plain, span), { objectMode: false });
  // Also when nothing of it was read.
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

/** Null when there is no such file. Synchronous: the event loop would cost more than the call. */
export function sizeOf(path: string): number | null {
  return statSync(path, { throwIfNoEntry: false })?.size ?? null;
}
