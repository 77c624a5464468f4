/**
 * Checks finished files where they are now (`finish.guard`): after 10 s, and again whenever as much time has
 * passed as since the finish, so about ten times in an hour. A file that grew or changed goes back to its
 * path, where the next poll takes its whole content as a new version; an unchanged file is deleted, or copied
 * to its archive, when the time is over. While a process has a file open for writing, the time is not over.
 */

import { rm } from "node:fs/promises";
import { join } from "node:path";
import { type Clock, isoInstant } from "#core/clock.ts";
import { isLeaseLost, wordsOf } from "#core/errors.ts";
import type { Logger } from "#core/log.ts";
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
import type { FinishedFile, FinishedFileChange, Ledger } from "../ledger/ledger.ts";
import type { FileEntry, IsoInstant } from "../model.ts";
import type { FinishFaults } from "./finish-faults.ts";
import { afterMs, asideEvent, beginWatch, nextCheck, RECHECK_MS } from "./finish-watch.ts";
import type { DropEntry } from "./steps/steps.ts";

export interface FinishGuardParts extends FinishedFileParts {
  /** Drops of the configuration. */
  drops(): readonly string[];
  dropEntry(name: string): DropEntry | undefined;
}

/** Milliseconds between two passes. */
const PASS_EVERY_MS = 5_000;
/** Files of a drop that one pass checks. */
const FILES_PER_PASS = 500;
/** Milliseconds for one file. */
const CHECK_MS = 120_000;
/**
 * Longest pause before the next check of a file that cannot be checked. It grows, so that such files do not
 * hide others.
 */
const POSTPONE_MAX_MS = 3_600_000;
/** After so many failures in a row the drop itself seems to be the reason. */
const FAILURES_MAX = 3;

export class FinishGuard {
  readonly #parts: FinishGuardParts;
  readonly #files: FinishedFileCheck;
  readonly #stopping = new AbortController();
  #passing: Promise<void> | null = null;
  #isFirstPassDone = false;
  /** Drops whose last file could not be checked. */
  readonly #failing = new Set<string>();

  constructor(parts: FinishGuardParts) {
    this.#parts = parts;
    this.#files = new FinishedFileCheck(parts);
  }

  /** Begins at once. Returns a function that stops it. */
  start(): () => Promise<void> {
    const running = this.#run();
    return async () => {
      this.#stopping.abort();
      await running;
    };
  }

  /**
   * False until the files that were due at the start are checked, and during a check: a file may go back to
   * its drop.
   */
  get isIdle(): boolean {
    return this.#isFirstPassDone && this.#passing === null;
  }

  /** Checks every file that is due now. */
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
        log.warn({ reason: wordsOf(thrown) }, "finished files could not be checked; tried again"),
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
    const entry = this.#parts.dropEntry(name);
    if (entry === undefined) return;
    const due = await ledger.finishedFiles.due(name, isoInstant(clock.now()), FILES_PER_PASS);
    const unchanged: { place: string; identity: string | null; checkAt: IsoInstant }[] = [];
    let failures = 0;
    for (const file of due) {
      if (this.#stopping.signal.aborted || failures === FAILURES_MAX) break;
      try {
        await ledger.fleet.assertDrop(name);
        const signal = AbortSignal.any([this.#stopping.signal, AbortSignal.timeout(CHECK_MS)]);
        const identity = await this.#files.check(file, entry, signal);
        if (identity !== undefined) unchanged.push({ place: file.place, identity, checkAt: nextCheck(file, clock) });
        failures = 0;
        this.#failing.delete(name);
      } catch (thrown) {
        // Another node polls the drop now, and checks its files.
        if (isLeaseLost(thrown)) return;
        if (this.#stopping.signal.aborted) break;
        failures += 1;
        await this.#postpone(file, thrown);
      }
    }
    if (unchanged.length > 0) await ledger.finishedFiles.postpone(name, unchanged);
  }

  async #postpone(file: FinishedFile, thrown: unknown): Promise<void> {
    const { clock, ledger, log } = this.#parts;
    const { drop, path, place } = file;
    // Once, when it is the drop that cannot be used.
    const level = this.#failing.has(drop) ? "debug" : "warn";
    log[level]({ drop, path, place, reason: wordsOf(thrown) }, "a finished file cannot be checked now");
    this.#failing.add(drop);
    const agedMs = clock.now().epochMilliseconds - Date.parse(file.begunAt);
    const pauseMs = Math.min(POSTPONE_MAX_MS, Math.max(RECHECK_MS, agedMs));
    await ledger.finishedFiles.change(file, { checkAt: afterMs(pauseMs, clock) });
  }
}

// Checks one finished file where it is now, and completes or reverts its finish.

interface FinishedFileParts {
  readonly ledger: Ledger;
  /** Folder for the bytes of a file whose content has to be compared. */
  readonly scratch: string;
  readonly finishFaults: Pick<FinishFaults, "note">;
  readonly clock: Clock;
  readonly log: Logger;
}

class FinishedFileCheck {
  readonly #parts: FinishedFileParts;

  constructor(parts: FinishedFileParts) {
    this.#parts = parts;
  }

  /**
   * Returns the identity of an unchanged file, which is checked again later; undefined when the ledger
   * recorded a change.
   */
  async check(file: FinishedFile, entry: DropEntry, signal: AbortSignal): Promise<string | null | undefined> {
    const { clock } = this.#parts;
    if (file.changed) return this.#bringBack(file, entry.drop, signal);
    if (await this.#isClaimed(file)) return this.#leaveToRun(file, entry.drop, signal);
    const found = await inspectFile(entry.drop, file.place, signal);
    if (file.place === file.path && (await this.#isSuperseded(file)))
      return this.#fetchAgain(file, found?.entry, entry.drop, signal);
    if (found === null) return this.#followMissing(file, entry, signal);
    if (!isSame(found, file) && !(await this.#hasSameBytes(file, found.entry, entry.drop, signal)))
      return this.#fetchAgain(file, found.entry, entry.drop, signal);
    if (!isSame(found, file)) {
      // Only its time was set, or a file of equal content replaced it.
      const { size, mtime } = found.entry;
      await this.#change(file, { size, mtime, identity: found.identity, checkAt: nextCheck(file, clock) });
      return undefined;
    }
    const isOver = file.endsAt <= isoInstant(clock.now());
    if (found.writer !== null) return found.identity;
    if (file.place === file.path && !(isOver && file.plan.action === "delete"))
      return this.#setAside(file, entry, signal, found.identity);
    return isOver ? this.#complete(file, entry.drop, signal) : found.identity;
  }

  /**
   * A trigger claims a file that was unmatched when its finish began: its run finishes it by another rule.
   */
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

  /** A later version came to the path of the file. */
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
    const { log, finishFaults } = this.#parts;
    const { plan, path, place } = file;
    if (plan.action === "leave") {
      await this.#change(file, { ended: true });
      return;
    }
    try {
      const result = await completeFinish(drop, { ...entryOf(file), path: place }, plan, signal);
      finishFaults.note(file, null);
      // A change since the check is found by the next check.
      if (result === "changed") return;
      if (result === "gone") return await this.#endMissing(file, drop, signal);
    } catch (thrown) {
      const reason = wordsOf(thrown);
      finishFaults.note(file, thrown);
      log.warn({ drop: file.drop, path, place, reason }, "a finished file cannot be deleted or archived yet");
      await this.#change(file, { checkAt: afterMs(RECHECK_MS, this.#parts.clock) });
      return;
    }
    const event =
      plan.action === "delete"
        ? { what: "source.deleted", detail: path }
        : { what: "source.archived", detail: `${path} → ${plan.to}` };
    await this.#change(file, { ended: true, left: true, event });
  }

  /** A file may have been set aside by a process that ended before it recorded that. */
  async #followMissing(file: FinishedFile, entry: DropEntry, signal: AbortSignal): Promise<string | null | undefined> {
    if (file.place !== file.path || file.plan.action === "leave") return this.#endMissing(file, entry.drop, signal);
    const moved = await setFileAside(entry.drop, { entry: entryOf(file), plan: file.plan }, signal);
    if (moved.result === "gone") return this.#endMissing(file, entry.drop, signal);
    return this.#noteAside(file, moved, entry.guardMs);
  }

  /** Ends the watch over a file that was removed, or whose last step was done and not recorded. */
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
  async #fetchAgain(
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
      await ledger.finishedFiles.noteGrowthPause(file.drop, path, pauseBetween(file, found, drop, this.#parts.clock));
    const detail = `${place} ${words} after it was finished; its whole content is taken again`;
    const event = { what: "source.changed-later", detail };
    // At its own path the next poll finds it as another version.
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
      // Once: health, `runs --waiting` and notifications report it from then on.
      this.#parts.log[file.occupiedSince === null ? "warn" : "debug"](
        { drop: file.drop, path, place, run: file.runId },
        "a file that was changed after it was finished waits: another file is at its path",
      );
      const occupiedSince = file.occupiedSince ?? isoInstant(this.#parts.clock.now());
      await this.#change(file, { occupiedSince, checkAt: afterMs(RECHECK_MS, this.#parts.clock) });
      return;
    }
    const event =
      result === "gone"
        ? { what: "source.unwatched", detail: `it is no longer at ${place}` }
        : { what: "source.returned", detail: `${place} → ${path}` };
    await this.#change(file, { ended: true, event });
  }

  /** Compares a file of another time or identity. A file that was never fetched counts as changed. */
  async #hasSameBytes(file: FinishedFile, found: FileEntry, drop: Drop, signal: AbortSignal): Promise<boolean> {
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

/**
 * The time between two changes, by the drop's own times; without these, the time since the finish of the
 * file.
 */
function pauseBetween(file: FinishedFile, found: FileEntry, drop: Drop, clock: Clock): number {
  const before = drop.modifiedMs(entryOf(file));
  const after = drop.modifiedMs(found);
  const byDrop = before === null || after === null ? 0 : after - before;
  return byDrop > 0 ? byDrop : clock.now().epochMilliseconds - Date.parse(file.begunAt);
}
