/**
 * The contract of a drop. `local`, `sftp` and `ftp` pass the same conformance suite (`test/drops/conformance.ts`).
 *
 * A drop connects lazily, at its first call, and again by itself after a lost connection. It knows nothing of the ledger,
 * of settling or of triggers; `pickup.ts` does. Paths are relative to the drop's root; a path that would leave it is refused.
 *
 * Errors: `TransientError` when the server or the folder cannot be reached now (the next poll tries again),
 * `ConfigError` when a person has to act (credentials, host key, a folder that does not exist),
 * `RejectedError` when this one file cannot be had (vanished, not permitted). Anything else is a bug.
 */
import type { DropKind, FetchedFile, FileEntry, FinishPlan, FinishResult } from "../model.ts";
import type { Logger } from "../support/log.ts";
import { onlyOne, type Settled } from "../support/settled.ts";
import type { SourceFiles } from "./finish.ts";
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

  /** Whether lists of files take less than the same files one by one. */
  readonly gainsByLists?: boolean;

  /** Only of a drop that others connect to; once, before the first listing. Answers where it can be reached. Throws `ConfigError`. */
  open?(): Promise<string>;

  /** Only of a drop that knows more of a file than its path: how it came. Null when it knows no such file. Files of other drops came by SendViaFtp. */
  provenance?(path: string): Promise<Provenance | null>;

  /**
   * Every file under the root that the drop's include and exclude patterns let through, as it lies there now, in any order.
   * Streamed: an entry may be handed out before the listing is complete, and only a listing that ends without
   * an error is complete. The drop's own archive folder is never listed. Not called again before the last call has ended.
   * `onFolder` hears of each folder, once all of its files were handed out; a folder that went meanwhile is not told.
   */
  list(signal: AbortSignal, onFolder?: OnFolder): AsyncIterable<FileEntry>;

  /** The file as it lies there now, or null. */
  stat(path: string, signal: AbortSignal): Promise<FileEntry | null>;

  /**
   * Copies the bytes of the entries into the one local file `destination` (made, or overwritten), each to a place of its own; the bytes of one entry
   * alone begin at 0 and are synced, several are synced by whoever keeps them. Answers for each in the order given; what lies in the file of one that
   * could not be fetched is of no meaning. Verified for each: as many bytes as `entry.size`, and size and mtime still the same afterwards; otherwise `TransientError`,
   * so that the file settles again. A connection that breaks on the way is taken up again at the byte reached. May run concurrently with other fetches of the same drop, as far as the drop allows.
   */
  fetch(
    entries: readonly FileEntry[],
    destination: string,
    signal: AbortSignal,
  ): Promise<readonly Settled<FetchedPart>[]>;

  /**
   * Does to each source file what its plan says, and answers for each in the order given. Idempotent: after a crash it is called again with the same plan
   * and answers `done`. A file with another size or mtime than `entry` is not touched (`changed`). An archive destination is never overwritten.
   */
  finish(planned: readonly FinishPlanned[], signal: AbortSignal): Promise<readonly Settled<FinishResult>[]>;

  /** The first half of `finish` (`set-aside.ts`) for a list, where the drop does that for less than each would take by itself. */
  setAside?(planned: readonly FinishPlanned[], signal: AbortSignal): Promise<readonly Settled<SetAside>[]>;

  /**
   * Lends the few steps by which files are moved at the drop, for finishing in halves (`set-aside.ts`). `path` is what an error is about.
   * Errors are those of `finish`. Absent where nothing can be moved, as at the HTTP intake.
   */
  withFiles?<T>(
    path: string,
    signal: AbortSignal,
    work: (files: SourceFiles, log: Logger) => Promise<T>,
  ): Promise<T>;

  /**
   * Deletes files of an archive folder that are old, up to a number of them; answers how many it deleted. Files in
   * folders below count as well; a folder that does not exist holds none. Absent where a drop has no archive.
   */
  clearArchive?(
    folder: string,
    isOld: (path: string) => boolean,
    limit: number,
    signal: AbortSignal,
  ): Promise<number>;

  /** Every file in a folder of an archive and below it, in groups. Absent where a drop has no archive. */
  listArchive?(folder: string, signal: AbortSignal): AsyncIterable<readonly FileEntry[]>;

  /** Unix milliseconds of the last change as the server's clock tells them; null where a listing tells no full date. */
  modifiedMs(entry: FileEntry): number | null;

  /**
   * For `headgate check`: connects, lists once (`onEntry` hears of each file, and how it came), tries what it may do with a file of its own, and
   * says in words what was found. Nothing of a trial stays, and no gateway takes it. Faults of the drop are findings.
   */
  probe(
    signal: AbortSignal,
    onEntry?: (entry: FileEntry, provenance?: Provenance) => void,
  ): Promise<readonly ProbeFinding[]>;

  /** Calls back when something may have changed, to poll sooner. Never the truth (invariant 9). Answers how to stop. */
  watch?(onChange: () => void): () => Promise<void>;

  /** Whether such events arrive, as was tested when watching began; null while not known. */
  eventsArrive?(): boolean | null;

  /** Ends connections, watchers and timers. Calls in progress fail with `TransientError`. */
  close(): Promise<void>;
}

/** A folder relative to the root, which is "", and the folders in it that are looked into. */
export type OnFolder = (folder: string, below: readonly string[]) => void;

/** One of the files that were fetched into one. */
export interface FetchedPart extends FetchedFile {
  /** Of its first byte. */
  readonly offset: number;
}

/** A source file, and what becomes of it. */
export interface FinishPlanned {
  readonly entry: FileEntry;
  readonly plan: FinishPlan;
}

/** A list of one: see `Drop.fetch`. Throws why it could not be fetched. */
export async function fetchFile(
  drop: Pick<Drop, "fetch">,
  entry: FileEntry,
  destination: string,
  signal: AbortSignal,
): Promise<FetchedFile> {
  const { bytes, sha256 } = await onlyOne(drop.fetch([entry], destination, signal));
  return { bytes, sha256 };
}

/** A list of one: see `Drop.finish`. Throws why it could not be finished. */
export function finishFile(
  drop: Pick<Drop, "finish">,
  entry: FileEntry,
  plan: FinishPlan,
  signal: AbortSignal,
): Promise<FinishResult> {
  return onlyOne(drop.finish([{ entry, plan }], signal));
}

/** How a file came to the HTTP intake. */
export interface Provenance {
  readonly ingestionType: "SendViaHttp" | "UploadInStorage";
  /** The service that its sender is bound to. */
  readonly service: string;
  /** Goes in front of the operation ids, so that the sender's own id finds them. */
  readonly operationPrefix: string;
  /** The guid that names its trigger; file name patterns count for nothing then. */
  readonly token?: string;
  /** Settings of the mapper, when it is the body of a push, which needs no trigger. */
  readonly standardBody?: Readonly<Record<string, unknown>>;
}

export interface ProbeFinding {
  /** `failed` makes `check` exit 1. */
  readonly level: "ok" | "warning" | "failed";
  /** What it is about, in a word or two: `server`, `host key`, `listing`, `clock`, `rights`, … */
  readonly about: string;
  readonly what: string;
  readonly hint?: string;
}
