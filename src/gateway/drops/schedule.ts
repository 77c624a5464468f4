/** The time of the next poll of a healthy drop: after an interval, or by the calendar. */
import { Cron } from "croner";
import type { Clock } from "#core/clock.ts";
import type { DropOptions } from "./options.ts";

export type ScheduleOptions = Pick<DropOptions, "every"> & Partial<Pick<DropOptions, "cron" | "timeZone" | "jitter">>;

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
