/** Reads the readings of a run in the order of its batches, each with the row of the file that it came from. */

import type { RowIndexLine } from "#mapping/segment/layout.ts";
import { Bytes, parseBody } from "#mapping/segment/payloads.ts";
import type { PushElement, PushReading } from "../model.ts";
import { openKept } from "./kept-files.ts";
import { rowsOf } from "./row-index.ts";
import type { FilePart, SegmentFiles } from "./segment-files.ts";

export interface PlacedReading {
  readonly element: PushElement;
  readonly reading: PushReading;
  /** Line or row; null when it is not known. */
  readonly row: number | null;
  readonly sheet: string | null;
}

/**
 * None where the segment or its row index is missing. Memory holds one batch. `only`: the sequence of the one batch
 * that is read.
 */
export async function* placedReadings({ segment, rows }: SegmentFiles, only?: string): AsyncGenerator<PlacedReading> {
  if (segment === null || rows === null) return;
  for await (const [{ rows: numbers, sheetOf, sheets }, body] of bodiesWith(rows, segment, only)) {
    let position = -1;
    for (const element of parseBody(body))
      for (const reading of element.data) {
        position += 1;
        const row = numbers[position] ?? 0;
        const sheet = sheets?.[String(sheetOf?.[position])] ?? "";
        yield { element, reading, row: row === 0 ? null : row, sheet: sheet === "" ? null : sheet };
      }
  }
}

/** Lines of the index with their batches; the segment, which may be compressed, is read once. */
export async function* bodiesWith(
  rows: FilePart,
  segment: string,
  only?: string,
): AsyncGenerator<readonly [RowIndexLine, Buffer]> {
  let bytes: Bytes | undefined;
  let at = 0;
  try {
    for await (const line of rowsOf(rows)) {
      const { sequence, offset, length } = line;
      if (only !== undefined && sequence !== only) continue;
      if (bytes === undefined) bytes = new Bytes(openKept(segment, { offset, length: Number.POSITIVE_INFINITY }));
      else await bytes.skip(offset - at);
      at = offset + length;
      yield [line, await bytes.take(length)];
    }
  } finally {
    bytes?.close();
  }
}
