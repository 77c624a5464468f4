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
  /** Delivered before, with other bytes now. */
  readonly changed: readonly HistoryFile[];
  /** Delivered before, with the same bytes and another time. */
  readonly touched: readonly { readonly arrivalId: number; readonly mtime: string }[];
  /** Runs of files that are held, and have another size or time now. */
  readonly replaced: readonly string[];
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

/**
 * `ledger` null: the migration is new. `isSame` compares the bytes of a file with those of an arrival of the same
 * size.
 */
export async function standingOf(
  files: readonly HistoryFile[],
  ledger: Ledger | null,
  isSame: (file: HistoryFile, arrival: Arrival) => Promise<boolean>,
): Promise<Standing> {
  const standing = {
    ...{ files, done: 0, changed: [] as HistoryFile[] },
    touched: [] as Standing["touched"][number][],
    replaced: [] as string[],
  };
  if (ledger === null) return standing;
  for (const file of files) {
    const arrivals = await ledger.arrivalsAt(file.path, file.drop);
    const latest = arrivals.at(-1);
    const run = latest === undefined ? null : await ledger.runOf(latest.id);
    if (latest !== undefined && run?.state === "held" && !isListedAs(file, latest)) standing.replaced.push(run.id);
    const before = await deliveredBefore(arrivals, ledger);
    if (before === null) continue;
    const { arrival, isWhole } = before;
    if (!isListedAs(file, arrival)) {
      const isTouched = arrival.size === file.size && (await isSame(file, arrival));
      if (!isTouched) standing.changed.push(file);
      else standing.touched.push({ arrivalId: arrival.id, mtime: file.mtime });
      if (!isTouched) continue;
    }
    if (isWhole) standing.done += 1;
  }
  return standing;
}

function isListedAs(file: HistoryFile, { size, mtime }: Arrival): boolean {
  return size === file.size && mtime === file.mtime;
}

/** Of an opened container, some entries may have been delivered. */
function isDeliveredOrOpened({ state }: Run): boolean {
  return RUN_STATES[state].isAccepted || state === "opened";
}

async function deliveredBefore(
  arrivals: readonly Arrival[],
  ledger: Ledger,
): Promise<{ readonly arrival: Arrival; readonly isWhole: boolean } | null> {
  for (const arrival of arrivals.toReversed()) {
    const run = await ledger.runOf(arrival.id);
    if (run !== null && isDeliveredOrOpened(run))
      return { arrival, isWhole: run.state !== "opened" || run.finishedAt !== null };
  }
  return null;
}
