/**
 * Lists of small files share a process for as long as it keeps up: starting and warming another one takes
 * half a second of CPU, as much as hundreds of such files. Only a list that has waited for a while has
 * another one started.
 */

import type { Slots } from "./slots.ts";

/**
 * That wait, in milliseconds: longer than the first process takes to start and to map a first list with a
 * usual mapper.
 */
const HANG_MS = 750;

/** Of a process. */
export interface Load {
  /** Threads that were started. */
  readonly threads: number;
  /** Tasks in progress. */
  readonly tasks: number;
}

interface Turn {
  working: number;
  /** Callbacks that begin the waiting lists, in the order of arrival. */
  readonly waiting: (() => void)[];
}

export class ListTurns {
  readonly #slots: Slots;
  readonly #turns = new Map<string, Turn>();

  /** A turn also takes one of the slots. */
  constructor(slots: Slots) {
    this.#slots = slots;
  }

  /**
   * `key` identifies lists that may share a process. A list that has its turn may not be a task of the process yet.
   * False when the signal is aborted before the turn comes.
   */
  async take(key: string, { threads, tasks }: Load, signal: AbortSignal): Promise<boolean> {
    if (signal.aborted) return false;
    const turn = this.#turns.getOrInsert(key, { working: 0, waiting: [] });
    if (turn.working === 0 || Math.max(turn.working, tasks) < threads) turn.working += 1;
    else if (!(await waitFor(turn, signal))) return false;
    const hasSlot = await this.#slots.take(signal);
    if (!hasSlot) this.#end(key);
    return hasSlot;
  }

  /** Ends a turn. */
  free(key: string): void {
    this.#slots.free();
    this.#end(key);
  }

  #end(key: string): void {
    const turn = this.#turns.get(key);
    if (turn === undefined) return;
    turn.working -= 1;
    turn.waiting[0]?.();
    if (turn.working === 0) this.#turns.delete(key);
  }
}

function waitFor(turn: Turn, signal: AbortSignal): Promise<boolean> {
  return new Promise((resolve) => {
    const end = (isTurn: boolean) => {
      clearTimeout(timer);
      signal.removeEventListener("abort", abort);
      turn.waiting.splice(turn.waiting.indexOf(begin), 1);
      if (isTurn) turn.working += 1;
      resolve(isTurn);
    };
    const begin = () => end(true);
    const abort = () => end(false);
    const timer = setTimeout(begin, HANG_MS);
    signal.addEventListener("abort", abort, { once: true });
    turn.waiting.push(begin);
  });
}
