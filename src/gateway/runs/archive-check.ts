/**
 * Checks that archived files are what was fetched, and that files are where the ledger has them: a writer may have
 * continued with one after its guard had ended, or a person moved one, or while no gateway ran.
 */
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { HeadgateError, wordsOf } from "#core/errors.ts";
import { archivedRun, type Drop, fetchFile, putBack } from "../drops/drop.ts";
import type { Ledger, PlacedFile } from "../ledger/ledger.ts";
import { type FileEntry, finishedPlace, type Run } from "../model.ts";
import type { Finding } from "./consistency-check.ts";

export interface ArchiveCheckParts {
  readonly ledger: Ledger;
  /** Drops that can be asked. */
  readonly drops: readonly Drop[];
  /** Folders of a drop's archives, also former ones. */
  archives(drop: string): Promise<readonly string[]>;
  /** Whether the gateway has deleted an archived file since its time is over. */
  isExpired(drop: string, place: string): boolean;
  /** Folder for the bytes of a file whose content has to be compared. */
  readonly scratch: string;
  /** Whether a file that grew is moved back to its path. Only without a gateway. */
  readonly repair: boolean;
}

/** Milliseconds for one file. */
const FILE_MS = 600_000;
/** Milliseconds for one query to a drop. */
const STAT_MS = 30_000;
/** Arrivals in one query, and the queries to a drop at a time. */
const [READ_AT_ONCE, ASKED_AT_ONCE] = [500, 8];

export async function* checkArchives(parts: ArchiveCheckParts, signal: AbortSignal): AsyncGenerator<Finding> {
  for (const drop of parts.drops) {
    for (const folder of await parts.archives(drop.name))
      yield* orFault(drop, `the archive ${folder} cannot be listed`, checkFolder(drop, folder, parts, signal));
    // Afterwards, since a file that was found in an archive has its place then.
    yield* orFault(drop, "whether files are at their places cannot be asked", checkPlaces(drop, parts, signal));
  }
}

async function* orFault(drop: Drop, words: string, findings: AsyncIterable<Finding>): AsyncGenerator<Finding> {
  try {
    yield* findings;
  } catch (thrown) {
    if (!(thrown instanceof HeadgateError)) throw thrown;
    const what = `${words}: ${wordsOf(thrown)}`;
    yield { about: "archive", subject: `drop ${drop.name}`, what, remedy: null, repaired: false };
  }
}

/** Checks the places that the ledger names. */
async function* checkPlaces(drop: Drop, parts: ArchiveCheckParts, signal: AbortSignal): AsyncGenerator<Finding> {
  const { ledger, repair } = parts;
  let after: number | null = 0;
  while (after !== null && !signal.aborted) {
    const { files, next }: Awaited<ReturnType<Ledger["finishedFiles"]["placed"]>> = await ledger.finishedFiles.placed(
      drop.name,
      after,
      READ_AT_ONCE,
    );
    after = next;
    for (let at = 0; at < files.length; at += ASKED_AT_ONCE) {
      const some = files.slice(at, at + ASKED_AT_ONCE);
      const missing = await Promise.all(some.map((file) => isMissing(file, drop, parts, signal)));
      for (const { arrivalId, path, place } of some.filter((_, nth) => missing[nth])) {
        const what = `the ledger has it at ${place}, and there is no file`;
        const event = { what: "source.unwatched", detail: `it is no longer at ${place}; found by \`ledger check\`` };
        if (repair) await ledger.addEvent({ arrivalId, runId: null, operationId: null, ...event });
        const remedy = "its history notes that it is no longer there";
        yield { about: "archive", subject: `${path} at ${drop.name}`, what, remedy, repaired: repair };
      }
    }
  }
}

async function isMissing(
  { arrivalId, path, place }: PlacedFile,
  drop: Drop,
  { ledger, isExpired }: ArchiveCheckParts,
  signal: AbortSignal,
): Promise<boolean> {
  const isThere = (await drop.stat(place, AbortSignal.any([signal, AbortSignal.timeout(STAT_MS)]))) !== null;
  if (isThere || isExpired(drop.name, place)) return false;
  // The finish guard deletes a file that was set aside, or moves it on, before it records that.
  const watched = await ledger.finishedFiles.of(arrivalId);
  if (watched !== null && watched.plan.action !== "leave") return false;
  // A gateway that runs at the same time may have moved it meanwhile.
  return finishedPlace(path, await ledger.events(arrivalId)) === place;
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
      else yield* checkRecord(run, entry, drop, parts, signal);
    }
}

/** Checks that the ledger knows where an archived file is; that of an unfinished run is recorded with its finish. */
async function* checkRecord(
  run: Run,
  { path: place }: FileEntry,
  drop: Drop,
  { ledger, repair }: ArchiveCheckParts,
  signal: AbortSignal,
): AsyncGenerator<Finding> {
  const { arrivalId, path, finishedAt } = run;
  if (finishedAt === null) return;
  const recorded = finishedPlace(path, await ledger.events(arrivalId));
  const arrival = await ledger.arrival(arrivalId);
  if (recorded === place || arrival === null) return;
  const isElsewhere = recorded === null ? arrival.goneAt === null : (await drop.stat(recorded, signal)) !== null;
  const known = recorded !== null ? `it at ${recorded}` : isElsewhere ? "it at its drop" : "no place for it";
  const event = { what: "source.archived", detail: `${path} → ${place}` };
  const repaired = repair && !isElsewhere;
  if (repaired) await ledger.addEvent({ arrivalId, runId: run.id, operationId: null, ...event });
  yield {
    ...{ about: "archive", subject: `run ${run.id} of ${path}`, repaired },
    what: `the file is at ${place}, and the ledger has ${known}`,
    remedy: isElsewhere ? "remove the file that is not needed" : "its history notes its place",
  };
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
  const event = { what: "source.returned", detail: `${entry.path} → ${run.path}` };
  if (result === "done")
    await ledger.addEvent({ arrivalId: run.arrivalId, runId: run.id, operationId: null, ...event });
  const remedy =
    result === "occupied"
      ? `another file is at ${run.path}; it is moved back when that one has left`
      : watched !== null && !repair
        ? "the gateway fetches it again by itself, as long as it is guarded"
        : `it is moved back to ${run.path}, and fetched again as a whole`;
  const subject = `run ${run.id} of ${run.path}`;
  return { about: "archive", subject, what, remedy, repaired: result === "done" };
}
