/** The segment of a run that comes to rest, with its row index and what it is about, on the way to what is kept of the run. */
import { renameSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { ROWS, readSpan, trailerAnywhere } from "../mapping/segment-layout.ts";
import { keepFile, sizeOf } from "./kept-files.ts";
import { ABOUT, PART, PLAIN_MAX } from "./spool-names.ts";

/**
 * Moves it there, or copies it compressed; `kept` is the path there without the end. One of which it was never told what it is about is found by no
 * search, but a replay asks for what was sent of it. A trailer goes with it, and is copied out of one that is compressed, so that a search need not
 * unpack it.
 */
export async function keepSegment(segment: string, kept: string): Promise<void> {
  const about = `${segment}${ABOUT}`;
  if (sizeOf(about) !== null || sizeOf(`${segment}${ROWS}`) !== null) {
    await keepFile(segment, kept, "segment", false);
    await keepFile(`${segment}${ROWS}`, kept, "rows", false);
    // Last, since a search begins with it.
    if (sizeOf(about) !== null) renameSync(about, `${kept}${ABOUT}`);
    return;
  }
  const size = sizeOf(segment);
  if (size === null) return;
  if (size <= PLAIN_MAX) {
    // No look is needed: all others have something beside them.
    await keepFile(segment, kept, "segment", false);
    return;
  }
  const trailer = trailerAnywhere(segment);
  if (trailer === null) return;
  await keepFile(segment, kept, "segment", false);
  await writeFile(`${segment}${ROWS}${PART}`, readSpan(segment, trailer.rows));
  await keepFile(`${segment}${ROWS}${PART}`, kept, "rows", false);
  await writeFile(`${kept}${ABOUT}${PART}`, readSpan(segment, trailer.about));
  renameSync(`${kept}${ABOUT}${PART}`, `${kept}${ABOUT}`);
}
