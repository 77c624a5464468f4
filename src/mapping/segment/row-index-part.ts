/** Writes the row index of a run, whose lines come with the batches and stand after them in the segment. */
import { closeSync, mkdirSync, openSync, readSync, rmSync, writeSync } from "node:fs";
import { dirname } from "node:path";
import { systemCode } from "#core/errors.ts";
import type { BatchSlice } from "../model.ts";
import { ROWS_BEGIN, SealedLines } from "./layout.ts";
import { storedRows } from "./row-list.ts";
import type { BatchBody } from "./writer.ts";

/** Characters in memory before they are written. */
const HELD_MAX = 256 * 1024;
const CHUNK_BYTES = 64 * 1024;

/** The row index of a run until its batches are complete: in memory, and what is too much for that in a file. */
export class RowIndexPart {
  readonly #path: string;
  readonly #lines = new SealedLines();
  #text = this.#lines.add(ROWS_BEGIN);
  #file: number | undefined;
  #written = 0;

  constructor(path: string) {
    this.#path = path;
  }

  add(line: string): void {
    this.#text += this.#lines.add(line);
    if (this.#text.length <= HELD_MAX) return;
    this.#file ??= create(this.#path, "w+");
    this.#written += writeAll(this.#file, Buffer.from(this.#text, "utf8"), this.#written);
    this.#text = "";
  }

  /** Hands out the whole index, and removes the file. */
  end(take: (bytes: Buffer) => void): void {
    const chunk = Buffer.allocUnsafe(this.#file === undefined ? 0 : CHUNK_BYTES);
    for (let at = 0; this.#file !== undefined && at < this.#written; ) {
      const count = readSync(this.#file, chunk, 0, chunk.length, at);
      if (count === 0) throw new Error(`${this.#path} has lost bytes`);
      take(chunk.subarray(0, count));
      at += count;
    }
    take(Buffer.from(`${this.#text}${this.#lines.end()}`, "utf8"));
    this.discard();
  }

  discard(): void {
    if (this.#file === undefined) return;
    closeSync(this.#file);
    this.#file = undefined;
    rmSync(this.#path, { force: true });
  }
}

/** Opens a file to be written, in a folder that may have to be made. */
export function create(path: string, mode: "w" | "w+" = "w"): number {
  try {
    return openSync(path, mode);
  } catch (thrown) {
    if (systemCode(thrown) !== "ENOENT") throw thrown;
    mkdirSync(dirname(path), { recursive: true });
    return openSync(path, mode);
  }
}

/** Writes the bytes at a place of the file, and returns their number. */
export function writeAll(file: number, bytes: Uint8Array, at: number): number {
  for (let done = 0; done < bytes.length; ) done += writeSync(file, bytes, done, bytes.length - done, at + done);
  return bytes.length;
}

/** JSON of a `RowIndexLine`. */
export function rowIndexLine(
  { sequence, offset, length }: BatchSlice,
  { rows, sheets }: BatchBody,
  sheetName: (index: number) => string | undefined,
): string {
  const place = `"sequence":${JSON.stringify(sequence)},"offset":${offset},"length":${length}`;
  const start = `{${place},"rows":${JSON.stringify(storedRows(rows))}`;
  if (sheets === null) return `${start}}`;
  const names = Object.fromEntries([...new Set(sheets)].map((sheet) => [sheet, sheetName(sheet) ?? ""]));
  return `${start},"sheetOf":${JSON.stringify(storedRows(sheets))},"sheets":${JSON.stringify(names)}}`;
}
