/**
 * Finished files that changed and cannot go back to their paths, since other files are there: their new content is
 * not taken until the path is free or a person acts. Health, `runs --waiting`, `--until-idle` and notifications
 * describe them in these words.
 */
import type { FinishedFile, Ledger } from "../ledger/ledger.ts";
import type { HealthPart, WaitingFile } from "./state-of-work.ts";

export type OccupiedLedger = Pick<Ledger, "finishedFiles">;

export function occupiedWords({ drop, path, place, runId }: FinishedFile): string {
  const run = runId === null ? "" : ` (run ${runId})`;
  return (
    `${path} at ${drop}${run} changed after it was finished, and its new content is not taken: it waits at ` +
    `${place}, since another file is at its path. It goes back by itself when ${path} is free: see to the file ` +
    `there, or move it away; or move the one at ${place} into the drop under a new name`
  );
}

/** The gateway is ready all the same: other files are processed. */
export async function occupiedHealth({ finishedFiles }: OccupiedLedger): Promise<readonly HealthPart[]> {
  const files = await finishedFiles.occupied();
  const [first] = files;
  if (first === undefined) return [];
  const others = files.length === 1 ? "" : `; ${files.length - 1} more wait likewise`;
  return [{ part: "finished files", ready: true, reason: `${occupiedWords(first)}${others}` }];
}

export function waitingAsOccupied(file: FinishedFile, eventsArrive: boolean | null): WaitingFile {
  const { drop, path, runId } = file;
  const reason = occupiedWords(file);
  const since = file.occupiedSince ?? file.begunAt;
  return { drop, path, state: "occupied", since, reason, runId, overdue: true, eventsArrive };
}
