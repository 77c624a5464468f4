/**
 * Source files that could not be archived or deleted at the last attempt. Their readings were delivered, so that
 * nothing else shows it; each is tried again, and so noted again soon after a restart.
 */
import { type Clock, isoInstant } from "#core/clock.ts";
import { HeadgateError, wordsOf } from "#core/errors.ts";

export interface UnfinishedFile {
  readonly drop: string;
  readonly path: string;
  readonly runId: string | null;
  readonly since: string;
  readonly code: string | null;
  readonly reason: string;
}

/** More are counted without their names. */
const KEPT_MAX = 10_000;
/** Milliseconds after the start by which each has been tried again. */
const KNOWN_AFTER_MS = 120_000;

type Subject = Pick<UnfinishedFile, "drop" | "path" | "runId">;

export class FinishFaults {
  readonly #clock: Clock;
  readonly #startedMs: number;
  readonly #files = new Map<string, UnfinishedFile>();

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#startedMs = clock.monotonicMs();
  }

  /** `thrown`: why it could not be finished; null when it was, or no longer has to be. */
  note({ drop, path, runId }: Subject, thrown: unknown): void {
    const key = JSON.stringify([drop, path, runId]);
    if (thrown === null) {
      this.#files.delete(key);
      return;
    }
    const known = this.#files.get(key);
    if (known === undefined && this.#files.size >= KEPT_MAX) return;
    const since = known?.since ?? isoInstant(this.#clock.now());
    const code = thrown instanceof HeadgateError ? thrown.code : null;
    this.#files.set(key, { drop, path, runId, since, code, reason: wordsOf(thrown) });
  }

  list(): readonly UnfinishedFile[] {
    return [...this.#files.values()];
  }

  /** False right after the start, when former files were not tried again yet. */
  get isKnown(): boolean {
    return this.#clock.monotonicMs() - this.#startedMs >= KNOWN_AFTER_MS;
  }
}
