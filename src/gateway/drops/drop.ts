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

import { posix } from "node:path";
import { TransientError } from "#core/errors.ts";
import { faultPoint } from "#core/faults.ts";
import type { Logger } from "#core/log.ts";
import { onlyOne, type Settled, settleEach } from "#core/promises.ts";
import type { IngestionType } from "#wire/trigger.ts";
import type { DropKind, FetchedFile, FileEntry, FinishPlan, FinishResult } from "../model.ts";
import { asideName, moveVerified, type SourceFiles, sameVersion, settleLeftover } from "./finish.ts";
import type { ArchiveClearing } from "./paths.ts";
import type { FilePut, PutFile } from "./put-file.ts";

export { archivedRun } from "./paths.ts";

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
   * The first half of `finish` for a list, where the drop does that at a lower cost than one
   * by one.
   */
  setAside?(planned: readonly FinishPlanned[], signal: AbortSignal): Promise<readonly Settled<SetAside>[]>;

  /**
   * Lends the operations that move files at the drop, for finishing in halves. `path` is the
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

const DONE: FinishPlan = { action: "leave" };

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

// The end of a source file in two halves, for a file that is watched in between: first it is moved on its own
// volume, to its place in the archive or beside its path, and later deleted or copied to another volume. A
// writer that continues meanwhile writes into the moved file, where its bytes are found. Each function can be
// repeated after a crash.

/** `waits`: it stays at its path for now. */
export interface SetAside {
  readonly result: FinishResult | "waits";
  /** The present place of the file. */
  readonly place: string;
  /** The remaining plan. */
  readonly plan: FinishPlan;
  readonly identity: string | null;
  /** The reason for which the file stays at its path; empty otherwise. */
  readonly why: string;
}

export interface Inspected {
  readonly entry: FileEntry;
  readonly identity: string | null;
  /**
   * The process that has the file open for writing, in words; null when there is none or the system does not
   * report it.
   */
  readonly writer: string | null;
}

/**
 * The result for a file that the drop moved. The first check of the finish guard reads the identity of the
 * file.
 */
export function movedAside(entry: FileEntry, plan: FinishPlan): SetAside {
  const isArchived = plan.action === "archive";
  return {
    ...{ result: "done", identity: null, why: "" },
    place: isArchived ? plan.to : asideName(entry, plan),
    plan: isArchived ? DONE : plan,
  };
}

/** The first half, for each in the given order. A drop that cannot move files does the whole at once. */
export function setAside(
  drop: Drop,
  planned: readonly FinishPlanned[],
  signal: AbortSignal,
): Promise<readonly Settled<SetAside>[]> {
  return drop.setAside?.(planned, signal) ?? settleEach(planned, (one) => setOneAside(drop, one, signal));
}

/** Sets aside a list of one. Throws the error of the move. */
export function setFileAside(drop: Drop, { entry, plan }: FinishPlanned, signal: AbortSignal): Promise<SetAside> {
  return onlyOne(setAside(drop, [{ entry, plan }], signal));
}

/** For a drop that cannot do lists at a lower cost. */
export async function setOneAside(drop: Drop, { entry, plan }: FinishPlanned, signal: AbortSignal): Promise<SetAside> {
  if (drop.withFiles === undefined || plan.action === "leave") {
    const result = await finishFile(drop, entry, plan, signal);
    return { result, place: entry.path, plan: DONE, identity: null, why: "" };
  }
  return drop.withFiles(entry.path, signal, (files, log) => moveAside({ name: drop.name, log }, files, entry, plan));
}

async function moveAside(
  drop: { readonly name: string; readonly log: Logger },
  files: SourceFiles,
  entry: FileEntry,
  plan: Exclude<FinishPlan, { readonly action: "leave" }>,
): Promise<SetAside> {
  const aside = asideName(entry, plan);
  const stay = (result: SetAside["result"], why = ""): SetAside => ({
    ...{ result, place: entry.path, plan, identity: null, why },
  });
  // With a finish guard of 0s before, a crash may have left a copy in the archive.
  const archived = plan.action === "archive" ? [{ place: plan.to, mayBeCopied: files.rename !== undefined }] : [];
  const places = [...archived, { place: aside, mayBeCopied: false }];
  let writer: string | null = null;
  const moved = await moveVerified<null>(drop, files, entry, { places, byIdentity: true }, async () => {
    writer = (await files.writer?.(entry.path)) ?? null;
    const place = writer === null ? await tryMove(files, entry.path, plan, aside) : null;
    return place === null ? null : { place, copied: null };
  });
  if (moved === null && writer !== null) return stay("waits", `${writer} has it open for writing`);
  if (moved === null) return stay("waits", "the drop does not permit a rename");
  const { result, place } = moved;
  if (place === null) return stay(result === "overtaken" ? "changed" : result);
  // The moved version may be the file itself, grown since: the finish guard finds that and has its whole
  // content fetched again.
  return {
    ...{ result: result === "overtaken" ? "done" : result, place, why: "" },
    identity: (await files.identity?.(place)) ?? null,
    plan: place === aside ? plan : DONE,
  };
}

/** Returns where the file is then; null where a file that is to be deleted must not be renamed. */
async function tryMove(files: SourceFiles, from: string, plan: FinishPlan, aside: string): Promise<string | null> {
  const to = plan.action === "archive" ? plan.to : aside;
  if (plan.action === "archive") await files.makeFolder(posix.dirname(to));
  faultPoint("drops.finish.before-rename");
  try {
    const isThere = files.rename === undefined ? !(await files.move(from, to)) : await files.rename(from, to);
    if (!isThere) await files.rename?.(from, aside);
    faultPoint("drops.finish.after-rename");
    return isThere ? to : aside;
  } catch (thrown) {
    if (plan.action === "delete" && files.isRefused?.(thrown) === true) return null;
    throw thrown;
  }
}

/** The present file at a place, or null. */
export async function inspectFile(drop: Drop, place: string, signal: AbortSignal): Promise<Inspected | null> {
  const inspect = async (files: Pick<SourceFiles, "stat" | "identity" | "writer">) => {
    const entry = await files.stat(place);
    if (entry === null) return null;
    const identity = (await files.identity?.(place)) ?? null;
    return { entry, identity, writer: (await files.writer?.(place)) ?? null };
  };
  if (drop.withFiles === undefined) return inspect({ stat: (path) => drop.stat(path, signal) });
  return drop.withFiles(place, signal, inspect);
}

/**
 * The second half: deletes the file, or copies it to the archive on another volume. `changed` and `gone`
 * leave everything unchanged.
 */
export async function completeFinish(
  drop: Drop,
  file: FileEntry,
  plan: FinishPlan,
  signal: AbortSignal,
): Promise<FinishResult> {
  if (plan.action === "leave" || drop.withFiles === undefined) return "done";
  return drop.withFiles(file.path, signal, async (files) => {
    const there = await files.stat(file.path);
    const archived = plan.action === "archive" ? await files.stat(plan.to) : null;
    if (there === null) return plan.action === "delete" || archived !== null ? "done" : "gone";
    if (!sameVersion(there, file)) return "changed";
    if (plan.action === "delete") {
      await files.remove(file.path);
      return "done";
    }
    if (archived !== null) return settleLeftover(drop, files, file, plan.to);
    await files.makeFolder(posix.dirname(plan.to));
    await files.move(file.path, plan.to);
    return "done";
  });
}

/**
 * Returns a moved file to its path. `occupied`: another file is there, and nothing was changed; `gone`: the
 * file is not at its place.
 */
export async function putBack(
  drop: Drop,
  place: string,
  path: string,
  signal: AbortSignal,
): Promise<"done" | "occupied" | "gone"> {
  if (drop.withFiles === undefined)
    throw new TransientError("HG-DROP-009", {
      operation: "put source file back",
      subject: `${drop.name}: ${path}`,
    });
  return drop.withFiles(path, signal, async (files) => {
    if ((await files.stat(place)) === null) return "gone";
    if ((await files.stat(path)) !== null) {
      if (!(await isOneFile(files, place, path))) return "occupied";
      await files.remove(place);
      return "done";
    }
    await files.makeFolder(posix.dirname(path));
    if (files.restore !== undefined) return (await files.restore(place, path)) ? "done" : "occupied";
    await files.move(place, path);
    return "done";
  });
}

/** Two names of one file: a crash came between the new link and the removal of the old one. */
async function isOneFile(files: SourceFiles, one: string, other: string): Promise<boolean> {
  const identity = (await files.identity?.(one)) ?? null;
  return identity !== null && identity === (await files.identity?.(other));
}
