/**
 * The end of a source file in two halves, for a file that is watched in between: first it is moved on its own
 * volume, to its place in the archive or beside its path, and later deleted or copied to another volume. A
 * writer that continues meanwhile writes into the moved file, where its bytes are found. Each function can be
 * repeated after a crash.
 */
import { posix } from "node:path";
import { TransientError } from "#core/errors.ts";
import { faultPoint } from "#core/faults.ts";
import type { Logger } from "#core/log.ts";
import { onlyOne, type Settled, settleEach } from "#core/settled.ts";
import type { FileEntry, FinishPlan, FinishResult } from "../model.ts";
import { asideName } from "./archive-name.ts";
import { type Drop, type FinishPlanned, finishFile } from "./drop.ts";
import { moveVerified, type SourceFiles, sameVersion, settleLeftover } from "./finish.ts";

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

const DONE: FinishPlan = { action: "leave" };

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
