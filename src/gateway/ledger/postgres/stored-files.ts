/** Files in pieces, grouped by store: the storage of the intake and of shared content. */
import type { QueryResult } from "pg";
import type { Questioned } from "./transaction.ts";

/** Bytes of a piece; it is sent and read as text of twice the size. */
const PIECE_BYTES = 512 * 1024;

export interface StoredFile {
  readonly store: string;
  readonly path: string;
  readonly size: number;
  readonly mtime?: string;
}

/** For use inside a transaction. Fails when there is a file at the path. */
export async function storeFile(
  client: Questioned,
  { store, path, size, mtime = "" }: StoredFile,
  bytes: AsyncIterable<Uint8Array>,
): Promise<void> {
  const added = await client.query<{ id: number }>(
    "INSERT INTO stored_files (shelf, path, size, mtime) VALUES ($1, $2, $3, $4) RETURNING id",
    [store, path, size, mtime],
  );
  let place = 0;
  let stored = 0;
  for await (const piece of inPieces(bytes)) {
    await client.query("INSERT INTO stored_pieces (file_id, place, bytes) VALUES ($1, $2, $3)", [
      added.rows[0]?.id,
      place,
      piece,
    ]);
    place += 1;
    stored += piece.length;
  }
  if (stored !== size) throw new Error(`${path} has ${stored} bytes instead of ${size}`);
}

/** Null when there is no file. */
export async function openFile(client: Questioned, store: string, path: string): Promise<AsyncIterable<Buffer> | null> {
  const { rows } = await client.query<{ id: number }>("SELECT id FROM stored_files WHERE shelf = $1 AND path = $2", [
    store,
    path,
  ]);
  const id = rows[0]?.id;
  return id === undefined ? null : piecesOf(client, id);
}

/** Ends early when the file is removed meanwhile; the reader must compare the size. */
async function* piecesOf(client: Questioned, id: number): AsyncGenerator<Buffer> {
  for (let place = 0; ; place += 1) {
    const { rows }: QueryResult<{ bytes: Buffer }> = await client.query(
      "SELECT bytes FROM stored_pieces WHERE file_id = $1 AND place = $2",
      [id, place],
    );
    const piece = rows[0]?.bytes;
    if (piece === undefined) return;
    yield piece;
  }
}

async function* inPieces(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<Buffer> {
  let waiting: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of bytes) {
    for (let at = 0; at < chunk.length; ) {
      const part = chunk.subarray(at, at + PIECE_BYTES - size);
      at += part.length;
      size += part.length;
      // A copy, since the source may reuse its memory.
      waiting.push(at < chunk.length || size === PIECE_BYTES ? part : Buffer.from(part));
      if (size < PIECE_BYTES) continue;
      yield Buffer.concat(waiting);
      waiting = [];
      size = 0;
    }
  }
  if (size > 0) yield Buffer.concat(waiting);
}
