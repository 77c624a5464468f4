/** Reads the readings of a run in the order of its batches, each with the row of the file that it came from. */
import type { PushElement, PushReading } from "../model.ts";
import { parseBody } from "../segment/payloads.ts";
import { openKept } from "./kept-files.ts";
import { rowsOf } from "./row-index.ts";
import type { SegmentFiles } from "./segment-files.ts";

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
  for await (const { sequence, offset, length, rows: numbers, sheetOf, sheets } of rowsOf(rows)) {
    if (only !== undefined && sequence !== only) continue;
    const body = Buffer.concat((await openKept(segment, { offset, length }).toArray()) as Buffer[]);
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
