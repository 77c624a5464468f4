/**
 * Polls one drop for as long as the gateway runs. Every drop has a watcher of its own, so a dead one delays
 * no other. Polls come every `every`, or by the calendar; sooner while files settle, after file-system events
 * or on request; later, doubling with jitter, while the drop is unavailable.
 */

import { Cron } from "croner";
import { type Clock, isoInstant } from "#core/clock.ts";
import { HeadgateError, wordsOf } from "#core/errors.ts";
import type { Logger } from "#core/log.ts";
import type { DropState, UntakenFile } from "../model.ts";
import { type FileBudget, KnownFiles } from "./known-files.ts";
import type { DropOptions } from "./options.ts";
import { archivedSinceMs, keptArchives } from "./paths.ts";
import { NOTHING, Pickup, type PickupFacts, type PickupReport } from "./pickup.ts";

export interface WatcherFacts extends PickupFacts {
  readonly options: PickupFacts["options"] &
    Pick<DropOptions, "every" | "backoffMax"> &
    Partial<Pick<DropOptions, "cron" | "timeZone" | "jitter" | "finish">>;
  readonly log: Logger;
  /** The reason of a pause by an operator; null while the drop is polled. */
  readonly paused?: () => string | null;
  /** Shared by the drops of a process. */
  readonly filesInMemory?: FileBudget;
  /** Called after each poll. */
  readonly onPoll?: (drop: string, seconds: number, complete: boolean) => void;
}

/** Milliseconds between an event and the poll that it causes, so that a burst of events is one poll. */
const EVENT_PAUSE_MS = 100;
/**
 * Polls caused by events take at most one part in so many of the time, so that a busy folder does not cause a busy
 * loop. The share of the files that a poll picked up does not count: they cost no less later.
 */
const EVENT_PAUSE_FACTOR = 5;
/**
 * Where events arrive, polls without a finding take at most 1 in so many parts of the time, so that a folder
 * of many known files costs little. The pause is at most so many times `every`, since a network share may
 * only report changes by this machine.
 */
const QUIET = { share: 1_000, everyMax: 3 };
/** Milliseconds beyond the settling interval, since timers may end a little early. */
const SETTLE_SLACK_MS = 5;
/** Milliseconds; a failing drop is not polled faster than this. */
const BACKOFF_MIN_MS = 1_000;
/**
 * Archives are searched for old files this often, and as many are deleted at a time; then the next poll comes
 * first.
 */
const CLEARING_EVERY_MS = 3_600_000;
const CLEARED_AT_ONCE = 500;

export class Watcher {
  readonly #facts: WatcherFacts;
  readonly #known: KnownFiles;
  readonly #pickup: Pickup;
  readonly #schedule: Schedule;
  readonly #stopping = new AbortController();
  #loop: Promise<void> | null = null;
  #stopEvents: (() => Promise<void>) | null = null;
  /** Ends the pause before the next poll. */
  #pause: AbortController | null = null;
  #wanted: PromiseWithResolvers<PickupReport> | null = null;
  #changed = false;
  #report: PickupReport | null = null;
  /** Milliseconds of the monotonic clock when the last listing began. */
  #listedMs = Number.NEGATIVE_INFINITY;
  #inProgress = false;
  #completePolls = 0;
  #failures = 0;
  /** The reason of the last failed poll, as it was logged. */
  #failure = "";
  #pollTookMs = 0;
  #lastComplete: Temporal.Instant | null = null;
  #nextPollAt: Temporal.Instant | null = null;
  /** Folders whose files are deleted after a time, in milliseconds. */
  readonly #archives: ReadonlyMap<string, number>;
  #clearAtMs = 0;

  constructor(facts: WatcherFacts) {
    this.#facts = facts;
    const onOverdue = (file: UntakenFile) =>
      facts.log.warn(
        { drop: facts.drop.name, path: file.path, since: file.since, reason: file.reason },
        "a file does not settle",
      );
    this.#known = new KnownFiles(facts.filesInMemory);
    this.#pickup = new Pickup({ onOverdue, ...facts }, this.#known);
    const { finish } = facts.options;
    this.#archives = finish === undefined ? new Map() : keptArchives(finish);
    this.#schedule = new Schedule(facts.options, facts.clock);
  }

  /** Polls at once, and then continuously. */
  start(): void {
    if (this.#loop !== null) return;
    this.#loop = this.#run();
    if (this.#schedule.byCalendar) return;
    this.#stopEvents =
      this.#facts.drop.watch?.(() => {
        const first = !this.#changed;
        this.#changed = true;
        // Events of a failing drop do not end its back-off.
        if (first && this.#failures === 0) this.#pause?.abort();
      }) ?? null;
  }

  /**
   * A poll that begins after this call; several callers share one. Rejects when the watcher is stopped
   * before.
   */
  pollNow(): Promise<PickupReport> {
    if (this.#stopping.signal.aborted) return Promise.reject(this.#stopping.signal.reason);
    this.#wanted ??= Promise.withResolvers<PickupReport>();
    this.#wanted.promise.catch(() => undefined); // Each caller handles its own.
    this.#pause?.abort();
    return this.#wanted.promise;
  }

  /** See `Pickup.rematch`. */
  async rematch(): Promise<number> {
    if (this.#paused() !== null || this.#facts.drop.offersOnce === true) return 0;
    return this.#pickup.rematch(this.#stopping.signal);
  }

  /** Ends the poll in progress. The drop itself stays open. */
  async stop(): Promise<void> {
    this.#stopping.abort(new Error(`drop ${this.#facts.drop.name} is no longer polled`));
    this.#pause?.abort();
    this.#wanted?.reject(this.#stopping.signal.reason);
    await this.#stopEvents?.();
    await this.#loop;
    this.#known.forgetAll();
    this.#nextPollAt = null;
  }

  status(): DropState {
    const { drop } = this.#facts;
    const error = this.#report?.error;
    return {
      drop: drop.name,
      kind: drop.kind,
      paused: this.#paused(),
      lastCompletePoll: this.#lastComplete === null ? null : isoInstant(this.#lastComplete),
      completePolls: this.#completePolls,
      consecutiveFailures: this.#failures,
      lastError:
        error === undefined
          ? null
          : {
              code: error instanceof HeadgateError ? error.code : null,
              message: wordsOf(error),
              hint: error instanceof HeadgateError ? error.hint : null,
            },
      nextPollAt: this.#nextPollAt === null ? null : isoInstant(this.#nextPollAt),
      inProgress: this.#inProgress,
      settlingCount: this.#report?.settling ?? 0,
      temporaryCount: this.#report?.temporary ?? 0,
      overdueCount: this.#report?.overdue ?? 0,
      leftCount: this.#report?.left ?? 0,
      missingCount: this.#report?.missing ?? 0,
      waiting: this.#pickup.waiting(),
      eventsArrive: this.#stopEvents === null ? null : (drop.eventsArrive?.() ?? null),
    };
  }

  #paused(): string | null {
    return this.#facts.paused?.() ?? null;
  }

  async #run(): Promise<void> {
    const stopped = this.#stopping.signal;
    const { clock } = this.#facts;
    while (!stopped.aborted) {
      const wanted = this.#wanted;
      this.#wanted = null;
      if (this.#paused() !== null) {
        this.#changed = false;
        wanted?.resolve(NOTHING);
        await this.#rest(NOTHING);
        continue;
      }
      this.#inProgress = true;
      this.#nextPollAt = null;
      const begunMs = this.#facts.clock.monotonicMs();
      const report = await this.#poll(begunMs, wanted !== null).catch((error: unknown) => failed(error));
      this.#pollTookMs = this.#facts.clock.monotonicMs() - begunMs;
      this.#inProgress = false;
      if (!stopped.aborted) {
        this.#take(report);
        this.#facts.onPoll?.(this.#facts.drop.name, this.#pollTookMs / 1000, report.error === undefined);
      }
      wanted?.resolve(report);
      const clearing = clock.monotonicMs() >= this.#clearAtMs && this.#archives.size > 0;
      if (clearing && !stopped.aborted && report.error === undefined) await this.#clearArchives();
      if (!stopped.aborted) await this.#rest(report);
    }
  }

  /**
   * While more files have settled than one poll picks up, the next polls pick them up without a new listing,
   * which comes when it is due.
   */
  #poll(nowMs: number, wanted: boolean): Promise<PickupReport> {
    const hasLeft = (this.#report?.left ?? 0) > 0 && this.#failures === 0;
    if (hasLeft && !wanted && nowMs - this.#listedMs < this.#facts.options.every)
      return this.#pickup.takeLeft(this.#stopping.signal);
    this.#changed = false;
    this.#listedMs = nowMs;
    return this.#pickup.poll(this.#stopping.signal);
  }

  /** Deletes archived files whose time is over. A fault is logged, and the next attempt comes later. */
  async #clearArchives(): Promise<void> {
    const { drop, log, clock } = this.#facts;
    this.#clearAtMs = clock.monotonicMs() + CLEARING_EVERY_MS;
    for (const [folder, keepMs] of this.#archives) {
      const before = clock.now().epochMilliseconds - keepMs;
      const isOld = (path: string) => (archivedSinceMs(path) ?? before) < before;
      try {
        const cleared = await drop.clearArchive?.({ folder, isOld, limit: CLEARED_AT_ONCE }, this.#stopping.signal);
        if (cleared === CLEARED_AT_ONCE) this.#clearAtMs = 0;
        if (cleared) log.info({ drop: drop.name, folder, files: cleared }, "old files of the archive deleted");
      } catch (thrown) {
        if (this.#stopping.signal.aborted) return;
        log.warn({ drop: drop.name, folder, reason: wordsOf(thrown) }, "the archive cannot be cleared");
      }
    }
  }

  #take(report: PickupReport): void {
    const { log, drop, clock } = this.#facts;
    this.#report = report;
    if (report.error === undefined) {
      if (this.#failures > 0) {
        const facts = { drop: drop.name, failures: this.#failures };
        log.info(facts, `the drop ${drop.name} can be used again`);
      }
      this.#failure = "";
      this.#failures = 0;
      this.#completePolls += 1;
      this.#lastComplete = clock.now();
      if (report.claimed > 0) log.info({ drop: drop.name, ...report }, "files picked up");
      return;
    }
    this.#failures += 1;
    const { error } = report;
    const facts = error instanceof HeadgateError ? { code: error.code, hint: error.hint } : { code: null, hint: null };
    const reason = wordsOf(error);
    // Warns once for each reason: a continued failure is in health, metrics and notifications.
    const isNew = this.#failure !== reason;
    this.#failure = reason;
    const line = { drop: drop.name, ...facts, failures: this.#failures, reason };
    log[isNew ? "warn" : "debug"](line, `the drop ${drop.name} cannot be polled: ${reason}`);
  }

  async #rest(report: PickupReport): Promise<void> {
    const { clock } = this.#facts;
    const restMs = this.#restMs(report);
    this.#nextPollAt = clock.now().add({ milliseconds: Math.round(restMs) });
    if (this.#wanted !== null) return;
    this.#pause = new AbortController();
    if (!(this.#changed && this.#failures === 0)) await clock.sleep(restMs, this.#pause.signal);
    this.#pause = null;
    const byEvent = this.#changed && this.#wanted === null && this.#failures === 0;
    if (!byEvent) return;
    const idleShare = 1 - report.claimed / Math.max(1, report.listed, report.claimed);
    const pauseMs = Math.max(EVENT_PAUSE_MS, this.#pollTookMs * idleShare * EVENT_PAUSE_FACTOR);
    this.#pause = new AbortController();
    await clock.sleep(Math.min(pauseMs, restMs), this.#pause.signal);
    this.#pause = null;
  }

  #restMs(report: PickupReport): number {
    const { every, backoffMax, settle } = this.#facts.options;
    const dueMs = this.#schedule.nextMs();
    if (this.#failures > 0) {
      const doubled = Math.max(every, BACKOFF_MIN_MS) * 2 ** Math.min(this.#failures - 1, 20);
      // Jitter, so that many drops at one server do not return at the same moment.
      const backoffMs = Math.min(doubled, Math.max(backoffMax, every)) * (0.8 + Math.random() * 0.4);
      // A file that waits for one that cannot be listed continues in time, also while the drop fails.
      return Math.min(backoffMs, Math.max(BACKOFF_MIN_MS, report.orderWaitMs ?? Number.POSITIVE_INFINITY));
    }
    if (report.left > 0) return 0;
    if (report.settling > 0) return Math.min(dueMs, settle.interval + SETTLE_SLACK_MS);
    const wakes = report.claimed === 0 && this.#stopEvents !== null && this.#facts.drop.eventsArrive?.() === true;
    return wakes ? Math.max(dueMs, Math.min(this.#pollTookMs * QUIET.share, every * QUIET.everyMax)) : dueMs;
  }
}

function failed(error: unknown): PickupReport {
  return { ...NOTHING, error };
}

// The time of the next poll of a healthy drop: after an interval, or by the calendar.

type ScheduleOptions = Pick<DropOptions, "every"> & Partial<Pick<DropOptions, "cron" | "timeZone" | "jitter">>;

export class Schedule {
  readonly #options: ScheduleOptions;
  readonly #clock: Clock;
  readonly #cron: Cron | null;

  constructor(options: ScheduleOptions, clock: Clock) {
    this.#options = options;
    this.#clock = clock;
    // Created paused: it only computes, and has no timer.
    this.#cron =
      options.cron === undefined ? null : new Cron(options.cron, { paused: true, timezone: options.timeZone ?? "UTC" });
  }

  get byCalendar(): boolean {
    return this.#cron !== null;
  }

  /** Milliseconds from now. */
  nextMs(): number {
    const jitterMs = Math.random() * (this.#options.jitter ?? 0);
    if (this.#cron === null) return this.#options.every + jitterMs;
    const nowMs = this.#clock.now().epochMilliseconds;
    const next = this.#cron.nextRun(new Date(nowMs));
    // An expression with a year may have no next time; it is evaluated again tomorrow.
    return (next === null ? 86_400_000 : next.getTime() - nowMs) + jitterMs;
  }
}
