/**
 * A thread for work on a disk that many files need at the same time. A synchronous call costs a third of an asynchronous one, and a disk that hangs
 * holds up this thread alone. It takes one party after another: a message there, a message back.
 *
 * Whatever keeps a party from being done is answered with null, and the caller then takes the ordinary way, which says in words what is wrong.
 * The thread is started by the first party, ends when nothing comes for a while, and keeps no process from ending unless somebody waits for it.
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
  type PartyMessage,
} from "./disk-work.ts";
import { wordsOf } from "./errors.ts";
import { armedFault } from "./faults.ts";

export interface DiskThreadFacts {
  /** The module that calls `serveDisk`. */
  readonly module: URL;
  /** Handed to what it serves with. */
  readonly data: unknown;
  /** Hears why the thread died. */
  onFault?(words: string): void;
  /** Milliseconds without a party until it ends. */
  readonly idleMs?: number;
  /** Milliseconds that a party nobody waits for may take until its thread is taken for hung, and that closing may take. */
  readonly patienceMs?: number;
}

interface Party<Answer> {
  readonly ended: Promise<Answer | null>;
  /** May be left before it has ended. */
  readonly signal: AbortSignal | undefined;
  resolve(answer: Answer | null): void;
}

interface Running<Answer> {
  readonly worker: Worker;
  readonly words: Int32Array;
  readonly parties: Map<number, Party<Answer>>;
}

const IDLE_MS = 10_000;
const PATIENCE_MS = 2_000;
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
   * Null when it was not done, or only in part. With a signal, who gives up hears null at once, and the party does nothing more that it had not begun;
   * without one, the answer is waited for as long as it takes. `mustHear`: also who gives up waits for the answer.
   */
  ask(order: Order, signal?: AbortSignal, mustHear = false): Promise<Answer | null> {
    if (this.#closed || signal?.aborted === true) return Promise.resolve(null);
    const running = this.#running ?? this.#start();
    if (running === null) return Promise.resolve(null);
    const { promise, resolve } = Promise.withResolvers<Answer | null>();
    this.#asked += 1;
    const number = this.#asked;
    const giveUp = () => (mustHear ? sayUnwanted(running, number) : this.#giveUp(running, number));
    const ended = (answer: Answer | null) => {
      signal?.removeEventListener("abort", giveUp);
      resolve(answer);
    };
    running.parties.set(number, { ended: promise, signal: mustHear ? undefined : signal, resolve: ended });
    signal?.addEventListener("abort", giveUp, { once: true });
    if (this.#idle !== null) clearTimeout(this.#idle);
    running.worker.ref();
    const message: PartyMessage<Order> = { number, order };
    running.worker.postMessage(message);
    return promise;
  }

  /** What may be left is left, and the rest waited for, but not for long. Later calls hear null. */
  async close(): Promise<void> {
    this.#closed = true;
    const running = this.#running;
    if (running === null) return;
    const waited = Promise.withResolvers<void>();
    const timer = setTimeout(waited.resolve, this.#patienceMs);
    for (const [number, { signal }] of running.parties)
      if (signal !== undefined) this.#giveUp(running, number);
    await Promise.race([Promise.all([...running.parties.values()].map((one) => one.ended)), waited.promise]);
    Atomics.store(running.words, BEGUN, LEFT_BEHIND);
    await Promise.race([this.#end(running), waited.promise]);
    clearTimeout(timer);
  }

  get #patienceMs(): number {
    return this.#facts.patienceMs ?? PATIENCE_MS;
  }

  /** Null when the system has no room for a thread. */
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
        // What was compiled once is compiled for the thread too: it starts in half the time.
        env: cache === undefined ? {} : { NODE_COMPILE_CACHE: dirname(cache) },
        execArgv: [],
        resourceLimits: MEBIBYTES,
      });
    } catch (thrown) {
      this.#facts.onFault?.(wordsOf(thrown));
      return null;
    }
    const running: Running<Answer> = { worker, words, parties: new Map() };
    worker.on("message", ({ number, answer }: DiskAnswer<Answer>) => this.#hear(running, number, answer));
    worker.on("error", (thrown) => {
      this.#facts.onFault?.(wordsOf(thrown));
      void this.#end(running);
    });
    worker.on("exit", () => this.#end(running));
    worker.unref();
    this.#running = running;
    return running;
  }

  #hear(running: Running<Answer>, number: number, answer: Answer | null): void {
    running.parties.get(number)?.resolve(answer);
    running.parties.delete(number);
    if (running.parties.size > 0 || running !== this.#running) return;
    running.worker.unref();
    this.#idle = setTimeout(() => this.#end(running), this.#facts.idleMs ?? IDLE_MS).unref();
  }

  #giveUp(running: Running<Answer>, number: number): void {
    sayUnwanted(running, number);
    running.parties.get(number)?.resolve(null);
    this.#bePatient(running, number);
  }

  #bePatient(running: Running<Answer>, number: number): void {
    setTimeout(() => this.#leave(running, number), this.#patienceMs).unref();
  }

  /** Leaves the thread behind when it hangs in this party; never in the middle of one that somebody waits for. */
  #leave(running: Running<Answer>, number: number): void {
    if (!running.parties.has(number)) return;
    if (Atomics.compareExchange(running.words, BEGUN, number, LEFT_BEHIND) === number) {
      this.#facts.onFault?.("the disk does not answer; what it was asked for is left");
      void this.#end(running);
    } else this.#bePatient(running, number);
  }

  async #end(running: Running<Answer>): Promise<void> {
    if (this.#running === running) {
      this.#running = null;
      if (this.#idle !== null) clearTimeout(this.#idle);
    }
    for (const party of running.parties.values()) party.resolve(null);
    running.parties.clear();
    running.worker.unref();
    await running.worker.terminate();
  }
}

/** Earlier parties that can be given up as well are answered sooner by it, which does no harm. */
function sayUnwanted({ words }: Pick<Running<unknown>, "words">, number: number): void {
  if (Atomics.load(words, GIVEN_UP) < number) Atomics.store(words, GIVEN_UP, number);
}
