/**
 * Keeps when each service could be asked what it stored, as far as this process has seen. While a service is
 * away only one run at a time tries it, with growing pauses; the others use its result. The waiting time of a
 * run is counted by these times (`confirm-step.ts`).
 */
import type { Clock } from "#core/clock.ts";
import type { Logger } from "#core/log.ts";

interface Spell {
  readonly fromMs: number;
  untilMs: number;
}

interface Absence {
  readonly fromMs: number;
  reason: string;
  failures: number;
  /** When the last failure was known; a call that began before then adds nothing. */
  failedAtMs: number;
  retryAtMs: number;
  /** A run tries it now. */
  isTried: boolean;
}

/** Spells that are remembered of a service; the oldest of more are joined into one. */
const SPELLS_MAX = 1_000;
/** Longest pause between two attempts. */
const PAUSE_MAX_MS = 60_000;
/** Longest time that the other runs leave the service to the one that tries it. */
const TRIAL_MS = 30_000;
/** The others check again after this time, since the service may be back. */
const TRIED_CHECK_MS = 1_000;

export class ServiceReach {
  readonly #clock: Clock;
  readonly #log: Logger;
  /** Before this nothing is known. */
  readonly #sinceMs: number;
  readonly #spells = new Map<string, Spell[]>();
  readonly #absences = new Map<string, Absence>();

  constructor(clock: Clock, log: Logger) {
    this.#clock = clock;
    this.#log = log;
    this.#sinceMs = clock.now().epochMilliseconds;
  }

  /**
   * Returns why and for how long the service must not be asked; null when the caller may ask, and must report
   * the result.
   */
  closed(service: string): { readonly reason: string; readonly ms: number } | null {
    const absence = this.#absences.get(service);
    if (absence === undefined) return null;
    const nowMs = this.#nowMs();
    const ms = absence.retryAtMs - nowMs;
    if (ms > 0) return { reason: absence.reason, ms: absence.isTried ? Math.min(ms, TRIED_CHECK_MS) : ms };
    absence.retryAtMs = nowMs + TRIAL_MS;
    absence.isTried = true;
    return null;
  }

  /** Records that the service responded, with whatever status. */
  answered(service: string): void {
    const absence = this.#absences.get(service);
    if (absence === undefined) return;
    this.#absences.delete(service);
    const untilMs = this.#nowMs();
    const spells = this.#spells.getOrInsert(service, []);
    spells.push({ fromMs: absence.fromMs, untilMs });
    const [first, second] = spells;
    if (spells.length > SPELLS_MAX && first !== undefined && second !== undefined)
      spells.splice(0, 2, { fromMs: first.fromMs, untilMs: second.untilMs });
    const seconds = Math.round((untilMs - absence.fromMs) / 1000);
    this.#log.info({ service, seconds }, "the service can be asked again what it stored");
  }

  /**
   * Records that the service could not be asked. Returns the milliseconds to wait.
   *
   * @param call `askedMs`: when the call began; `everyMs`: the first pause.
   */
  away(service: string, reason: string, call: { askedMs: number; everyMs: number }): number {
    const { askedMs, everyMs } = call;
    const nowMs = this.#nowMs();
    const known = this.#absences.get(service);
    const absence = known ?? {
      fromMs: askedMs,
      reason,
      failures: 0,
      failedAtMs: Number.NEGATIVE_INFINITY,
      retryAtMs: nowMs,
      isTried: false,
    };
    this.#absences.set(service, absence);
    if (known === undefined) this.#log.warn({ service, reason }, "the service cannot be asked what it stored");
    if (askedMs >= absence.failedAtMs) {
      absence.failures += 1;
      absence.retryAtMs = nowMs + Math.min(PAUSE_MAX_MS, everyMs * 2 ** (absence.failures - 1));
    }
    absence.failedAtMs = nowMs;
    absence.isTried = false;
    absence.reason = reason;
    return Math.max(1, absence.retryAtMs - nowMs);
  }

  /**
   * Returns how much of a period this process has seen, and how much of that the service was away. `fromMs`,
   * `toMs`: since 1970.
   */
  seen(service: string, fromMs: number, toMs: number): { readonly totalMs: number; readonly awayMs: number } {
    const from = Math.max(fromMs, this.#sinceMs);
    const totalMs = Math.max(0, toMs - from);
    const absence = this.#absences.get(service);
    const now = absence === undefined ? [] : [{ fromMs: absence.fromMs, untilMs: Number.POSITIVE_INFINITY }];
    const overlaps = [...(this.#spells.get(service) ?? []), ...now].map((spell) =>
      Math.max(0, Math.min(toMs, spell.untilMs) - Math.max(from, spell.fromMs)),
    );
    const awayMs = Math.min(
      totalMs,
      overlaps.reduce((sum, ms) => sum + ms, 0),
    );
    return { totalMs, awayMs };
  }

  /** Services that cannot be asked now, with the reason. */
  absences(): ReadonlyMap<string, string> {
    const words = (reason: string) => `it cannot be asked what it stored: ${reason}`;
    return new Map([...this.#absences].map(([service, { reason }]) => [service, words(reason)]));
  }

  isAway(service: string): boolean {
    return this.#absences.has(service);
  }

  /** Services that are away are tried at once by the next run that needs them. */
  retryNow(): void {
    for (const absence of this.#absences.values()) absence.retryAtMs = 0;
  }

  #nowMs(): number {
    return this.#clock.now().epochMilliseconds;
  }
}
