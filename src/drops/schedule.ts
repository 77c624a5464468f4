/** When the next poll of a drop is due while nothing is the matter: after a time, or by the calendar. */
import { Cron } from "croner";
import type { Clock } from "../support/clock.ts";
import type { DropOptions } from "./options.ts";

export type ScheduleOptions = Pick<DropOptions, "every"> &
  Partial<Pick<DropOptions, "cron" | "timeZone" | "jitter">>;

export class Schedule {
  readonly #options: ScheduleOptions;
  readonly #clock: Clock;
  readonly #cron: Cron | null;

  constructor(options: ScheduleOptions, clock: Clock) {
    this.#options = options;
    this.#clock = clock;
    // Paused: it only computes, and has no timer.
    this.#cron =
      options.cron === undefined
        ? null
        : new Cron(options.cron, { paused: true, timezone: options.timeZone ?? "UTC" });
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
    // An expression with a year may have no next time; it is asked again tomorrow.
    return (next === null ? 86_400_000 : next.getTime() - nowMs) + jitterMs;
  }
}
