/**
 * A mapping host as the gateway sees it: one process whose threads perform tasks side by side. A task ends by
 * itself, or with its thread, or with the whole host: the host ends when one of its tasks takes too long,
 * when it holds too much memory, and when a cancelled task does not end.
 */
import type { ChildProcess } from "node:child_process";
import type { Socket } from "node:net";
import { constants, getPriority, setPriority } from "node:os";
import { wordsOf } from "#core/errors.ts";
import { preferWhenMemoryIsShort, rssOf } from "#core/threads/resident-memory.ts";
import { Channel, sendSecret } from "./channel.ts";
import { endLoan } from "./compiled-modules.ts";
import {
  exitOf,
  type HostExit,
  type HostLimits,
  isHeapFull,
  lastWords,
  MEMORY_SLACK,
  startHost,
} from "./host-process.ts";
import type {
  Answered,
  FromHost,
  LateWords,
  MapperModule,
  TaskEnd,
  TaskRequest,
  TaskWords,
  ToHost,
} from "./messages.ts";

export interface AskOptions {
  readonly signal?: AbortSignal;
  /** Milliseconds from the moment at which a thread begins the task. */
  readonly timeLimit: number;
  log?(level: "info" | "warn", message: string): void;
}

export type AskOutcome =
  | Answered
  /** The thread was ended, or the host because of this task. */
  | { readonly end: "cancelled" | "late" | "memory" }
  /** No mapper had a part in it. */
  | { readonly end: "not started"; readonly words: string }
  /** Something failed that the mapper did not await. */
  | { readonly end: "fault"; readonly words: string }
  /** The host was ended because of another task. */
  | { readonly end: "neighbour"; readonly words: string }
  /** The thread or the process ended by itself, or was ended from outside. */
  | { readonly end: "gone"; readonly words: string; readonly fromOutside: boolean };

export interface Asked {
  readonly outcome: AskOutcome;
  /** Whether the host had performed other tasks before this one, or performed some beside it. */
  readonly isShared: boolean;
  /** Whether the host performed others beside this one. */
  readonly hadNeighbour: boolean;
}

/** Reports of a host about its threads, beside the answers to tasks. */
export interface HostReports {
  /** A thread that has no task failed. */
  fault(words: string): void;
  /** A mapper gave something after the result of its file. */
  late(late: Omit<LateWords, "kind">): void;
}

const MEMORY_LOOK_MS = 50;
/** Resident bytes of a further thread that has mapped a small file and has no task: 30 MB, as measured. */
const IDLE_THREAD_BYTES = 32 * 1024 * 1024;
const START_MS = 30_000;
/** Between the cancellation of a task and the end of its host. */
const GRACE_MS = 200;
const STDERR_KEPT = 16_384;

interface Task {
  readonly options: AskOptions;
  hadNeighbour: boolean;
  /** Whatever ends it then, but an answer, counts as the cancellation. */
  isCancelled: boolean;
  timer: NodeJS.Timeout | undefined;
  settle(outcome: AskOutcome): void;
}

export class MappingHost {
  /** Tasks that were answered; of a list, each of its files. */
  served = 0;
  readonly #child: ChildProcess;
  readonly #socket: Socket;
  readonly #channel: Channel<ToHost, FromHost>;
  readonly #limits: HostLimits;
  readonly #reports: HostReports;
  readonly #ended: Promise<void>;
  readonly #tasks = new Map<number, Task>();
  #asked = 0;
  /** Threads that the host has reported; it starts with one. */
  #threads = 1;
  /** Resident bytes at the start; null until it is ready. */
  #idleBytes: number | null = null;
  #memoryTimer: NodeJS.Timeout | undefined;
  #stderr = "";
  #isEnding = false;
  #gone: HostExit | null = null;

  /** `own` see `HostStart`. */
  constructor(limits: HostLimits, reports: HostReports, own: MapperModule | null = null) {
    this.#limits = limits;
    this.#reports = reports;
    const { child, socket, caches } = startHost(limits, own);
    this.#child = child;
    this.#socket = socket;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#ended = promise;
    promise.then(() => caches.forEach(endLoan)).catch(() => undefined);
    this.#child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      this.#stderr = (this.#stderr + text).slice(-STDERR_KEPT);
    });
    this.#child.once("error", (thrown) => this.#end({ words: wordsOf(thrown), fromOutside: true }, resolve));
    this.#child.once("close", (code, signal) => this.#end(exitOf(code, signal), resolve));
    // Without its channel it can do nothing for the gateway.
    const kill = () => this.#child.kill("SIGKILL");
    socket.once("close", kill).on("error", kill);
    const keys = { secret: sendSecret(socket), side: "gateway" } as const;
    const words = "wrote to the channel between its process and the gateway";
    const broken = () => this.#endAll(() => ({ end: "gone", words, fromOutside: false }));
    this.#channel = new Channel(socket, keys, (message) => this.#onMessage(message), broken);
    this.#unref();
  }

  /** Whether the process runs and takes further tasks. */
  get isAlive(): boolean {
    return this.#gone === null && !this.#isEnding;
  }

  /** Tasks in progress. */
  get tasks(): number {
    return this.#tasks.size;
  }

  /** Threads with and without a task. A thread that starts for a task is not reported yet. */
  get threads(): number {
    return Math.max(this.#threads, this.tasks);
  }

  /** Bytes that its threads take without a task, beyond those at the start. */
  get threadBytes(): number {
    return (this.threads - this.tasks) * IDLE_THREAD_BYTES;
  }

  /** Resident bytes beyond those at the start; 0 where the system does not report them. */
  get grownBytes(): number {
    const now = this.#idleBytes === null ? null : rssOf(this.#child.pid);
    return now === null ? 0 : now - (this.#idleBytes ?? 0);
  }

  /** Others have the processor before it. */
  fallBehind(): void {
    try {
      const { pid } = this.#child;
      if (pid !== undefined) setPriority(pid, Math.max(getPriority(), constants.priority.PRIORITY_BELOW_NORMAL));
    } catch {
      return; // It has just ended, or the system does not permit it.
    }
  }

  /** Never rejects. At most as many tasks at the same time as the host has threads. */
  async ask(request: TaskRequest, options: AskOptions): Promise<Asked> {
    if (this.#gone !== null) {
      return { outcome: this.#judged(this.#gone), isShared: true, hadNeighbour: false };
    }
    const { promise, resolve } = Promise.withResolvers<AskOutcome>();
    this.#asked += 1;
    const number = this.#asked;
    const hasServed = this.served > 0;
    for (const other of this.#tasks.values()) other.hadNeighbour = true;
    const task: Task = {
      options,
      hadNeighbour: this.tasks > 0,
      isCancelled: false,
      timer: undefined,
      settle: (ended) => resolve(task.isCancelled && ended.end !== "answered" ? { end: "cancelled" } : ended),
    };
    this.#tasks.set(number, task);
    this.#ref();
    this.#memoryTimer ??= setInterval(() => this.#checkMemory(), MEMORY_LOOK_MS);
    const words = `it was not ready after ${START_MS / 1000} s`;
    task.timer = setTimeout(() => this.#stop(number, { end: "not started", words }), START_MS);
    const abort = () => this.#cancel(number);
    options.signal?.addEventListener("abort", abort, { once: true });
    this.#send({ kind: "task", number, request });
    if (options.signal?.aborted === true) abort();
    const outcome = await promise;
    clearTimeout(task.timer);
    options.signal?.removeEventListener("abort", abort);
    if (outcome.end === "answered") this.served += request.kind === "map list" ? request.jobs.length : 1;
    const { hadNeighbour } = task;
    return { outcome, isShared: hasServed || hadNeighbour, hadNeighbour };
  }

  /** Resolves when it has ended. */
  async kill(): Promise<void> {
    this.#isEnding = true;
    // An idle host does not keep the event loop, but a caller waits for its end now.
    if (this.#gone === null) this.#child.ref();
    this.#child.kill("SIGKILL");
    await this.#ended;
  }

  #send(message: ToHost): void {
    // Of a process that is ending, `close` reports how.
    this.#channel.send(message);
  }

  #onMessage(message: FromHost): void {
    if (message.kind === "ready") {
      this.#idleBytes = message.bytes;
      preferWhenMemoryIsShort(this.#child.pid);
    } else if (message.kind === "threads") this.#threads = message.count;
    else if (message.kind === "fault") this.#reports.fault(message.words);
    else if (message.kind === "late") this.#reports.late(message);
    else if (message.kind === "said") this.#onWords(message.number, message.words);
    else this.#settle(message.number, outcomeOf(message.ended));
  }

  #onWords(number: number, words: TaskWords): void {
    const task = this.#tasks.get(number);
    if (task === undefined) return;
    if (words.kind === "log") task.options.log?.(words.level, words.message);
    else if (!task.isCancelled) {
      clearTimeout(task.timer);
      task.timer = setTimeout(() => this.#stop(number, { end: "late" }), task.options.timeLimit);
    }
  }

  /** Each task may hold its share. Which of them holds too much cannot be seen, unless it is the only one. */
  #checkMemory(): void {
    if (this.grownBytes > this.tasks * (this.#limits.memory + MEMORY_SLACK) + this.threadBytes)
      this.#endAll(() => ({ end: "memory" }));
  }

  /** Ends the host because of one task. */
  #stop(number: number, outcome: AskOutcome): void {
    const words = "was mapped beside a file for which its process was ended";
    this.#endAll((other) => (other === number ? outcome : { end: "neighbour", words }));
  }

  #endAll(outcomeOf: (number: number) => AskOutcome): void {
    const ended = this.kill();
    for (const [number, { timer, settle }] of this.#tasks) {
      clearTimeout(timer);
      const outcome = outcomeOf(number);
      void ended.then(() => settle(outcome));
    }
    this.#tasks.clear();
  }

  /** Its thread is ended; where that takes too long, its host. */
  #cancel(number: number): void {
    const task = this.#tasks.get(number);
    if (task === undefined) return;
    task.isCancelled = true;
    clearTimeout(task.timer);
    task.timer = setTimeout(() => this.#stop(number, { end: "cancelled" }), GRACE_MS);
    this.#send({ kind: "cancel", number });
  }

  #settle(number: number, outcome: AskOutcome): void {
    const task = this.#tasks.get(number);
    if (task === undefined) return;
    this.#tasks.delete(number);
    if (this.tasks === 0) this.#rest();
    task.settle(outcome);
  }

  #judged(gone: HostExit): AskOutcome {
    if (this.#idleBytes === null) return { end: "not started", words: gone.words };
    return isHeapFull(this.#stderr) ? { end: "memory" } : { end: "gone", ...gone };
  }

  #end({ words, fromOutside }: HostExit, ended: () => void): void {
    this.#gone = { words: `${words}${lastWords(this.#stderr)}`, fromOutside };
    for (const number of this.#tasks.keys()) this.#settle(number, this.#judged(this.#gone));
    this.#rest();
    ended();
  }

  #rest(): void {
    clearInterval(this.#memoryTimer);
    this.#memoryTimer = undefined;
    this.#unref();
  }

  /** An idle process does not keep the event loop. */
  #unref(): void {
    this.#child.unref();
    this.#socket.unref();
    unrefStream(this.#child.stderr);
  }

  #ref(): void {
    this.#child.ref();
    this.#socket.ref();
  }
}

function outcomeOf(ended: TaskEnd): AskOutcome {
  return ended.end === "gone" ? { end: "gone", words: ended.words, fromOutside: false } : ended;
}

function unrefStream(stream: unknown): void {
  if (typeof stream === "object" && stream !== null && "unref" in stream && typeof stream.unref === "function")
    stream.unref();
}
