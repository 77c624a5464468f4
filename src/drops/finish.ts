/** What happens to a source file at its end, the same for every kind of drop. */

import { posix } from "node:path";
import type { FileEntry, FinishPlan, FinishResult } from "../model.ts";
import { TransientError } from "../support/errors.ts";
import { faultPoint } from "../support/faults.ts";
import type { Logger } from "../support/log.ts";
import { asideName } from "./archive-name.ts";
import { insideDrop } from "./paths.ts";

/** The few things that a drop must be able to do with its files. Paths are relative to the drop's root. */
export interface SourceFiles {
  stat(path: string): Promise<FileEntry | null>;
  /** With all folders above; one that is there already is no error. */
  makeFolder(path: string): Promise<void>;
  /**
   * A rename where the server has one; must not overwrite as far as that can be had. Answers what was moved where it had to be copied,
   * since a copy has a time of its own.
   */
  move(from: string, to: string): Promise<FileEntry | null>;
  remove(path: string): Promise<void>;
  /** Whether two files hold the same bytes; absent where that would cost a transfer. */
  sameContent?(one: string, other: string): Promise<boolean>;
  /** A rename on one volume; false, and nothing was done, when the two are on different ones. Absent where `move` never copies. */
  rename?(from: string, to: string): Promise<boolean>;
  /** A rename that never overwrites; false, and nothing was done, when something is there. Absent where that cannot be had. */
  restore?(from: string, to: string): Promise<boolean>;
  /** What tells a file from another one of the same name, or null; absent where nothing does. */
  identity?(path: string): Promise<string | null>;
  /** The process that has a file open for writing, in words, or null; absent where that cannot be told. */
  writer?(path: string): Promise<string | null>;
  /** Whether an error says that something is not permitted. */
  isRefused?(thrown: unknown): boolean;
}

/** Refuses a plan for a file that would leave the drop. */
export function planInside(drop: string, { path }: Pick<FileEntry, "path">, plan: FinishPlan): void {
  insideDrop(drop, path);
  if (plan.action === "archive") insideDrop(drop, plan.to);
}

/** See `Drop.finish`. A file to be deleted is first moved aside, so that an upload that slips in is never what gets deleted. */
export async function finishSource(
  drop: { readonly name: string; readonly log: Logger },
  files: SourceFiles,
  entry: FileEntry,
  plan: FinishPlan,
): Promise<FinishResult> {
  if (plan.action === "leave") return "done";
  const writer = (await files.writer?.(entry.path)) ?? null;
  if (writer !== null) throw stillWritten(drop, entry, writer);
  if (plan.action === "archive") return moveVerified(drop, files, entry, plan.to);
  const aside = asideName(entry, plan);
  const moved = await moveVerified(drop, files, entry, aside);
  if (moved === "done") await files.remove(aside);
  // Deleting what is not there has reached its goal; after a crash nobody can tell who deleted it.
  return moved === "gone" ? "done" : moved;
}

async function moveVerified(
  drop: { readonly name: string; readonly log: Logger },
  files: SourceFiles,
  entry: FileEntry,
  to: string,
): Promise<FinishResult> {
  const source = await files.stat(entry.path);
  const there = await files.stat(to);
  if (source === null && there !== null && there.size !== entry.size)
    // A writer went on with the moved file after a crash: it comes back as a whole.
    return await returnOvertaken(drop, files, entry, to);
  if (source === null) return there === null ? "gone" : "done";
  if (!sameVersion(source, entry)) return there !== null && there.size === entry.size ? "done" : "changed";
  if (there !== null) return settleLeftover(drop, files, entry, to);
  await files.makeFolder(posix.dirname(to));
  faultPoint("drops.finish.before-rename");
  const copied = await files.move(entry.path, to);
  faultPoint("drops.finish.after-rename");
  const moved = copied ?? (await files.stat(to));
  if (moved !== null && sameVersion(moved, entry)) return "done";
  return returnOvertaken(drop, files, entry, to);
}

function stillWritten(drop: { readonly name: string }, entry: FileEntry, writer: string): TransientError {
  return new TransientError("HG-DROP-009", {
    operation: "finish source file",
    subject: `${drop.name}: ${entry.path}`,
    message: `${entry.path} in drop ${drop.name} is not archived or deleted yet: ${writer} has it open for writing`,
    hint: "It is tried again. With `finish.guard` above 0 a file waits for its writer without a waiting run.",
  });
}

/** Both are there: a copy across volumes was interrupted before the source was removed. */
export async function settleLeftover(
  drop: { readonly name: string },
  files: SourceFiles,
  entry: FileEntry,
  to: string,
): Promise<FinishResult> {
  if ((await files.sameContent?.(entry.path, to)) === true) {
    await files.remove(entry.path);
    return "done";
  }
  throw new TransientError("HG-DROP-009", {
    operation: "archive source file",
    subject: `${drop.name}: ${entry.path}`,
    message: `${entry.path} cannot be moved to ${to} in drop ${drop.name}: another file lies there`,
    hint: "Archived files are never overwritten. Move that file away.",
  });
}

/** Another upload slipped in between the look and the move: what was moved is not what was delivered. */
export async function returnOvertaken(
  drop: { readonly name: string; readonly log: Logger },
  files: SourceFiles,
  entry: FileEntry,
  to: string,
): Promise<FinishResult> {
  if ((await files.stat(entry.path)) === null) {
    await files.move(to, entry.path);
    return "changed";
  }
  warnOfOvertaken(drop, entry, to);
  return "changed";
}

/** A still newer upload lies at the path, which would have replaced the one that is archived anyway. */
export function warnOfOvertaken(
  drop: { readonly name: string; readonly log: Logger },
  entry: FileEntry,
  to: string,
): void {
  drop.log.warn(
    { drop: drop.name, path: entry.path, archived: to },
    "two uploads replaced a file while it was finished; the older one is in the archive and was not delivered",
  );
}

export function sameVersion(one: FileEntry, other: FileEntry): boolean {
  return one.size === other.size && one.mtime === other.mtime;
}
