/** Keeps alarms evaluated: when ingestion wrote points of theirs, when a moment comes, and now and then all of them. */
import type { Clock } from "#core/clock.ts";
import type { Logger } from "#core/log.ts";
import { limitOf } from "../account-limits.ts";
import type { Deliveries } from "../deliveries/start.ts";
import type { HubMail } from "../mail/mail.ts";
import type { HubOptions } from "../options.ts";
import type { Ingestion } from "../push/ingestion.ts";
import type { TouchedPoints } from "../push/touched.ts";
import type { HubStore } from "../store/store.ts";
import { AlarmDispatch } from "./dispatch.ts";
import { AlarmEvaluation } from "./evaluation.ts";
import { ALARM_DIGEST } from "./notices.ts";

export interface Alarms {
  /** Templates have changed. Resolves when their alarms are there: points that are stored from then on count. */
  changed(): Promise<void>;
  /** A person has acknowledged an alarm. */
  acknowledged(): void;
  /** Age of the oldest report of ingestion that waits for evaluation; 0 when none waits. */
  lagMs(): number;
  close(): Promise<void>;
}

export interface AlarmsParts {
  readonly options: HubOptions;
  readonly store: HubStore;
  readonly log: Logger;
  readonly clock: Clock;
  readonly ingestion: Ingestion;
  readonly deliveries: Pick<Deliveries, "wake">;
  readonly mail: HubMail;
}

/** Another hub may have changed templates or structure. */
const REFRESH_MS = 30_000;
/** A report that was lost, with the hub that had it, is made up for by then. */
const SWEEP_MS = 300_000;
const RETRY_MS = 1_000;
/** Reports that wait; with more, a sweep takes their place. */
const TOUCHED_MAX = 1_000;
/** Reports and moments that come meanwhile are evaluated as one list. */
const GATHERED_MS = 100;
const GATHERED_MAX_MS = 1_000;
/** Evaluation rests so many times as long as it took until nothing was due, which grows with the load of ingestion. */
const RESTS = 4;

export function startAlarms(parts: AlarmsParts): Alarms {
  const { options, store, log, clock, ingestion } = parts;
  const dispatch = new AlarmDispatch({ store, options: options.webhook, log, clock, onPushed: ingestion.wake });
  return new AlarmService(parts, dispatch);
}

class AlarmService implements Alarms {
  readonly #parts: AlarmsParts;
  readonly #dispatch: AlarmDispatch;
  readonly #evaluation: AlarmEvaluation;
  readonly #closing = new AbortController();
  readonly #loop: Promise<void>;
  #nap = new AbortController();
  #hurry = new AbortController();
  #touched: TouchedPoints[] = [];
  #waitsSinceMs: number | null = null;
  #sweepMs = Number.NEGATIVE_INFINITY;
  #isWatching = false;
  /** Callers that wait for the next refresh. */
  #waiting: (() => void)[] = [];

  constructor(parts: AlarmsParts, dispatch: AlarmDispatch) {
    this.#parts = parts;
    this.#dispatch = dispatch;
    const onChanged = () => {
      parts.mail.wake();
      parts.deliveries.wake();
      dispatch.wake();
    };
    const { mail, publicUrl } = parts.options;
    this.#evaluation = new AlarmEvaluation({
      ...{ ...parts, mailsAnHour: mail.alarmsAnHour, publicUrl, onChanged },
      mostOf: (accountId) => limitOf(parts.options, accountId, "alarm"),
    });
    this.#loop = this.#run();
  }

  changed(): Promise<void> {
    return new Promise((resolve) => {
      if (this.#closing.signal.aborted) return resolve();
      this.#waiting.push(resolve);
      this.#hurry.abort();
      this.#nap.abort();
    });
  }

  acknowledged(): void {
    this.#nap.abort();
  }

  lagMs(): number {
    return this.#waitsSinceMs === null ? 0 : this.#parts.clock.monotonicMs() - this.#waitsSinceMs;
  }

  async close(): Promise<void> {
    this.#parts.ingestion.watch(null);
    this.#closing.abort();
    this.#evaluation.watched.end();
    await this.#loop;
    answer(this.#waiting);
    await this.#evaluation
      .keep()
      .catch((thrown: unknown) => this.#parts.log.warn({ err: thrown }, "watermarks of alarms were not kept"));
    await this.#dispatch.close();
  }

  async #run(): Promise<void> {
    const { clock, log } = this.#parts;
    const closing = this.#closing.signal;
    let beganMs: number | null = null;
    while (!closing.aborted) {
      this.#nap = new AbortController();
      this.#hurry = new AbortController();
      const nap = AbortSignal.any([this.#nap.signal, closing]);
      const hurry = AbortSignal.any([this.#hurry.signal, closing]);
      try {
        beganMs ??= clock.monotonicMs();
        const next = await this.#turn();
        // Reports that came meanwhile are taken before the next round.
        if (this.#evaluation.isBehind) continue;
        const took = clock.monotonicMs() - beganMs;
        beganMs = null;
        await clock.sleep(Math.min(Math.max(GATHERED_MS, took * RESTS), GATHERED_MAX_MS), hurry);
        const wait = next === null ? REFRESH_MS : next - clock.now().epochMilliseconds;
        await clock.sleep(Math.min(Math.max(1, wait), REFRESH_MS), nap);
      } catch (thrown) {
        log.error({ err: thrown }, "alarms could not be evaluated; this is tried again");
        await clock.sleep(RETRY_MS, closing);
      }
    }
  }

  /** Returns when the next moment comes; null: none is known. */
  async #turn(): Promise<number | null> {
    const reports = this.#touched;
    const since = this.#waitsSinceMs;
    const asked = this.#waiting;
    this.#touched = [];
    this.#waiting = [];
    try {
      await this.#evaluation.refresh();
      this.#watch(this.#evaluation.watched.size > 0);
      answer(asked);
      this.#evaluation.take(reports);
      await this.#sweepWhenDue();
      await this.#evaluation.round();
    } catch (thrown) {
      answer(asked);
      this.#touched = [...reports, ...this.#touched];
      this.#waitsSinceMs = since ?? this.#waitsSinceMs;
      throw thrown;
    }
    if (this.#touched.length === 0 && !this.#evaluation.isBehind) this.#waitsSinceMs = null;
    const next = this.#evaluation.tick();
    const later = await this.#sendDigests(next);
    return this.#evaluation.watched.isPartial ? this.#parts.clock.now().epochMilliseconds : later;
  }

  /** Returns when the next of a moment and the digests comes. */
  async #sendDigests(next: number | null): Promise<number | null> {
    const { store, clock, mail } = this.#parts;
    const { digests } = store.alarms;
    const nowMs = clock.now().epochMilliseconds;
    const dueMs = await digests.nextMs();
    if (dueMs === null || dueMs > nowMs)
      return dueMs === null || next === null ? (next ?? dueMs) : Math.min(next, dueMs);
    if ((await digests.queueDue(nowMs, ALARM_DIGEST)) > 0) mail.wake();
    // There may be more of them.
    return nowMs;
  }

  #watch(isNeeded: boolean): void {
    // Points that were written before the thread of ingestion knew of it are not reported.
    if (isNeeded && !this.#isWatching) this.#sweepMs = Number.NEGATIVE_INFINITY;
    this.#isWatching = isNeeded;
    this.#parts.ingestion.watch(isNeeded ? (points) => this.#note(points) : null);
  }

  async #sweepWhenDue(): Promise<void> {
    const nowMs = this.#parts.clock.monotonicMs();
    if (nowMs - this.#sweepMs < SWEEP_MS) return;
    // Points that are noted meanwhile may make the next one due.
    this.#sweepMs = nowMs;
    try {
      await this.#evaluation.sweep();
    } catch (thrown) {
      this.#sweepMs = Number.NEGATIVE_INFINITY;
      throw thrown;
    }
  }

  #note(points: TouchedPoints | "unknown"): void {
    this.#waitsSinceMs ??= this.#parts.clock.monotonicMs();
    if (points !== "unknown") this.#touched.push(points);
    if (points === "unknown" || this.#touched.length > TOUCHED_MAX) {
      this.#touched = [];
      this.#sweepMs = Number.NEGATIVE_INFINITY;
    }
    this.#nap.abort();
  }
}

function answer(waiting: readonly (() => void)[]): void {
  for (const resolve of waiting) resolve();
}
