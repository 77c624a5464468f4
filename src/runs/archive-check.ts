/**
 * Checks that archived files are what was fetched: a writer may have continued with one after its guard had
 * ended, or while no gateway ran.
 */
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { archivedRun, type Drop, fetchFile, putBack } from "../drops/drop.ts";
import type { Ledger } from "../ledger/ledger.ts";
import type { FileEntry, Run } from "../model.ts";
import { HeadgateError, wordsOf } from "../support/errors.ts";
import type { Finding } from "./consistency-check.ts";

export interface ArchiveCheckParts {
  readonly ledger: Ledger;
  /** Drops that can be asked. */
  readonly drops: readonly Drop[];
  /** Folders of a drop's archives, also former ones. */
  archives(drop: string): Promise<readonly string[]>;
  /** Folder for the bytes of a file whose content has to be compared. */
  readonly scratch: string;
  /** Whether a file that grew is moved back to its path. Only without a gateway. */
  readonly repair: boolean;
}

/** Milliseconds for one file. */
const FILE_MS = 600_000;

export async function* checkArchives(parts: ArchiveCheckParts, signal: AbortSignal): AsyncGenerator<Finding> {
  for (const drop of parts.drops)
    for (const folder of await parts.archives(drop.name)) {
      try {
        yield* checkFolder(drop, folder, parts, signal);
      } catch (thrown) {
        if (!(thrown instanceof HeadgateError)) throw thrown;
        const what = `the archive ${folder} cannot be listed: ${wordsOf(thrown)}`;
        yield { about: "archive", subject: `drop ${drop.name}`, what, remedy: null, repaired: false };
      }
    }
}

async function* checkFolder(
  drop: Drop,
  folder: string,
  parts: ArchiveCheckParts,
  signal: AbortSignal,
): AsyncGenerator<Finding> {
  for await (const files of drop.listArchive?.(folder, signal) ?? [])
    for (const entry of files) {
      const id = archivedRun(entry.path);
      const run = id === null ? null : await parts.ledger.run(id);
      if (run === null || run.drop !== drop.name) continue;
      const what = await differenceOf(run, entry, drop, parts, signal);
      if (what !== null) yield await findingOf(run, entry, what, drop, parts);
    }
}

/** Returns the difference in words, or null when the file is what was fetched. */
async function differenceOf(
  run: Run,
  entry: FileEntry,
  drop: Drop,
  { scratch }: ArchiveCheckParts,
  signal: AbortSignal,
): Promise<string | null> {
  if (entry.size !== run.size)
    return `the archived file ${entry.path} has ${entry.size} bytes, and ${run.size} were fetched`;
  if (run.sha256 === null || isSameTime(run, entry, drop)) return null;
  const copy = join(scratch, `checked-${drop.name}`);
  try {
    const limited = AbortSignal.any([signal, AbortSignal.timeout(FILE_MS)]);
    const { sha256 } = await fetchFile(drop, entry, copy, limited);
    return sha256 === run.sha256 ? null : `the archived file ${entry.path} has other content than was fetched`;
  } finally {
    await rm(copy, { force: true });
  }
}

/** A copy on another volume keeps its time only to the microsecond. */
function isSameTime(run: Run, entry: FileEntry, drop: Drop): boolean {
  if (run.mtime === entry.mtime) return true;
  const before = drop.modifiedMs({ ...entry, mtime: run.mtime });
  const now = drop.modifiedMs(entry);
  return before !== null && now !== null && Math.abs(before - now) <= 1;
}

async function findingOf(
  run: Run,
  entry: FileEntry,
  what: string,
  drop: Drop,
  { ledger, repair }: ArchiveCheckParts,
): Promise<Finding> {
  const watched = await ledger.finishedFiles.of(run.arrivalId);
  const result = repair ? await putBack(drop, entry.path, run.path, AbortSignal.timeout(FILE_MS)) : null;
  const remedy =
    result === "occupied"
      ? `another file is at ${run.path}; it is moved back when that one has left`
      : watched !== null && !repair
        ? "the gateway fetches it again by itself, as long as it is guarded"
        : `it is moved back to ${run.path}, and fetched again as a whole`;
  const subject = `run ${run.id} of ${run.path}`;
  return { about: "archive", subject, what, remedy, repaired: result === "done" };
}
