/** Reads row indexes: which row each reading of a segment came from. Those of earlier versions have no digest. */
import { createHash } from "node:crypto";
import type { RowIndexLine } from "../segment/layout.ts";
import { rowsFrom } from "../segment/row-list.ts";
import { parsedJson } from "../support/decoded-text.ts";
import { systemCode } from "../support/errors.ts";
import { type FilePart, linesOf } from "./segment-files.ts";

/** A line with the offset of its batch. */
export type PlacedRows = RowIndexLine & { readonly offset: number };

/** Lists of rows may be damaged. */
interface StoredLine extends Omit<RowIndexLine, "rows" | "sheetOf"> {
  readonly rows?: unknown;
  readonly sheetOf?: unknown;
}

interface SealLine {
  readonly sealed?: true;
  readonly sha256?: string;
}

/** Whether the index is as it was written; one without a digest: whether it can be read. Rejects on a disk error. */
export async function isWhole(rows: FilePart): Promise<boolean> {
  const digest = createHash("sha256");
  let isSealed: boolean | null = null;
  let found: string | undefined;
  try {
    for await (const line of linesOf(rows)) {
      if (found !== undefined) return false;
      isSealed ??= isBegin(line);
      if (!isSealed) JSON.parse(line);
      else if (line.startsWith('{"sha256":')) found = (JSON.parse(line) as SealLine).sha256 ?? "";
      else digest.update(`${line}\n`);
    }
  } catch (thrown) {
    if (!isDamage(thrown)) throw thrown;
    return false;
  }
  return isSealed === false || (isSealed === true && found === digest.digest("hex"));
}

/** Whether reading failed because of what the file holds: no JSON, or no complete compressed data. */
export function isDamage(thrown: unknown): boolean {
  return thrown instanceof SyntaxError || /^(Z_|ZSTD_)/.test(systemCode(thrown) ?? "");
}

/** The lines of the batches, in their order; lines that are no JSON are left out. */
export async function* rowsOf(rows: FilePart): AsyncGenerator<PlacedRows> {
  let next: number | null = null;
  for await (const line of linesOf(rows)) {
    const facts = (parsedJson(line) ?? null) as StoredLine | null;
    if (!Number.isInteger(facts?.length) || facts === null) continue;
    const { length, sheetOf } = facts;
    const offset: number = facts.offset ?? next ?? (await beginningOf(rows));
    next = offset + length;
    // A reading takes more than one byte of its batch.
    const placed = { ...facts, offset, rows: rowsFrom(facts.rows, length) };
    yield sheetOf === undefined ? (placed as PlacedRows) : { ...placed, sheetOf: rowsFrom(sheetOf, length) };
  }
}

/**
 * Offset of the first batch of a run with this row index. Batches of an earlier version begin with their file, or, in a
 * segment of several runs, end where the trailer begins, with an empty line.
 */
export async function beginningOf(rows: FilePart): Promise<number> {
  if (rows.span === undefined) return 0;
  let offset = rows.span.offset - 1;
  for await (const line of linesOf(rows)) {
    const facts = JSON.parse(line) as Partial<RowIndexLine>;
    if (facts.offset !== undefined) return facts.offset;
    offset -= facts.length ?? 0;
  }
  return offset;
}

function isBegin(line: string): boolean {
  return (parsedJson(line) as SealLine | undefined)?.sealed === true;
}
