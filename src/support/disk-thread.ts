/**
 * A thread for work on a disk that many files need at the same time. A synchronous call costs a third of an
 * asynchronous one, and a disk that hangs blocks this thread alone. It performs one task after another: one message
 * each way. A task that fails resolves with null, and the caller then does the same work asynchronously, which
 * reports the error in words. The first task starts the thread; it ends after some idle time, and keeps the process
 * alive only while a caller waits for it.
 */
import { getCompileCacheDir } from "node:module";
import { dirname } from "node:path";
import { Worker } from "node:worker_threads";
import {
  BEGUN,
  type DiskAnswer,
  type DiskThreadData,
  GIVEN_UP,
  LEFT_BEHIND,
  type TaskMessage,
} from "./disk-work.ts";
import { wordsOf } from "./errors.ts";
import { armedFault } from "./faults.ts";

export interface DiskThreadFacts {
  /** The module that calls `serveDisk`. */
  readonly module: URL;
  /** Passed to the function that `serveDisk` calls. */
  readonly data: unknown;
  /** Called with the reason when the thread died. */
  onFault?(words: string): void;
  /** Milliseconds without a task until the thread ends. */
  readonly idleMs?: number;
  /**
   * Milliseconds that a task without a waiting caller may take until its thread counts as hung, and that closing may
   * take.
   */
  readonly hangMs?: number;
}

interface Task<Answer> {
  readonly ended: Promise<Answer | null>;
  /** Its abort gives the task up before it has ended. */
  readonly signal: AbortSignal | undefined;
  resolve(answer: Answer | null): void;
}

interface Running<Answer> {
  readonly worker: Worker;
  readonly words: Int32Array;
  readonly tasks: Map<number, Task<Answer>>;
}

const IDLE_MS = 10_000;
const HANG_MS = 2_000;
const MEBIBYTES = { maxOldGenerationSizeMb: 64, maxYoungGenerationSizeMb: 4 };

export class DiskThread<Order, Answer> {
  readonly #facts: DiskThreadFacts;
  #running: Running<Answer> | null = null;
  #idle: NodeJS.Timeout | null = null;
  #asked = 0;
  #closed = false;

  constructor(facts: DiskThreadFacts) {
    this.#facts = facts;
  }

  /**
   * Null when the task was not done, or only in part. With a signal, a caller that aborts receives null at once, and
   * the task begins no further step; without one, the caller waits as long as the task takes. `mustHear`: the caller
   * waits for the result also after it aborted.
   */
  ask(order: Order, signal?: AbortSignal, mustHear = false): Promise<Answer | null> {
    if (this.#closed || signal?.aborted === true) return Promise.resolve(null);
    const running = this.#running ?? this.#start();
    if (running === null) return Promise.resolve(null);
    const { promise, resolve } = Promise.withResolvers<Answer | null>();
    this.#asked += 1;
    const number = this.#asked;
    const giveUp = () => (mustHear ? markGivenUp(running, number) : this.#giveUp(running, number));
    const ended = (answer: Answer | null) => {
      signal?.removeEventListener("abort", giveUp);
      resolve(answer);
    };
    running.tasks.set(number, { ended: promise, signal: mustHear ? undefined : signal, resolve: ended });
    signal?.addEventListener("abort", giveUp, { once: true });
    if (this.#idle !== null) clearTimeout(this.#idle);
    running.worker.ref();
    const message: TaskMessage<Order> = { number, order };
    running.worker.postMessage(message);
    return promise;
  }

  /** Gives up tasks that have a signal, and waits a bounded time for the others. Later calls resolve with null. */
  async close(): Promise<void> {
    this.#closed = true;
    const running = this.#running;
    if (running === null) return;
    const waited = Promise.withResolvers<void>();
    const timer = setTimeout(waited.resolve, this.#hangMs);
    for (const [number, { signal }] of running.tasks) if (signal !== undefined) this.#giveUp(running, number);
    await Promise.race([Promise.all([...running.tasks.values()].map((one) => one.ended)), waited.promise]);
    Atomics.store(running.words, BEGUN, LEFT_BEHIND);
    await Promise.race([this.#end(running), waited.promise]);
    clearTimeout(timer);
  }

  get #hangMs(): number {
    return this.#facts.hangMs ?? HANG_MS;
  }

  /** Null when the system cannot start a thread. */
  #start(): Running<Answer> | null {
    const words = new Int32Array(new SharedArrayBuffer(8));
    Atomics.store(words, BEGUN, this.#asked);
    const workerData: DiskThreadData = {
      words,
      begun: this.#asked,
      fault: armedFault(),
      data: this.#facts.data,
    };
    const cache = getCompileCacheDir();
    let worker: Worker;
    try {
      worker = new Worker(this.#facts.module, {
        name: "headgate-disk",
        workerData,
        // The thread uses the compile cache of this process: it starts in half the time.
        env: cache === undefined ? {} : { NODE_COMPILE_CACHE: dirname(cache) },
        execArgv: [],
        resourceLimits: MEBIBYTES,
      });
    } catch (thrown) {
      this.#facts.onFault?.(wordsOf(thrown));
      return null;
    }
    const running: Running<Answer> = { worker, words, tasks: new Map() };
    worker.on("message", ({ number, answer }: DiskAnswer<Answer>) => this.#onAnswer(running, number, answer));
    worker.on("error", (thrown) => {
      this.#facts.onFault?.(wordsOf(thrown));
      void this.#end(running);
    });
    worker.on("exit", () => this.#end(running));
    worker.unref();
    this.#running = running;
    return running;
  }

  #onAnswer(running: Running<Answer>, number: number, answer: Answer | null): void {
    running.tasks.get(number)?.resolve(answer);
    running.tasks.delete(number);
    if (running.tasks.size > 0 || running !== this.#running) return;
    running.worker.unref();
    this.#idle = setTimeout(() => this.#end(running), this.#facts.idleMs ?? IDLE_MS).unref();
  }

  #giveUp(running: Running<Answer>, number: number): void {
    markGivenUp(running, number);
    running.tasks.get(number)?.resolve(null);
    this.#abandonLater(running, number);
  }

  #abandonLater(running: Running<Answer>, number: number): void {
    setTimeout(() => this.#leave(running, number), this.#hangMs).unref();
  }

  /** Abandons the thread when it hangs in this task; never in a task that a caller waits for. */
  #leave(running: Running<Answer>, number: number): void {
    if (!running.tasks.has(number)) return;
    if (Atomics.compareExchange(running.words, BEGUN, number, LEFT_BEHIND) === number) {
      this.#facts.onFault?.("the disk does not respond; its pending work is given up");
      void this.#end(running);
    } else this.#abandonLater(running, number);
  }

  async #end(running: Running<Answer>): Promise<void> {
    if (this.#running === running) {
      this.#running = null;
      if (this.#idle !== null) clearTimeout(this.#idle);
    }
    for (const task of running.tasks.values()) task.resolve(null);
    running.tasks.clear();
    running.worker.unref();
    await running.worker.terminate();
  }
}

/** Earlier tasks that may be given up end sooner through it as well, which does no harm. */
function markGivenUp({ words }: Pick<Running<unknown>, "words">, number: number): void {
  if (Atomics.load(words, GIVEN_UP) < number) Atomics.store(words, GIVEN_UP, number);
}
