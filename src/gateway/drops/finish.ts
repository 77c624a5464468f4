/** Finishes a source file (archives, deletes or leaves it), in the same way for every kind of drop. */

import { createHash } from "node:crypto";
import { posix } from "node:path";
import { TransientError } from "#core/errors.ts";
import { faultPoint } from "#core/faults.ts";
import { hasEscapes } from "#core/file-names.ts";
import type { Logger } from "#core/log.ts";
import type { FileEntry, FinishPlan, FinishResult, FinishRule } from "../model.ts";
import { insideDrop, OWN_PREFIX } from "./paths.ts";

/** The operations that a drop needs for its files. Paths are relative to the drop's root. */
export interface SourceFiles {
  stat(path: string): Promise<FileEntry | null>;
  /** Creates all folders of the path; an existing folder is no error. */
  makeFolder(path: string): Promise<void>;
  /**
   * Renames where the server can; must not overwrite as far as that can be avoided. Returns the status of the
   * new file where it had to be copied, since a copy has a time of its own.
   */
  move(from: string, to: string): Promise<FileEntry | null>;
  remove(path: string): Promise<void>;
  /** Whether two files have the same bytes; absent where that would need a transfer. */
  sameContent?(one: string, other: string): Promise<boolean>;
  /**
   * Renames on one volume; false, and nothing was changed, when the two are on different ones. Absent where
   * `move` never copies.
   */
  rename?(from: string, to: string): Promise<boolean>;
  /**
   * Renames without ever overwriting; false, and nothing was changed, when the path exists. Absent where that
   * is impossible.
   */
  restore?(from: string, to: string): Promise<boolean>;
  /**
   * Identifies a file beyond its name (on local drops device and inode), or null; absent where the drop has
   * no identity.
   */
  identity?(path: string): Promise<string | null>;
  /**
   * The process that has a file open for writing, in words, or null; absent where the system does not report
   * it.
   */
  writer?(path: string): Promise<string | null>;
  /** Whether an error means a missing permission. */
  isRefused?(thrown: unknown): boolean;
}

/** Limit in bytes: the lowest that common file systems have for one name. */
const NAME_BYTES_MAX = 255;

/** Refuses a plan for a file that would leave the drop. */
export function planInside(drop: string, { path }: Pick<FileEntry, "path">, plan: FinishPlan): void {
  insideDrop(drop, path);
  if (plan.action === "archive") insideDrop(drop, plan.to);
}

/**
 * See `Drop.finish`. A file for deletion is first set aside, so that a new upload at its path is never
 * deleted.
 */
export async function finishSource(
  drop: { readonly name: string; readonly log: Logger },
  files: SourceFiles,
  entry: FileEntry,
  plan: FinishPlan,
): Promise<FinishResult> {
  if (plan.action === "leave") return "done";
  const writer = (await files.writer?.(entry.path)) ?? null;
  if (writer !== null) throw stillWritten(drop, entry, writer);
  const to = plan.action === "archive" ? plan.to : asideName(entry, plan);
  const places = [{ place: to, mayBeCopied: files.rename !== undefined }];
  const moved = await moveVerified<never>(drop, files, entry, { places, byIdentity: false }, async () => {
    await files.makeFolder(posix.dirname(to));
    faultPoint("drops.finish.before-rename");
    const copied = await files.move(entry.path, to);
    faultPoint("drops.finish.after-rename");
    return { place: to, copied };
  });
  if (moved.result === "done" && plan.action === "delete") await files.remove(to);
  if (moved.result === "overtaken") return await returnOvertaken(drop, files, entry, to);
  // A deletion has succeeded when the file is missing; after a crash it is unknown which process deleted it.
  return moved.result === "gone" && plan.action === "delete" ? "done" : moved.result;
}

/**
 * `overtaken`: an earlier attempt moved another version than the planned one, and a third one is at the path
 * now. `place` is where the moved file is; null when there is none.
 */
export interface Moved {
  readonly result: FinishResult | "overtaken";
  readonly place: string | null;
}

/** A place that a file is moved to. */
export interface MovePlace {
  readonly place: string;
  /**
   * An earlier attempt may have copied the file to it, and a copy has a time of its own: only its size
   * identifies it.
   */
  readonly mayBeCopied: boolean;
}

/**
 * Moves a file from its path to one of `places`, and checks there that it is the planned version; another
 * version returns to the path. It can be repeated after a crash and after a lost response: no other file has
 * these names, so a file at one of the places was moved there by an earlier attempt, which may not have
 * reached its check.
 *
 * @param byIdentity Whether the moved file must also have the identity of the file at the path.
 * @param move Returns the present place of the file, with its status when it had to be copied; null when it
 * must not be moved.
 */
export async function moveVerified<Refused extends null>(
  drop: { readonly name: string; readonly log: Logger },
  files: SourceFiles,
  entry: FileEntry,
  { places, byIdentity }: { readonly places: readonly MovePlace[]; readonly byIdentity: boolean },
  move: () => Promise<{ readonly place: string; readonly copied: FileEntry | null } | Refused>,
): Promise<Moved | Refused> {
  const source = await files.stat(entry.path);
  const earlier = await firstThere(files, places);
  const isAtPath = source !== null && sameVersion(source, entry);
  if (earlier !== null) {
    const { place, mayBeCopied, found } = earlier;
    if (isAtPath) return { place, result: await settleLeftover(drop, files, entry, place) };
    const isPlanned = mayBeCopied ? found.size === entry.size : sameVersion(found, entry);
    if (isPlanned) return { place, result: "done" };
    if (source !== null) return { place, result: "overtaken" };
    return { place: null, result: await returnOvertaken(drop, files, entry, place) };
  }
  if (source === null) return { place: null, result: "gone" };
  if (!isAtPath) return { place: null, result: "changed" };
  const identityAt = async (path: string) => (byIdentity ? ((await files.identity?.(path)) ?? null) : null);
  const identity = await identityAt(entry.path);
  const to = await move();
  if (to === null) return to;
  const { place, copied } = to;
  const found = copied ?? (await files.stat(place));
  const isIdentical = copied !== null || (await identityAt(place)) === identity;
  if (found !== null && sameVersion(found, entry) && isIdentical) return { place, result: "done" };
  return { place: null, result: await returnOvertaken(drop, files, entry, place) };
}

async function firstThere(
  files: SourceFiles,
  places: readonly MovePlace[],
): Promise<(MovePlace & { readonly found: FileEntry }) | null> {
  for (const one of places) {
    const found = await files.stat(one.place);
    if (found !== null) return { ...one, found };
  }
  return null;
}

function stillWritten(drop: { readonly name: string }, entry: FileEntry, writer: string): TransientError {
  return new TransientError("HG-DROP-009", {
    operation: "finish source file",
    subject: `${drop.name}: ${entry.path}`,
    message: `${entry.path} in drop ${drop.name} is not archived or deleted yet: ${writer} has it open for writing`,
    hint: "It is retried. With `finish.guard` above 0 a file waits for its writer without a waiting run.",
  });
}

/** Both exist: a copy across volumes was interrupted before the source was removed. */
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
    message: `${entry.path} cannot be moved to ${to} in drop ${drop.name}: another file is there`,
    hint: "Archived files are never overwritten. Move that file away.",
  });
}

/** Another upload arrived between check and move: the moved file is not the delivered one. */
async function returnOvertaken(
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

/** A still newer upload is at the path, which would have replaced the archived one anyway. */
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

// Plans the place and name of a finished source file.

/**
 * The plan for a file. An archived file keeps its folder and its extension, and carries `tag` (the run id, or
 * the arrival where there is no run): `in/a.csv` becomes `archive/in/a.<tag>.csv`, a name that no other file
 * has.
 */
export function planFinish(rule: FinishRule, entry: Pick<FileEntry, "path">, tag: string): FinishPlan {
  // A file whose name has escapes stays in its place until it is renamed.
  if (rule.action === "leave" || hasEscapes(entry.path)) return { action: "leave" };
  if (rule.action === "delete") return { action: "delete", tag };
  const { dir, name, ext } = posix.parse(entry.path);
  const suffix = Buffer.byteLength(ext) > 32 ? "" : ext;
  const stem = suffix === ext ? name : name + ext;
  const room = NAME_BYTES_MAX - Buffer.byteLength(`.${tag}${suffix}`);
  return { action: "archive", to: posix.join(rule.to, dir, `${shorten(stem, room)}.${tag}${suffix}`) };
}

/**
 * Name of a file between its removal from its path and its deletion or archiving; the same for the same
 * version of the file and the same plan.
 */
export function asideName(entry: FileEntry, plan: FinishPlan): string {
  const target = plan.action === "archive" ? plan.to : plan.action === "delete" ? plan.tag : undefined;
  const version = `${entry.path}\0${entry.size}\0${entry.mtime}${target === undefined ? "" : `\0${target}`}`;
  const digest = createHash("sha256").update(version).digest("hex");
  const name = plan.action === "archive" ? "archiving" : "deleting";
  return posix.join(posix.dirname(entry.path), `${OWN_PREFIX}${name}-${digest.slice(0, 24)}`);
}

function shorten(text: string, bytesMax: number): string {
  if (Buffer.byteLength(text) <= bytesMax) return text;
  let short = "";
  let bytes = 0;
  for (const character of text) {
    bytes += Buffer.byteLength(character);
    if (bytes > bytesMax) break;
    short += character;
  }
  return short;
}
