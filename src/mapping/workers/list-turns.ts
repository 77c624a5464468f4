/**
 * Lists of small files share a process for as long as it keeps up: starting and warming another one takes
 * half a second of CPU, as much as hundreds of such files. Only a list that has waited for a while has
 * another one started, or one that finds the process at the same lists for as long. Drops take turns.
 */

import type { FairQueue } from "#core/turns.ts";

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

/** Of the lists of one key. */
interface Turn {
  working: number;
  /** When the last one began. */
  begunMs: number;
  /** Callbacks that begin the waiting ones of each drop; in the order of the turns. */
  readonly waiting: Map<string, (() => void)[]>;
}

export interface Listed {
  /** Lists of one key may share a process. */
  readonly key: string;
  readonly drop: string;
  /** Of that process. */
  readonly load: Load;
}

export class ListTurns {
  readonly #workers: FairQueue<string>;
  readonly #turns = new Map<string, Turn>();

  /** A turn also takes one of the workers. */
  constructor(workers: FairQueue<string>) {
    this.#workers = workers;
  }

  /**
   * A list that has its turn may not be a task of the process yet. Throws the reason of the signal when it is aborted
   * before the turn comes.
   */
  async run<T>({ key, drop, load }: Listed, work: () => Promise<T>, signal: AbortSignal): Promise<T> {
    signal.throwIfAborted();
    const turn = this.#turns.getOrInsert(key, { working: 0, begunMs: 0, waiting: new Map() });
    const hasThread = turn.working === 0 || Math.max(turn.working, load.tasks) < load.threads;
    if (hasThread || performance.now() - turn.begunMs >= HANG_MS) begin(turn);
    else await waitFor(turn, drop, signal);
    try {
      return await this.#workers.run(drop, work, signal);
    } finally {
      turn.working -= 1;
      beginNext(turn);
      if (turn.working === 0) this.#turns.delete(key);
    }
  }
}

function begin(turn: Turn): void {
  turn.working += 1;
  turn.begunMs = performance.now();
}

/** The drop that had a turn comes last. */
function beginNext({ waiting }: Turn): void {
  const [next] = waiting;
  if (next === undefined) return;
  const [drop, [take]] = next;
  take?.();
  const others = waiting.get(drop);
  waiting.delete(drop);
  if (others !== undefined) waiting.set(drop, others);
}

function waitFor(turn: Turn, drop: string, signal: AbortSignal): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const leave = () => {
    clearTimeout(timer);
    signal.removeEventListener("abort", abort);
    const others = (turn.waiting.get(drop) ?? []).filter((one) => one !== take);
    if (others.length > 0) turn.waiting.set(drop, others);
    else turn.waiting.delete(drop);
  };
  const take = () => {
    leave();
    begin(turn);
    resolve();
  };
  const abort = () => {
    leave();
    reject(signal.reason);
  };
  const timer = setTimeout(take, HANG_MS);
  signal.addEventListener("abort", abort, { once: true });
  turn.waiting.set(drop, [...(turn.waiting.get(drop) ?? []), take]);
  return promise;
}
