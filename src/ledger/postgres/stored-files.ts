/** Files in pieces, on shelves: what the intake and the shared content are made of. */
import type { QueryResult } from "pg";
import type { Questioned } from "./transaction.ts";

/** Bytes; a piece is sent and read as text of twice the size. */
const PIECE_BYTES = 512 * 1024;

export interface StoredFile {
  readonly shelf: string;
  readonly path: string;
  readonly size: number;
  readonly mtime?: string;
}

/** Inside a transaction. Fails when something lies at the path. */
export async function storeFile(
  client: Questioned,
  { shelf, path, size, mtime = "" }: StoredFile,
  bytes: AsyncIterable<Uint8Array>,
): Promise<void> {
  const added = await client.query<{ id: number }>(
    "INSERT INTO stored_files (shelf, path, size, mtime) VALUES ($1, $2, $3, $4) RETURNING id",
    [shelf, path, size, mtime],
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

/** Null when nothing lies there. */
export async function openFile(
  client: Questioned,
  shelf: string,
  path: string,
): Promise<AsyncIterable<Buffer> | null> {
  const { rows } = await client.query<{ id: number }>(
    "SELECT id FROM stored_files WHERE shelf = $1 AND path = $2",
    [shelf, path],
  );
  const id = rows[0]?.id;
  return id === undefined ? null : piecesOf(client, id);
}

/** Ends early when the file is removed meanwhile; who reads counts. */
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
      // The source may use its memory again.
      waiting.push(at < chunk.length || size === PIECE_BYTES ? part : Buffer.from(part));
      if (size < PIECE_BYTES) continue;
      yield Buffer.concat(waiting);
      waiting = [];
      size = 0;
    }
  }
  if (size > 0) yield Buffer.concat(waiting);
}
