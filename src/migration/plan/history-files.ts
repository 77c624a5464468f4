/** The files of a history as they are now, and their states in the migration's ledger. */
import type { Drop } from "../../drops/drop.ts";
import type { Ledger } from "../../ledger/ledger.ts";
import type { Arrival, Run } from "../../model.ts";
import { RUN_STATES } from "../../states.ts";

export interface HistoryFile {
  readonly drop: string;
  readonly path: string;
  readonly size: number;
  readonly mtime: string;
}

export interface Standing {
  readonly files: readonly HistoryFile[];
  /** Delivered before, and unchanged. */
  readonly done: number;
  /** Delivered before, with another size or time now. */
  readonly changed: readonly HistoryFile[];
}

const names = new Intl.Collator("en", { numeric: true });

/** In the order in which they are taken: by name, numbers by their value. */
export async function listHistory(drops: readonly Drop[], signal: AbortSignal): Promise<readonly HistoryFile[]> {
  const files: HistoryFile[] = [];
  for (const drop of drops)
    for await (const entries of drop.list(signal))
      for (const { path, size, mtime } of entries) files.push({ drop: drop.name, path, size, mtime });
  return files.sort((one, other) => names.compare(one.path, other.path) || (one.drop < other.drop ? -1 : 1));
}

/** `ledger` null: the migration is new. */
export async function standingOf(files: readonly HistoryFile[], ledger: Ledger | null): Promise<Standing> {
  if (ledger === null) return { files, done: 0, changed: [] };
  let done = 0;
  const changed: HistoryFile[] = [];
  for (const file of files) {
    const before = await deliveredBefore(file, ledger);
    if (before === null) continue;
    const { arrival, isWhole } = before;
    if (arrival.size !== file.size || arrival.mtime !== file.mtime) changed.push(file);
    else if (isWhole) done += 1;
  }
  return { files, done, changed };
}

/** Of an opened container, some entries may have been delivered. */
function isDeliveredOrOpened({ state }: Run): boolean {
  return RUN_STATES[state].isAccepted || state === "opened";
}

async function deliveredBefore(
  { path, drop }: HistoryFile,
  ledger: Ledger,
): Promise<{ readonly arrival: Arrival; readonly isWhole: boolean } | null> {
  for (const arrival of (await ledger.arrivalsAt(path, drop)).toReversed()) {
    const run = await ledger.runOf(arrival.id);
    if (run !== null && isDeliveredOrOpened(run))
      return { arrival, isWhole: run.state !== "opened" || run.finishedAt !== null };
  }
  return null;
}
