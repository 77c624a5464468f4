/** Reads row indexes: which row each reading of a segment came from. */
import { createHash } from "node:crypto";
import { systemCode } from "#core/errors.ts";
import { parsedJson } from "#core/text.ts";
import type { RowIndexLine } from "#mapping/segment/layout.ts";
import { rowsFrom } from "#mapping/segment/row-list.ts";
import { type FilePart, linesOf } from "./segment-files.ts";

/** Lists of rows may be damaged. */
interface StoredLine extends Omit<RowIndexLine, "rows" | "sheetOf"> {
  readonly rows?: unknown;
  readonly sheetOf?: unknown;
}

/** Whether the index is as it was written. Rejects on a disk error. */
export async function isWhole(rows: FilePart): Promise<boolean> {
  const digest = createHash("sha256");
  let found: string | undefined;
  try {
    for await (const line of linesOf(rows)) {
      if (found !== undefined) return false;
      if (line.startsWith('{"sha256":')) found = (JSON.parse(line) as { readonly sha256: string }).sha256;
      else digest.update(`${line}\n`);
    }
  } catch (thrown) {
    if (!isDamage(thrown)) throw thrown;
    return false;
  }
  return found === digest.digest("hex");
}

/** Whether reading failed because of what the file holds: no JSON, or no complete compressed data. */
export function isDamage(thrown: unknown): boolean {
  return thrown instanceof SyntaxError || /^(Z_|ZSTD_)/.test(systemCode(thrown) ?? "");
}

/** The lines of the batches, in their order; lines that have no place of a batch are left out. */
export async function* rowsOf(rows: FilePart): AsyncGenerator<RowIndexLine> {
  for await (const line of linesOf(rows)) {
    const facts = (parsedJson(line) ?? null) as StoredLine | null;
    if (facts === null || !Number.isInteger(facts.offset) || !Number.isInteger(facts.length)) continue;
    const { length, sheetOf } = facts;
    // A reading takes more than one byte of its batch.
    const known = { ...facts, rows: rowsFrom(facts.rows, length) };
    yield sheetOf === undefined ? (known as RowIndexLine) : { ...known, sheetOf: rowsFrom(sheetOf, length) };
  }
}
