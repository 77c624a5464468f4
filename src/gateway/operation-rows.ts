/** The rows of a file that gave the readings of an operation, for the program that the gateway is a part of. */
import type { Ledger } from "./ledger/ledger.ts";
import { spoolPlaces } from "./spool/paths.ts";
import { type PlacedReading, placedReadings } from "./spool/placed-readings.ts";
import { keptSegmentFiles, segmentFiles } from "./spool/segment-files.ts";
import type { Spool } from "./spool/spool.ts";

/** Readings that one answer lists. */
const READINGS_MAX = 1_000;

/**
 * The readings of the operation's batch at a date, as far as the spool of this node still has them; of a batch that was
 * split, those of its siblings, too.
 */
export async function placedAt(
  operationId: string,
  atMs: number,
  { ledger, spool }: { readonly ledger: Ledger; readonly spool: Pick<Spool, "root"> },
): Promise<readonly PlacedReading[]> {
  const run = await ledger.runOfOperation(operationId);
  if (run === null) return [];
  const batch = (await ledger.batches(run.id)).find((one) => one.operationId === operationId);
  const mapped = batch?.sequence.split(".")[0];
  if (mapped === undefined) return [];
  const places = spoolPlaces(spool.root);
  const found: PlacedReading[] = [];
  for (const files of [segmentFiles(places.segment(run.id)), keptSegmentFiles(places.keptOf(run.id))]) {
    for await (const placed of placedReadings(files, mapped)) {
      if (Date.parse(placed.reading.date) !== atMs) continue;
      found.push(placed);
      if (found.length === READINGS_MAX) return found;
    }
    if (found.length > 0) return found;
  }
  return found;
}
