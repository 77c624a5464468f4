/** Limits of requests that cost processor time: one at a time for each person, and few for all people. */
import { RejectedError } from "#core/errors.ts";

/** Files that mappers map at the same time for the playground and for previews of replays, of all people. */
export const MAPPED_AT_ONCE = 2;
/** Milliseconds of one such file; a person waits for the answer. */
export const MAPPING_LIMIT_MS = 30_000;

/** A newer request of a person ends the one before. */
export class NewestRequests {
  readonly #operation: string;
  readonly #current = new Map<string, AbortController>();

  /** `operation`: of the error with which an ended request is answered. */
  constructor(operation: string) {
    this.#operation = operation;
  }

  /**
   * `work` receives a signal that is aborted when the client has gone (`gone`), by a newer request and by `close`.
   * Throws `RejectedError` for the one that was ended.
   */
  async run<Answer>(
    person: string,
    gone: AbortSignal,
    work: (signal: AbortSignal) => Promise<Answer>,
  ): Promise<Answer> {
    this.#current.get(person)?.abort();
    const mine = new AbortController();
    this.#current.set(person, mine);
    try {
      return await work(AbortSignal.any([gone, mine.signal]));
    } catch (thrown) {
      // A client that has gone receives neither.
      if (!mine.signal.aborted && !gone.aborted) throw thrown;
      throw new RejectedError("HG-OPS-010", { operation: this.#operation, subject: person, cause: thrown });
    } finally {
      if (this.#current.get(person) === mine) this.#current.delete(person);
    }
  }

  close(): void {
    for (const request of this.#current.values()) request.abort();
  }
}
