/**
 * Decides when a file is complete: after a number of equal observations of size and time, spaced by the
 * gateway's monotonic clock, and never under a temporary name. Times of servers are compared, not computed
 * with.
 */
import { posix } from "node:path";

export interface SettlingRules {
  readonly observations: number;
  readonly intervalMs: number;
  /** Milliseconds beyond which a pause in the growth of a file is not doubled. */
  readonly pauseMaxMs?: number;
  /** Patterns of base names, without regard to case. */
  readonly temporaryNames: readonly string[];
}

/** The observed facts of an arrival in state `settling`. */
export interface Observed {
  readonly id: number;
  readonly path: string;
  readonly size: number;
  readonly mtime: string;
}

export type Verdict =
  | { readonly settled: true; readonly sinceMs: number }
  | {
      readonly settled: false;
      readonly reason: string;
      /** Milliseconds of the monotonic clock. */
      readonly sinceMs: number;
      /** It waits for its sender to rename it, so that an early poll makes no difference. */
      readonly temporary: boolean;
    };

interface Watched {
  size: number;
  mtime: string;
  equal: number;
  countedAtMs: number;
  changedAtMs: number;
  /** The longest time in which the file did not change, and then grew. */
  pauseMs: number;
  readonly sinceMs: number;
}

/** Remembers only the files that have not settled. */
export class Settling {
  readonly #rules: SettlingRules;
  readonly #temporary: readonly NamePattern[];
  readonly #watched = new Map<number, Watched>();

  constructor(rules: SettlingRules) {
    this.#rules = rules;
    this.#temporary = rules.temporaryNames.map(namePattern);
  }

  /** `listedMs`: the file was observed after that, and before `nowMs`; both of the monotonic clock. */
  observe(file: Observed, nowMs: number, listedMs: number = nowMs): Verdict {
    const watched = this.#count(file, nowMs, listedMs);
    const pattern = firstMatch(file.path, this.#temporary);
    const { observations } = this.#rules;
    const stillMs = Math.min(2 * watched.pauseMs, this.#rules.pauseMaxMs ?? Number.POSITIVE_INFINITY);
    const pauses = nowMs - watched.changedAtMs < stillMs;
    if (pattern === null && watched.equal >= observations && !pauses)
      return { settled: true, sinceMs: watched.sinceMs };
    const reason =
      pattern === null
        ? pauses && watched.equal >= observations
          ? `grew after a pause of ${Math.round(watched.pauseMs / 1000)} s before: waits for twice that`
          : `size or time still changing: ${watched.equal} of ${observations} equal observations`
        : `temporary name (${pattern}): waits until its sender renames it`;
    return { settled: false, reason, sinceMs: watched.sinceMs, temporary: pattern !== null };
  }

  /** The file was picked up, or has gone. */
  forget(id: number): void {
    this.#watched.delete(id);
  }

  #count(file: Observed, nowMs: number, listedMs: number): Watched {
    const watched = this.#watched.get(file.id);
    if (watched === undefined) {
      const { size, mtime } = file;
      const first = {
        size,
        mtime,
        equal: 1,
        countedAtMs: nowMs,
        changedAtMs: nowMs,
        pauseMs: 0,
        sinceMs: nowMs,
      };
      this.#watched.set(file.id, first);
      return first;
    }
    if (watched.size !== file.size || watched.mtime !== file.mtime) {
      // Seen equal at least twice: a file that changes from one observation to the next does not pause.
      if (file.size > watched.size && watched.equal > 1)
        watched.pauseMs = Math.max(watched.pauseMs, nowMs - watched.changedAtMs);
      const { size, mtime } = file;
      Object.assign(watched, { size, mtime, equal: 1, countedAtMs: nowMs, changedAtMs: nowMs });
    } else if (listedMs - watched.countedAtMs >= this.#rules.intervalMs) {
      watched.equal = Math.min(watched.equal + 1, this.#rules.observations);
      watched.countedAtMs = nowMs;
    }
    return watched;
  }
}

/** The temporary pattern that a file's name matches, or null. */
export function temporaryPattern(path: string, patterns: readonly string[]): string | null {
  return firstMatch(path, patterns.map(namePattern));
}

interface NamePattern {
  readonly pattern: string;
  readonly lower: string;
  /** The plain text that a matching name must end with: this check costs a hundredth of matching. */
  readonly tail: string;
}

function namePattern(pattern: string): NamePattern {
  const lower = pattern.toLowerCase();
  return { pattern, lower, tail: /[^*?[\]{}()!+@|\\]*$/.exec(lower)?.[0] ?? "" };
}

function firstMatch(path: string, patterns: readonly NamePattern[]): string | null {
  const name = posix.basename(path).toLowerCase();
  const found = patterns.find(({ lower, tail }) => name.endsWith(tail) && posix.matchesGlob(name, lower));
  return found?.pattern ?? null;
}
