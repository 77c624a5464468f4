/**
 * Lists of small files share a process for as long as it keeps up: one more takes half a second of computing until it is started and warm,
 * which is as much as hundreds of such files take. Only who has waited for a while has another one started.
 */

import type { Slots } from "./slots.ts";

/** How long that is, in milliseconds: longer than the first process takes to start and to map a first list with a usual mapper. */
const HANG_MS = 750;

interface Turn {
  working: number;
  /** How to begin, in the order of their coming. */
  readonly waiting: (() => void)[];
}

export class ListTurns {
  readonly #slots: Slots;
  readonly #turns = new Map<string, Turn>();

  /** A turn takes one of the slots too. */
  constructor(slots: Slots) {
    this.#slots = slots;
  }

  /**
   * `key`: of what may share a process; `hasIdle`: a process that was started has nothing to do. False when the signal is aborted before the
   * turn comes.
   */
  async take(key: string, hasIdle: boolean, signal: AbortSignal): Promise<boolean> {
    if (signal.aborted) return false;
    const turn = this.#turns.getOrInsert(key, { working: 0, waiting: [] });
    if (turn.working === 0 || hasIdle) turn.working += 1;
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
