/**
 * The contract of a drop. `local`, `sftp` and `ftp` pass the same conformance suite
 * (`test/drops/conformance.ts`).
 *
 * A drop connects lazily, at its first call, and again by itself after a lost connection. It does not know
 * the ledger, settling or triggers, which `pickup.ts` connects. Paths are relative to the drop's root; a path
 * that would leave it is refused.
 *
 * Errors: `TransientError` when the server or the folder cannot be reached now (the next poll tries again),
 * `ConfigError` when the operator has to act (credentials, host key, a folder that does not exist),
 * `RejectedError` when this one file is unavailable (vanished, not permitted). Anything else is a bug.
 */

import type { Logger } from "#core/log.ts";
import { onlyOne, type Settled } from "#core/settled.ts";
import type { IngestionType } from "#wire/trigger.ts";
import type { DropKind, FetchedFile, FileEntry, FinishPlan, FinishResult } from "../model.ts";
import type { ArchiveClearing } from "./archive-cleanup.ts";
import type { SourceFiles } from "./finish.ts";
import type { FilePut, PutFile } from "./put-file.ts";
import type { SetAside } from "./set-aside.ts";

export { archivedRun } from "./archive-cleanup.ts";
export {
  completeFinish,
  type Inspected,
  inspectFile,
  putBack,
  type SetAside,
  setAside,
  setFileAside,
} from "./set-aside.ts";

export interface Drop {
  readonly name: string;
  readonly kind: DropKind;

  /** Whether a list of files costs less than the same files one by one. */
  readonly gainsByLists?: boolean;

  /** A file that no trigger claims is offered again only when the drop lists it as another version. */
  readonly offersOnce?: boolean;

  /**
   * For a drop that senders connect to; called once, before the first listing. Returns the address at which
   * it can be reached. Throws `ConfigError`.
   */
  open?(): Promise<string>;

  /**
   * For a drop that knows how a file came, and not only its path. Null for an unknown file. Files of other
   * drops came by SendViaFtp.
   */
  provenance?(path: string): Promise<Provenance | null>;

  /**
   * Every file under the root that matches the drop's include and exclude patterns, in its present version,
   * in any order. Streamed in groups: a group may be returned before the listing is complete, and only a listing that
   * ends without an error is complete. A group that is the same object as one of the listing before shows that nothing
   * changed in it. The drop's own archive folder is never listed. Only one listing runs at a time. `onFolder` is called
   * for each folder, once all of its files were returned; a folder that vanished meanwhile is left out.
   */
  list(signal: AbortSignal, onFolder?: OnFolder): AsyncIterable<readonly FileEntry[]>;

  /** The present version of the file, or null. */
  stat(path: string, signal: AbortSignal): Promise<FileEntry | null>;

  /**
   * Copies the bytes of the entries into the one local file `destination` (created, or overwritten), each to
   * a place of its own; the bytes of a single entry begin at 0 and are synced, those of several are synced by
   * the caller. Returns a result for each in the given order; the place of an entry that could not be fetched
   * has undefined content. Each is verified: as many bytes as `entry.size`, and size and mtime unchanged
   * afterwards; otherwise `TransientError`, so that the file settles again. After a broken connection the
   * copy resumes at the byte reached. May run concurrently with other fetches of the same drop, as far as the
   * drop permits.
   */
  fetch(
    entries: readonly FileEntry[],
    destination: string,
    signal: AbortSignal,
  ): Promise<readonly Settled<FetchedPart>[]>;

  /**
   * Applies to each source file its plan, and returns a result for each in the given order. Idempotent: after
   * a crash it is called again with the same plan and returns `done`. A file with another size or mtime than
   * `entry` is not changed (`changed`). An archive destination is never overwritten.
   */
  finish(planned: readonly FinishPlanned[], signal: AbortSignal): Promise<readonly Settled<FinishResult>[]>;

  /**
   * The first half of `finish` (`set-aside.ts`) for a list, where the drop does that at a lower cost than one
   * by one.
   */
  setAside?(planned: readonly FinishPlanned[], signal: AbortSignal): Promise<readonly Settled<SetAside>[]>;

  /**
   * Lends the operations that move files at the drop, for finishing in halves (`set-aside.ts`). `path` is the
   * subject of errors, which are those of `finish`. Absent where files cannot be renamed, as at the HTTP
   * intake.
   */
  withFiles?<T>(path: string, signal: AbortSignal, work: (files: SourceFiles, log: Logger) => Promise<T>): Promise<T>;

  /**
   * Deletes old files of an archive folder, up to the limit; returns how many it deleted. Files in subfolders
   * count as well; a missing folder is empty. Absent where a drop has no archive.
   */
  clearArchive?(clearing: ArchiveClearing, signal: AbortSignal): Promise<number>;

  /** Every file in a folder of an archive and below it, in groups. Absent where a drop has no archive. */
  listArchive?(folder: string, signal: AbortSignal): AsyncIterable<readonly FileEntry[]>;

  /**
   * Unix milliseconds of the last change by the server's clock; null where a listing contains no full date.
   */
  modifiedMs(entry: FileEntry): number | null;

  /**
   * For `headgate check`: connects, lists once (`onEntry` receives each file, and how it came), tries the
   * permitted operations with a file of its own, and describes the findings. The trial removes its files, and
   * no gateway picks them up. Faults of the drop are findings.
   */
  probe(
    signal: AbortSignal,
    onEntry?: (entry: FileEntry, provenance?: Provenance) => void,
  ): Promise<readonly ProbeFinding[]>;

  /**
   * Takes a file that a person gives it, whole or not at all; it never replaces another. Absent where only
   * others put files. Throws `RejectedError` for a file that the drop would not pick up.
   */
  put?(file: PutFile): Promise<FilePut>;

  /**
   * Calls back when something may have changed, to poll sooner. Events are only hints (invariant 9). Returns
   * a function that stops it.
   */
  watch?(onChange: () => void): () => Promise<void>;

  /** Whether such events arrive, as tested when watching began; null while unknown. */
  eventsArrive?(): boolean | null;

  /** Ends connections, watchers and timers. Calls in progress fail with `TransientError`. */
  close(): Promise<void>;
}

/** A folder relative to the root, which is "", and its subfolders that the listing enters. */
export type OnFolder = (folder: string, below: readonly string[]) => void;

/** One of the files that were fetched into one local file. */
export interface FetchedPart extends FetchedFile {
  /** Offset of its first byte. */
  readonly offset: number;
}

/** A source file, and the plan for its finish. */
export interface FinishPlanned {
  readonly entry: FileEntry;
  readonly plan: FinishPlan;
}

/** Fetches a list of one: see `Drop.fetch`. Throws the error of the fetch. */
export async function fetchFile(
  drop: Pick<Drop, "fetch">,
  entry: FileEntry,
  destination: string,
  signal: AbortSignal,
): Promise<FetchedFile> {
  const { bytes, sha256 } = await onlyOne(drop.fetch([entry], destination, signal));
  return { bytes, sha256 };
}

/** Finishes a list of one: see `Drop.finish`. Throws the error of the finish. */
export function finishFile(
  drop: Pick<Drop, "finish">,
  entry: FileEntry,
  plan: FinishPlan,
  signal: AbortSignal,
): Promise<FinishResult> {
  return onlyOne(drop.finish([{ entry, plan }], signal));
}

/** How a file came to the HTTP intake, or to the hub. */
export interface Provenance {
  readonly ingestionType: IngestionType;
  /** The service that its sender is bound to. */
  readonly service: string;
  /** The sender and the way, in words. */
  readonly sender: string;
  /** Prefix of the operation ids, so that the sender's own id finds them. */
  readonly operationPrefix: string;
  /** Its operation ids name the trigger as well. */
  readonly namesTrigger?: true;
  /** The guid that names its trigger; file name patterns are ignored then. */
  readonly token?: string;
  /** Settings of the mapper, for the body of a push, which needs no trigger. */
  readonly standardBody?: Readonly<Record<string, unknown>>;
}

export interface ProbeFinding {
  /** `failed` makes `check` exit 1. */
  readonly level: "ok" | "warning" | "failed";
  /** The subject, in a word or two: `server`, `host key`, `listing`, `clock`, `rights`, … */
  readonly about: string;
  readonly what: string;
  readonly hint?: string;
}
