/**
 * A segment in a file of its own. Small files that are taken in together share one file, a pack (`segment/layout.ts`), of which each run has a link; before
 * its segment is changed, a run gets a copy of what is its own. One that was lost is made again, with the batches where the ledger has them, which may be
 * anywhere in what was a pack. In both the file has holes where others were.
 */
import { createWriteStream, statSync } from "node:fs";
import { copyFile, rm, truncate, writeFile } from "node:fs/promises";
import { pipeline } from "node:stream/promises";
import type { BatchSlice } from "../model.ts";
import { PACK_MAX, ROWS, type Span, type Trailer, trailerAtEnd } from "../segment/layout.ts";
import { publishDurably, syncFile } from "../support/durable.ts";
import { systemCode, TransientError, wordsOf } from "../support/errors.ts";
import { openKept } from "./kept-files.ts";
import { PART } from "./paths.ts";
import { beginningOf, linesOf } from "./segment-files.ts";

/**
 * Nothing happens to a segment that has a file of its own. Otherwise all that is of the run lies in one afterwards, where it did, with the trailer at its end;
 * a crash leaves either. Other runs and their bytes are not touched. Rejects as the disk does.
 */
export async function giveOwnFile(path: string): Promise<void> {
  const { nlink, size } = statSync(path);
  const trailer = trailerAtEnd(path);
  const end = trailer === null ? size : endOf(trailer.footer);
  // Behind the trailer of a run in a pack others follow, also when it is the last that has a name.
  if (nlink === 1 && end === size) return;
  const part = `${path}${PART}`;
  try {
    // The name may be a link that a crash left: what it is a link to stays as it is.
    await rm(part, { force: true });
    if (trailer === null || end === size) await copyFile(path, part);
    else await copySpans(path, part, await spansOf(path, trailer));
    await syncFile(part);
    await publishDurably(part, path);
  } catch (thrown) {
    await rm(part, { force: true }); // A full disk must not be filled further.
    throw thrown;
  }
}

function endOf({ offset, length }: Span): number {
  return offset + length;
}

/** The input, and from the first batch to the end of the trailer; all that there is when the row index does not tell where the first one begins. */
async function spansOf(path: string, { rows, input, footer }: Trailer): Promise<readonly Span[]> {
  const first = await beginningOf({ path, span: rows }).catch((thrown: unknown) => {
    if (!(thrown instanceof SyntaxError)) throw thrown;
    return 0;
  });
  const offset = Math.max(0, first);
  const own = { offset, length: endOf(footer) - offset };
  return input === null ? [own] : [input, own];
}

async function copySpans(from: string, to: string, spans: readonly Span[]): Promise<void> {
  await writeFile(to, "", { flag: "wx" });
  for (const span of spans) await copySpan(from, span, to, span.offset);
}

async function copySpan(from: string, span: Span, to: string, offset: number): Promise<void> {
  await pipeline(openKept(from, span), createWriteStream(to, { flags: "r+", start: offset }));
}

/** End of the name of a segment that is made again, until it is known to be the same; behind it `ROWS`. */
export const AGAIN = `.again${PART}`;

/** Where a batch lies, and where it is to lie. */
export interface Move {
  readonly from: BatchSlice;
  readonly to: BatchSlice;
}

/**
 * Gives a segment that was made again its name, and its row index, with the batches where they are to lie: durably, and a crash leaves the one of before or
 * this one. Throws `TransientError` when the disk refuses.
 */
export async function publishAgain(again: string, path: string, moves: readonly Move[]): Promise<void> {
  const isInPlace = moves.every(({ from, to }) => from.offset === to.offset);
  const laid = isInPlace ? again : `${again}${PART}`;
  try {
    if (!isInPlace) await layOut(again, laid, moves);
    await publishDurably(`${laid}${ROWS}`, `${path}${ROWS}`);
    await publishDurably(laid, path);
  } catch (cause) {
    if (systemCode(cause) === undefined) throw cause;
    throw new TransientError("HG-SPOOL-004", {
      operation: "make segment again",
      subject: path,
      message: `the spool cannot be written: ${wordsOf(cause)}`,
      cause,
    });
  }
}

/** What is left of it. */
export async function discardAgain(again: string): Promise<void> {
  for (const path of [again, `${again}${PART}`])
    for (const end of ["", ROWS]) await rm(`${path}${end}`, { force: true });
}

async function layOut(again: string, laid: string, moves: readonly Move[]): Promise<void> {
  await writeFile(laid, "");
  for (const { from, to } of moves) await copySpan(again, from, laid, to.offset);
  // The children of later splits come behind whatever there was in what it was lost from: another node may have that still, and put them there as well.
  await truncate(laid, Math.max(PACK_MAX, ...moves.map(({ to }) => to.offset + to.length)));
  await writeFile(`${laid}${ROWS}`, rowsMoved(again, moves));
  await syncFile(laid);
  await syncFile(`${laid}${ROWS}`);
}

/** The lines of the row index, with where the batches are. */
async function* rowsMoved(again: string, moves: readonly Move[]): AsyncGenerator<string> {
  let nth = 0;
  for await (const line of linesOf({ path: `${again}${ROWS}` })) {
    yield `${JSON.stringify({ ...(JSON.parse(line) as object), offset: moves[nth]?.to.offset })}\n`;
    nth += 1;
  }
}
