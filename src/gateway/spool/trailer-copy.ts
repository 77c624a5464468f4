/** Writes the trailer of a run once more, for a segment in which it has another place. */
import type { FileHandle } from "node:fs/promises";
import {
  endText,
  footerText,
  ROWS_BEGIN,
  type RowIndexLine,
  SealedLines,
  type SegmentRun,
} from "#mapping/segment/layout.ts";
import { storedRows } from "#mapping/segment/row-list.ts";
import { openKept } from "./kept-files.ts";
import { isWhole, rowsOf } from "./row-index.ts";
import type { FilePart } from "./segment-files.ts";

export interface TrailerParts {
  readonly rows: FilePart;
  readonly about: FilePart;
}

/**
 * Writes the trailer, a directory and an end at an offset of the file. `placed`: where the batches are now; by default
 * where the row index has them.
 */
export async function writeTrailer(
  file: FileHandle,
  batches: number,
  run: SegmentRun,
  { rows, about }: TrailerParts,
  placed: (line: RowIndexLine, nth: number) => number = ({ offset }) => offset,
): Promise<void> {
  let at = batches;
  const put = async (bytes: Buffer) => {
    await writeAt(file, bytes, at);
    at += bytes.length;
  };
  await put(Buffer.from("\n"));
  // With a new digest the lines of a damaged row index would be taken for those that were written.
  if (await isWhole(rows)) await putRows(rows, placed, put);
  else await putBytes(rows, put);
  const aboutAt = at;
  await putBytes(about, put);
  const footerAt = at;
  await put(Buffer.from(footerText(run, { batches, rows: aboutAt - batches - 1, about: footerAt - aboutAt })));
  await put(Buffer.from(endText(new Map([[run.runId, footerAt]]))));
}

type Put = (bytes: Buffer) => Promise<void>;

async function putRows(rows: FilePart, placed: (line: RowIndexLine, nth: number) => number, put: Put): Promise<void> {
  const lines = new SealedLines();
  await put(Buffer.from(lines.add(ROWS_BEGIN)));
  let nth = 0;
  for await (const line of rowsOf(rows)) {
    const { rows: known, sheetOf } = line;
    const stored = {
      ...line,
      offset: placed(line, nth),
      rows: storedRows(known),
      ...(sheetOf === undefined ? {} : { sheetOf: storedRows(sheetOf) }),
    };
    await put(Buffer.from(lines.add(`${JSON.stringify(stored)}\n`)));
    nth += 1;
  }
  await put(Buffer.from(lines.end()));
}

async function putBytes({ path, span }: FilePart, put: Put): Promise<void> {
  for await (const chunk of openKept(path, span) as AsyncIterable<Buffer>) await put(chunk);
}

export async function writeAt(file: FileHandle, bytes: Buffer, offset: number): Promise<void> {
  for (let done = 0; done < bytes.length; )
    done += (await file.write(bytes, done, bytes.length - done, offset + done)).bytesWritten;
}
