/**
 * Watches finished files where they are now (`finish.guard`). A file is looked at after 10 s, and again whenever as much time has passed
 * as since its end, so about ten times in an hour. One that grew or changed goes back to its path, where the next poll takes its whole
 * content as a new version; one that did not is deleted, or copied to its archive, when the time is over. While a process has a file open
 * for writing, the time is not over.
 */
import { rm } from "node:fs/promises";
import { join } from "node:path";
import {
  completeFinish,
  type Drop,
  fetchFile,
  type Inspected,
  inspectFile,
  putBack,
  type SetAside,
  setFileAside,
} from "../drops/drop.ts";
import type { FinishedFile, FinishedFileChange, Ledger, NewFinishedFile } from "../ledger/ledger.ts";
import type { FileEntry, IsoInstant } from "../model.ts";
import { type Clock, isoInstant } from "../support/clock.ts";
import { isLeaseLost, wordsOf } from "../support/errors.ts";
import type { Logger } from "../support/log.ts";
import type { DropEntry } from "./steps/steps.ts";

export interface FinishGuardParts {
  readonly ledger: Ledger;
  /** Drops of the configuration. */
  drops(): readonly string[];
  dropEntry(name: string): DropEntry | undefined;
  /** Folder for the bytes of a file whose content has to be compared. */
  readonly scratch: string;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Milliseconds between two passes, and before the first look at a file. */
const PASS_EVERY_MS = 5_000;
const FIRST_LOOK_MS = 10_000;
/** Files of a drop that one pass looks at. */
const FILES_PER_PASS = 500;
/** Milliseconds for one file. */
const LOOK_MS = 120_000;
/** Milliseconds until a file is looked at again that waits for something else than its time. */
const AGAIN_MS = 60_000;
/** The same for a file that cannot be looked at, which must not hide the others behind it: as long as it has failed, up to an hour. */
const PUT_OFF_MAX_MS = 3_600_000;
/** Files in a row that cannot be looked at, after which the drop itself seems to be the reason. */
const FAILURES_MAX = 3;

/** How a file that was set aside begins to be watched. */
export function beginWatch(
  { place, identity, plan }: Pick<NewFinishedFile, "place" | "identity" | "plan">,
  guardMs: number,
  clock: Clock,
): NewFinishedFile {
  const now = clock.now();
  const after = (ms: number) => isoInstant(now.add({ milliseconds: ms }));
  return { place, identity, plan, endsAt: after(guardMs), lookAt: after(Math.min(FIRST_LOOK_MS, guardMs)) };
}

export class FinishGuard {
  readonly #parts: FinishGuardParts;
  readonly #stopping = new AbortController();
  #passing: Promise<void> | null = null;
  #isFirstPassDone = false;
  /** Drops of which the last file could not be looked at. */
  readonly #failing = new Set<string>();

  constructor(parts: FinishGuardParts) {
    this.#parts = parts;
  }

  /** Begins at once. Answers how to stop. */
  start(): () => Promise<void> {
    const running = this.#run();
    return async () => {
      this.#stopping.abort();
      await running;
    };
  }

  /** False until every file that was due at the start was looked at, and while one is looked at: it may come back to its drop. */
  get isIdle(): boolean {
    return this.#isFirstPassDone && this.#passing === null;
  }

  /** Looks at every file that is due now. */
  pass(): Promise<void> {
    this.#passing ??= this.#passAll().finally(() => {
      this.#passing = null;
    });
    return this.#passing;
  }

  async #run(): Promise<void> {
    const { clock, log } = this.#parts;
    while (!this.#stopping.signal.aborted) {
      await this.pass().catch((thrown: unknown) =>
        log.warn({ reason: wordsOf(thrown) }, "finished files could not be looked at; tried again"),
      );
      this.#isFirstPassDone = true;
      await clock.sleep(PASS_EVERY_MS, this.#stopping.signal);
    }
  }

  async #passAll(): Promise<void> {
    await Promise.all(this.#parts.drops().map((name) => this.#passDrop(name)));
  }

  async #passDrop(name: string): Promise<void> {
    const { ledger, clock } = this.#parts;
    const post = this.#parts.dropEntry(name);
    if (post === undefined) return;
    const due = await ledger.finishedFiles.due(name, isoInstant(clock.now()), FILES_PER_PASS);
    const unchanged: { place: string; identity: string | null; lookAt: IsoInstant }[] = [];
    let failures = 0;
    for (const file of due) {
      if (this.#stopping.signal.aborted || failures === FAILURES_MAX) break;
      try {
        await ledger.fleet.assertDrop(name);
        const identity = await this.#look(file, post);
        if (identity !== undefined)
          unchanged.push({ place: file.place, identity, lookAt: this.#wakeTimer(file) });
        failures = 0;
        this.#failing.delete(name);
      } catch (thrown) {
        // Another node polls the drop now, and looks at its files.
        if (isLeaseLost(thrown)) return;
        if (this.#stopping.signal.aborted) break;
        failures += 1;
        await this.#putOff(file, thrown);
      }
    }
    if (unchanged.length > 0) await ledger.finishedFiles.postpone(name, unchanged);
  }

  async #putOff(file: FinishedFile, thrown: unknown): Promise<void> {
    const { clock, log } = this.#parts;
    const { drop, path, place } = file;
    // Once, when it is the drop that cannot be used.
    const level = this.#failing.has(drop) ? "debug" : "warn";
    log[level]({ drop, path, place, reason: wordsOf(thrown) }, "a finished file cannot be looked at now");
    this.#failing.add(drop);
    const agedMs = clock.now().epochMilliseconds - Date.parse(file.begunAt);
    const pauseMs = Math.min(PUT_OFF_MAX_MS, Math.max(AGAIN_MS, agedMs));
    await this.#change(file, { lookAt: this.#after(pauseMs) });
  }

  /** Answers the file's identity when nothing was found, so that it is looked at again later; undefined when the ledger knows more. */
  async #look(file: FinishedFile, post: DropEntry): Promise<string | null | undefined> {
    const { clock } = this.#parts;
    const signal = AbortSignal.any([this.#stopping.signal, AbortSignal.timeout(LOOK_MS)]);
    if (file.changed) return this.#bringBack(file, post.drop, signal);
    if (await this.#isClaimed(file)) return this.#leaveToRun(file, post.drop, signal);
    const found = await inspectFile(post.drop, file.place, signal);
    if (file.place === file.path && (await this.#isSuperseded(file)))
      return this.#takeAgain(file, found?.entry, post.drop, signal);
    if (found === null) return this.#followMissing(file, post, signal);
    if (!isSame(found, file) && !(await this.#hasSameBytes(file, found.entry, post.drop, signal)))
      return this.#takeAgain(file, found.entry, post.drop, signal);
    if (!isSame(found, file)) {
      // Only its time was set, or it was replaced by its like.
      const { size, mtime } = found.entry;
      await this.#change(file, { size, mtime, identity: found.identity, lookAt: this.#wakeTimer(file) });
      return undefined;
    }
    const isOver = file.endsAt <= isoInstant(clock.now());
    if (found.writer !== null) return found.identity;
    if (file.place === file.path && !(isOver && file.plan.action === "delete"))
      return this.#setAside(file, post, signal, found.identity);
    return isOver ? this.#complete(file, post.drop, signal) : found.identity;
  }

  /** A trigger claims what none claimed when its end began: the file belongs to a run now, which ends it by another rule. */
  async #isClaimed({ runId, arrivalId, size, mtime }: FinishedFile): Promise<boolean> {
    if (runId !== null) return false;
    const arrival = await this.#parts.ledger.arrival(arrivalId);
    return arrival?.state === "matched" && arrival.size === size && arrival.mtime === mtime;
  }

  async #leaveToRun(file: FinishedFile, drop: Drop, signal: AbortSignal): Promise<undefined> {
    if (file.place !== file.path) return this.#bringBack(file, drop, signal);
    const event = { what: "source.unwatched", detail: "a trigger claims it now" };
    await this.#change(file, { ended: true, event });
  }

  /** A later version came to the path where it waits. */
  async #isSuperseded({ drop, path, arrivalId }: FinishedFile): Promise<boolean> {
    const there = await this.#parts.ledger.arrivalsAt(path, drop);
    return there.some(({ id }) => id > arrivalId);
  }

  /** A file that stayed at its path, since a process had it open or the drop did not let it be renamed. */
  async #setAside(
    file: FinishedFile,
    { drop, guardMs }: DropEntry,
    signal: AbortSignal,
    identity: string | null,
  ): Promise<string | null | undefined> {
    const moved = await setFileAside(drop, { entry: entryOf(file), plan: file.plan }, signal);
    return moved.result === "waits" ? identity : this.#noteAside(file, moved, guardMs);
  }

  async #noteAside(file: FinishedFile, moved: SetAside, guardMs: number): Promise<null | undefined> {
    if (moved.result === "waits") return null;
    if (moved.result !== "done") {
      await this.#change(file, { ended: true, event: { what: `source.${moved.result}`, detail: file.path } });
      return undefined;
    }
    const watch = beginWatch(moved, guardMs, this.#parts.clock);
    await this.#change(file, { ...watch, left: true, event: asideEvent(file.path, moved, watch.endsAt) });
    return undefined;
  }

  async #complete(file: FinishedFile, drop: Drop, signal: AbortSignal): Promise<undefined> {
    const { log } = this.#parts;
    const { plan, path, place } = file;
    if (plan.action === "leave") {
      await this.#change(file, { ended: true });
      return;
    }
    try {
      const result = await completeFinish(drop, { ...entryOf(file), path: place }, plan, signal);
      // What changed since the look is found by the next one.
      if (result === "changed") return;
    } catch (thrown) {
      const reason = wordsOf(thrown);
      log.warn({ drop: file.drop, path, place, reason }, "a finished file cannot be deleted or archived yet");
      await this.#change(file, { lookAt: this.#after(AGAIN_MS) });
      return;
    }
    const event =
      plan.action === "delete"
        ? { what: "source.deleted", detail: path }
        : { what: "source.archived", detail: `${path} → ${plan.to}` };
    await this.#change(file, { ended: true, left: true, event });
  }

  /** From its own path it may have been moved aside by a process that ended before it could record that. */
  async #followMissing(
    file: FinishedFile,
    post: DropEntry,
    signal: AbortSignal,
  ): Promise<string | null | undefined> {
    if (file.place !== file.path || file.plan.action === "leave")
      return this.#endMissing(file, post.drop, signal);
    const moved = await setFileAside(post.drop, { entry: entryOf(file), plan: file.plan }, signal);
    if (moved.result === "gone") return this.#endMissing(file, post.drop, signal);
    return this.#noteAside(file, moved, post.guardMs);
  }

  /** Somebody took it away, or the step before was done and not recorded. */
  async #endMissing(file: FinishedFile, drop: Drop, signal: AbortSignal): Promise<undefined> {
    const { plan, path, place } = file;
    const archived = plan.action === "archive" ? await drop.stat(plan.to, signal) : null;
    const event =
      archived !== null && plan.action === "archive"
        ? { what: "source.archived", detail: `${path} → ${plan.to}` }
        : plan.action === "delete"
          ? { what: "source.deleted", detail: path }
          : { what: "source.unwatched", detail: `it is no longer at ${place}` };
    await this.#change(file, { ended: true, event });
  }

  /** `found` is undefined when the later version has left its path already. */
  async #takeAgain(
    file: FinishedFile,
    found: FileEntry | undefined,
    drop: Drop,
    signal: AbortSignal,
  ): Promise<undefined> {
    const { log, ledger } = this.#parts;
    const { path, place } = file;
    const words = found === undefined ? "changed" : `went from ${file.size} to ${found.size} bytes`;
    log.warn(
      { drop: file.drop, path, place, bytes: found?.size, bytesBefore: file.size, run: file.runId },
      "a file was changed after it was finished; its whole content is taken again",
    );
    if (found !== undefined && found.size > file.size)
      await ledger.finishedFiles.noteGrowthPause(
        file.drop,
        path,
        pauseBetween(file, found, drop, this.#parts.clock),
      );
    const detail = `${place} ${words} after it was finished; its whole content is taken again`;
    const event = { what: "source.changed-later", detail };
    // At its own path the next poll takes it for another version.
    if (place === path) await this.#change(file, { ended: true, event });
    else {
      await this.#change(file, { changed: true, event });
      await this.#bringBack(file, drop, signal);
    }
  }

  async #bringBack(file: FinishedFile, drop: Drop, signal: AbortSignal): Promise<undefined> {
    const { place, path } = file;
    const result = await putBack(drop, place, path, signal);
    if (result === "occupied") {
      // Once: health, `runs --waiting` and notifications go on telling of it.
      this.#parts.log[file.occupiedSince === null ? "warn" : "debug"](
        { drop: file.drop, path, place, run: file.runId },
        "a file that was changed after it was finished waits: another file is at its path",
      );
      const occupiedSince = file.occupiedSince ?? isoInstant(this.#parts.clock.now());
      await this.#change(file, { occupiedSince, lookAt: this.#after(AGAIN_MS) });
      return;
    }
    const event =
      result === "gone"
        ? { what: "source.unwatched", detail: `it is no longer at ${place}` }
        : { what: "source.returned", detail: `${place} → ${path}` };
    await this.#change(file, { ended: true, event });
  }

  /** Of equal length and another time or identity. Where nothing was fetched, or the file cannot be read, it counts as changed. */
  async #hasSameBytes(
    file: FinishedFile,
    found: FileEntry,
    drop: Drop,
    signal: AbortSignal,
  ): Promise<boolean> {
    const { size, sha256, place } = file;
    if (found.size !== size || sha256 === null) return false;
    // One at a time for a drop, so that a crash leaves one at most, which the next comparison replaces.
    const copy = join(this.#parts.scratch, `compared-${file.drop}`);
    try {
      return (await fetchFile(drop, { ...found, path: place }, copy, signal)).sha256 === sha256;
    } finally {
      await rm(copy, { force: true });
    }
  }

  #change(file: FinishedFile, change: FinishedFileChange): Promise<void> {
    return this.#parts.ledger.finishedFiles.change(file, change);
  }

  /** When as much time has passed again as since its end, and at the latest when its time is over. */
  #wakeTimer({ begunAt, endsAt }: FinishedFile): IsoInstant {
    const nowMs = this.#parts.clock.now().epochMilliseconds;
    const agedMs = Math.max(FIRST_LOOK_MS, nowMs - Date.parse(begunAt));
    const leftMs = Date.parse(endsAt) - nowMs;
    return this.#after(leftMs > 0 ? Math.min(agedMs, leftMs) : AGAIN_MS);
  }

  #after(ms: number): IsoInstant {
    return isoInstant(this.#parts.clock.now().add({ milliseconds: ms }));
  }
}

/** What the life of a file says of the first half of its end. */
export function asideEvent(
  path: string,
  { place, plan }: Pick<NewFinishedFile, "place" | "plan">,
  endsAt: IsoInstant,
): { readonly what: string; readonly detail: string } {
  if (plan.action === "leave") return { what: "source.archived", detail: `${path} → ${place}` };
  const then = plan.action === "delete" ? "deleted" : `copied to ${plan.to}`;
  return { what: "source.aside", detail: `${path} → ${place}; ${then} after ${endsAt}, unless it changes` };
}

function entryOf({ path, size, mtime }: FinishedFile): FileEntry {
  return { path, size, mtime };
}

function isSame({ entry, identity }: Inspected, file: FinishedFile): boolean {
  return (
    entry.size === file.size &&
    entry.mtime === file.mtime &&
    (file.identity === null || identity === null || identity === file.identity)
  );
}

/** By the times of the drop itself; where it tells none, since the end of the file. */
function pauseBetween(file: FinishedFile, found: FileEntry, drop: Drop, clock: Clock): number {
  const before = drop.modifiedMs(entryOf(file));
  const after = drop.modifiedMs(found);
  const told = before === null || after === null ? 0 : after - before;
  return told > 0 ? told : clock.now().epochMilliseconds - Date.parse(file.begunAt);
}
