/**
 * Watches for files that triggers expect: a missing one is a warning in the log, in health and metrics, and a
 * notification.
 */

import type { Clock } from "#core/clock.ts";
import { wordsOf } from "#core/errors.ts";
import type { Logger } from "#core/log.ts";
import type { IsoInstant } from "../model.ts";

/** A file that did not arrive by its due time. */
export interface MissingFile {
  readonly trigger: string;
  readonly due: IsoInstant;
  /** When the last file of the trigger arrived, or null. */
  readonly lastSeen: IsoInstant | null;
}

export interface LateFileParts {
  /** Finds the files that are late now. */
  find(): Promise<readonly MissingFile[]>;
  /** Called at each check with the late files, to count them by trigger. */
  count(missing: readonly MissingFile[]): void;
  readonly clock: Clock;
  readonly log: Logger;
}

const CHECK_EVERY_MS = 30_000;

export class LateFiles {
  readonly #parts: LateFileParts;
  readonly #stop = new AbortController();
  /** Due times that a warning was written for, by trigger. */
  readonly #warned = new Map<string, IsoInstant>();
  #missing: readonly MissingFile[] = [];
  #loop: Promise<void> | null = null;

  constructor(parts: LateFileParts) {
    this.#parts = parts;
  }

  start(): void {
    this.#loop ??= this.#run();
  }

  missing(): readonly MissingFile[] {
    return this.#missing;
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#loop;
  }

  async #run(): Promise<void> {
    const { clock, log } = this.#parts;
    do {
      await this.look().catch((thrown) =>
        log.warn({ err: thrown }, `the check for late files failed: ${wordsOf(thrown)}`),
      );
    } while (await clock.sleep(CHECK_EVERY_MS, this.#stop.signal));
  }

  async look(): Promise<void> {
    const { find, count, log } = this.#parts;
    this.#missing = await find();
    count(this.#missing);
    for (const file of this.#missing) {
      if (this.#warned.get(file.trigger) !== file.due) {
        this.#warned.set(file.trigger, file.due);
        log.warn({ ...file }, missingWords(file));
      }
    }
  }
}

export function missingWords(file: MissingFile): string {
  const last = file.lastSeen === null ? "none has come yet" : `the last came at ${file.lastSeen}`;
  return `trigger ${file.trigger} expected a file by ${file.due}; ${last}`;
}
