/**
 * Checks finished files where they are now (`finish.guard`): after 10 s, and again whenever as much time has
 * passed as since the finish, so about ten times in an hour. A file that grew or changed goes back to its
 * path, where the next poll takes its whole content as a new version; an unchanged file is deleted, or copied
 * to its archive, when the time is over. While a process has a file open for writing, the time is not over.
 */

import { isoInstant } from "#core/clock.ts";
import { isLeaseLost, wordsOf } from "#core/errors.ts";
import type { FinishedFile } from "../ledger/ledger.ts";
import type { IsoInstant } from "../model.ts";
import { afterMs, nextCheck, RECHECK_MS } from "./finish-watch.ts";
import { FinishedFileCheck, type FinishedFileParts } from "./finished-file-check.ts";
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
