/**
 * A thread for work on a disk that many files need at the same time, as a piscina pool of one. A synchronous call costs
 * a third of an asynchronous one, and a disk that hangs blocks this thread alone. Tasks are performed in the order in
 * which they were asked. A task that fails resolves with null, and the caller then does the same work asynchronously,
 * which reports the error in words. The first task starts the thread; it ends after some idle time, and keeps the
 * process alive only while a caller waits for it.
 */
import { getCompileCacheDir } from "node:module";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { Piscina } from "piscina";
import { wordsOf } from "../errors.ts";
import { armedFault } from "../faults.ts";
import { BEGUN, type DiskTask, type DiskThreadData, GIVEN_UP, LEFT_BEHIND } from "./disk-work.ts";

export interface DiskThreadFacts {
  /** The module that exports as `perform` what `diskTasks` returns. */
  readonly module: URL;
  /** Passed to the function that `diskTasks` calls. */
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
  /** Shared with the thread. */
  readonly state: Int32Array;
  readonly ended: Promise<Answer | null>;
  /** Its abort gives the task up before it has ended. */
  readonly signal: AbortSignal | undefined;
  resolve(answer: Answer | null): void;
}

interface Running<Order, Answer> {
  readonly pool: Piscina<DiskTask<Order>, Answer | null>;
  /** Tasks that the thread has not answered. */
  readonly tasks: Set<Task<Answer>>;
}

const IDLE_MS = 10_000;
const HANG_MS = 2_000;
const MEBIBYTES = { maxOldGenerationSizeMb: 64, maxYoungGenerationSizeMb: 4 };

export class DiskThread<Order, Answer> {
  readonly #facts: DiskThreadFacts;
  #running: Running<Order, Answer> | null = null;
  #closed = false;

  constructor(facts: DiskThreadFacts) {
    this.#facts = facts;
  }

  /**
   * Null when the task was not done, or only in part. With a signal, a caller that aborts receives null at once, and
   * the task begins no further step; without one, the caller waits as long as the task takes. `mustReceive`: the caller
   * waits for the result also after it aborted.
   */
  ask(order: Order, signal?: AbortSignal, mustReceive = false): Promise<Answer | null> {
    if (this.#closed || signal?.aborted === true) return Promise.resolve(null);
    this.#running ??= this.#start();
    const running = this.#running;
    const { promise, resolve } = Promise.withResolvers<Answer | null>();
    const giveUp = () => (mustReceive ? mark(task, GIVEN_UP) : this.#giveUp(running, task));
    const task: Task<Answer> = {
      state: new Int32Array(new SharedArrayBuffer(4)),
      ended: promise,
      signal: mustReceive ? undefined : signal,
      resolve(answer) {
        signal?.removeEventListener("abort", giveUp);
        resolve(answer);
      },
    };
    running.tasks.add(task);
    signal?.addEventListener("abort", giveUp, { once: true });
    void this.#run(running, task, order);
    return promise;
  }

  /** Gives up tasks that have a signal, and waits a bounded time for the others. Later calls resolve with null. */
  async close(): Promise<void> {
    this.#closed = true;
    const running = this.#running;
    if (running === null) return;
    const waited = Promise.withResolvers<void>();
    const timer = setTimeout(waited.resolve, this.#hangMs);
    for (const task of running.tasks) if (task.signal !== undefined) this.#giveUp(running, task);
    await Promise.race([Promise.all([...running.tasks].map((one) => one.ended)), waited.promise]);
    await Promise.race([this.#end(running), waited.promise]);
    clearTimeout(timer);
  }

  get #hangMs(): number {
    return this.#facts.hangMs ?? HANG_MS;
  }

  #start(): Running<Order, Answer> {
    const workerData: DiskThreadData = { fault: armedFault(), data: this.#facts.data };
    const cache = getCompileCacheDir();
    const pool = new Piscina<DiskTask<Order>, Answer | null>({
      filename: fileURLToPath(this.#facts.module),
      name: "perform",
      minThreads: 0,
      maxThreads: 1,
      idleTimeout: this.#facts.idleMs ?? IDLE_MS,
      workerData,
      // The thread uses the compile cache of this process: it starts in half the time.
      env: cache === undefined ? {} : { NODE_COMPILE_CACHE: dirname(cache) },
      execArgv: [],
      resourceLimits: MEBIBYTES,
      // Otherwise the pool moves a waiting task behind the others whenever the thread is busy.
      stricterFIFO: true,
      recordTiming: false,
    });
    const running = { pool, tasks: new Set<Task<Answer>>() };
    // The thread died before it took a task.
    pool.on("error", (thrown) => this.#onDeath(running, thrown));
    return running;
  }

  async #run(running: Running<Order, Answer>, task: Task<Answer>, order: Order): Promise<void> {
    try {
      const answer = await running.pool.run({ state: task.state, order });
      running.tasks.delete(task);
      task.resolve(answer);
    } catch (thrown) {
      // `diskTasks` never throws: the thread died, or the system could not start one.
      this.#onDeath(running, thrown);
    }
  }

  #onDeath(running: Running<Order, Answer>, thrown: unknown): void {
    if (running !== this.#running) return;
    this.#facts.onFault?.(wordsOf(thrown));
    void this.#end(running);
  }

  #giveUp(running: Running<Order, Answer>, task: Task<Answer>): void {
    mark(task, GIVEN_UP);
    task.resolve(null);
    this.#abandonLater(running, task);
  }

  #abandonLater(running: Running<Order, Answer>, task: Task<Answer>): void {
    const hadBegun = hasBegun(task);
    setTimeout(() => this.#leave(running, task, hadBegun), this.#hangMs).unref();
  }

  /**
   * Abandons the thread when it hangs in this task, which it had begun that long ago; never in a task that a caller
   * waits for, nor in one that it has only come to.
   */
  #leave(running: Running<Order, Answer>, task: Task<Answer>, hadBegun: boolean): void {
    if (running !== this.#running || !running.tasks.has(task)) return;
    if (hadBegun) {
      this.#facts.onFault?.("the disk does not respond; its pending work is given up");
      void this.#end(running);
    } else this.#abandonLater(running, task);
  }

  /** An abandoned thread begins no task that was reported as not done. */
  async #end(running: Running<Order, Answer>): Promise<void> {
    if (this.#running === running) this.#running = null;
    for (const task of running.tasks) {
      mark(task, LEFT_BEHIND);
      task.resolve(null);
    }
    running.tasks.clear();
    await running.pool.destroy();
  }
}

function hasBegun({ state }: Pick<Task<unknown>, "state">): boolean {
  return (Atomics.load(state, 0) & BEGUN) !== 0;
}

function mark({ state }: Pick<Task<unknown>, "state">, bit: number): void {
  Atomics.or(state, 0, bit);
}
