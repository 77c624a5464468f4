/**
 * One process for mappers, as its parent sees it. It is asked one thing at a time and answers, or it ends: by itself, or
 * because its parent ends it for its time, its memory, or because nobody wants the answer any more.
 */
import { type ChildProcess, fork } from "node:child_process";
import { tmpdir } from "node:os";
import { dirname, extname } from "node:path";
import { fileURLToPath } from "node:url";
import { wordsOf } from "../support/errors.ts";
import { endLoan, lendCache, resolved } from "./compiled-modules.ts";
import type {
  ChildAnswer,
  ChildCancel,
  ChildMessage,
  ChildRequest,
  ChildStart,
  MapperModule,
} from "./messages.ts";
import { preferWhenMemoryIsShort, rssOf } from "./resident-memory.ts";

export interface ProcessLimits {
  /** Bytes beyond what the process takes before it loads a mapper. */
  readonly memory: number;
  /** Folders that mappers may write in, beside the one for temporary files; null for everywhere. */
  readonly writable: readonly string[] | null;
}

export interface AskOptions {
  readonly signal?: AbortSignal;
  /** From when the child has the request and is ready for it, in milliseconds. */
  readonly timeLimit: number;
  log?(level: "info" | "warn", message: string): void;
}

export type AskOutcome =
  /** `left` names what the mapper left behind; a process with something of the kind is not to be asked again. */
  | { readonly end: "answered"; readonly answer: ChildAnswer; readonly left: readonly string[] }
  /** The process has ended, or is ending. */
  | { readonly end: "cancelled" | "late" | "memory" }
  /** No mapper had to do with it. */
  | { readonly end: "not started"; readonly words: string }
  /** Something failed in it that nobody awaited. */
  | { readonly end: "fault"; readonly words: string }
  /** It ended by itself, or somebody ended it. */
  | { readonly end: "gone"; readonly words: string; readonly fromOutside: boolean };

/** What the young generation, the code of mappers and the collector's delay take, in bytes. */
const MEMORY_SLACK = 64 * 1024 * 1024;
const MEMORY_LOOK_MS = 50;
const START_MS = 30_000;
/** Between the request to leave off and the end. */
const GRACE_MS = 200;
const STDERR_KEPT = 16_384;
const MEBIBYTE = 1024 * 1024;
/** Signals by which a process is ended from outside: by a person, or by the kernel when memory is short. */
const FROM_OUTSIDE: readonly string[] = ["SIGKILL", "SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT"];
const HEAP_FULL = /heap out of memory|Reached heap limit|headgate: over the limit of memory/;

export class MapperProcess {
  /** Requests that were answered; of several files at once, each of them. */
  served = 0;
  readonly #child: ChildProcess;
  readonly #limits: ProcessLimits;
  readonly #ended: Promise<void>;
  /** Resident bytes at the start; null until it is ready. */
  #idleBytes: number | null = null;
  #stderr = "";
  #gone: { readonly words: string; readonly fromOutside: boolean } | null = null;
  #ready = false;
  /** Whoever waits for an answer. */
  #settle: ((outcome: AskOutcome) => void) | null = null;
  #onMessage: ((message: ChildMessage) => void) | null = null;
  #onReady: (() => void) | null = null;
  #onFault: (words: string) => void;

  /** `onFault` hears what fails in it while it is not asked anything. `own` see `ChildStart`. */
  constructor(limits: ProcessLimits, onFault: (words: string) => void, own: MapperModule | null = null) {
    this.#limits = limits;
    this.#onFault = onFault;
    const writable = limits.writable?.concat(tmpdir()).map(resolved) ?? null;
    const cache = lendCache(writable);
    const start: ChildStart = { parent: process.pid, bytesMax: limitFromWithin(limits), cache, own };
    this.#child = fork(workerModule(), [JSON.stringify(start)], {
      env: environment(cache),
      execArgv: flagsOf(limits, [...(writable ?? ["*"]), ...(cache === null ? [] : [dirname(cache)])]),
      serialization: "advanced",
      stdio: ["ignore", "ignore", "pipe", "ipc"],
    });
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#ended = promise;
    // A link that is left leads to nothing that is not there without it.
    if (cache !== null) promise.then(() => this.#ready || endLoan(cache)).catch(() => undefined);
    this.#child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      this.#stderr = (this.#stderr + text).slice(-STDERR_KEPT);
    });
    this.#child.on("message", (message: ChildMessage) => this.#hear(message));
    this.#child.once("error", (thrown) => this.#end(wordsOf(thrown), true, resolve));
    this.#child.once("close", (code, signal) =>
      this.#end(exitWords(code, signal), FROM_OUTSIDE.includes(signal ?? ""), resolve),
    );
    // Without its channel it can do nothing for us.
    this.#child.once("disconnect", () => this.#child.kill("SIGKILL"));
    this.#unref();
  }

  get isAlive(): boolean {
    return this.#gone === null;
  }

  /** Resident bytes beyond those at the start; 0 where nobody can tell. */
  get grownBytes(): number {
    const now = this.#idleBytes === null ? null : rssOf(this.#child.pid);
    return now === null ? 0 : now - (this.#idleBytes ?? 0);
  }

  /** Never rejects. */
  async ask(request: ChildRequest, { signal, timeLimit, log }: AskOptions): Promise<AskOutcome> {
    if (this.#gone !== null) return this.#judged({ end: "gone", ...this.#gone });
    const { promise, resolve } = Promise.withResolvers<AskOutcome>();
    this.#settle = resolve;
    this.#ref();
    let why: "cancelled" | "late" | "memory" | null = null;
    const stop = (reason: typeof why, graceMs: number) => {
      why ??= reason;
      this.#stop(graceMs);
    };
    let timer: NodeJS.Timeout | undefined;
    const begin = () => {
      clearTimeout(timer);
      timer = setTimeout(() => stop("late", GRACE_MS), timeLimit);
    };
    this.#onReady = begin;
    if (this.#ready) begin();
    else
      timer = setTimeout(() => {
        resolve({ end: "not started", words: `it was not ready after ${START_MS / 1000} s` });
        this.#child.kill("SIGKILL");
      }, START_MS);
    const memory = setInterval(() => {
      if (this.grownBytes > this.#limits.memory + MEMORY_SLACK) stop("memory", 0);
    }, MEMORY_LOOK_MS);
    const abort = () => stop("cancelled", GRACE_MS);
    signal?.addEventListener("abort", abort, { once: true });
    this.#onMessage = (message) => {
      if (message.kind === "log") log?.(message.level, message.message);
    };
    this.#child.send(request, (thrown) => {
      // It is ending; `close` tells how.
      if (thrown !== null) this.#child.kill("SIGKILL");
    });
    if (signal?.aborted === true) abort();
    const outcome = await promise;
    clearTimeout(timer);
    clearInterval(memory);
    signal?.removeEventListener("abort", abort);
    this.#settle = null;
    this.#onMessage = null;
    this.#onReady = null;
    this.#unref();
    if (why !== null) await this.kill();
    if (why !== null) return { end: why };
    if (outcome.end === "answered") this.served += request.kind === "map list" ? request.jobs.length : 1;
    return this.#judged(outcome);
  }

  /** Resolves when it has ended. */
  async kill(): Promise<void> {
    // An idle one keeps no event loop, but somebody waits for its end now.
    if (this.isAlive) this.#child.ref();
    this.#child.kill("SIGKILL");
    await this.#ended;
  }

  #judged(outcome: AskOutcome): AskOutcome {
    if (outcome.end !== "gone") return outcome;
    if (!this.#ready) return { end: "not started", words: outcome.words };
    return HEAP_FULL.test(this.#stderr) ? { end: "memory" } : outcome;
  }

  #stop(graceMs: number): void {
    if (!this.#child.connected || graceMs === 0) {
      this.#child.kill("SIGKILL");
      return;
    }
    const cancel: ChildCancel = { kind: "cancel" };
    this.#child.send(cancel, () => undefined);
    const timer = setTimeout(() => this.#child.kill("SIGKILL"), graceMs);
    void this.#ended.then(() => clearTimeout(timer));
  }

  #hear(message: ChildMessage): void {
    if (message.kind === "ready") {
      this.#ready = true;
      this.#idleBytes = message.bytes;
      preferWhenMemoryIsShort(this.#child.pid);
      this.#onReady?.();
    } else if (message.kind === "answer") this.#settle?.({ end: "answered", ...message });
    else if (message.kind === "fault") {
      if (this.#settle === null) this.#onFault(message.words);
      else this.#settle({ end: "fault", words: message.words });
    } else this.#onMessage?.(message);
  }

  #end(words: string, fromOutside: boolean, ended: () => void): void {
    this.#gone = { words: `${words}${lastWords(this.#stderr)}`, fromOutside };
    this.#settle?.({ end: "gone", ...this.#gone });
    ended();
  }

  /** An idle process keeps nobody's event loop. */
  #unref(): void {
    this.#child.unref();
    this.#child.channel?.unref?.();
    unrefStream(this.#child.stderr);
  }

  #ref(): void {
    this.#child.ref();
    this.#child.channel?.ref?.();
  }
}

function unrefStream(stream: unknown): void {
  if (
    typeof stream === "object" &&
    stream !== null &&
    "unref" in stream &&
    typeof stream.unref === "function"
  )
    stream.unref();
}

function workerModule(): string {
  return fileURLToPath(new URL(`./worker${extname(import.meta.url)}`, import.meta.url));
}

const YOUNG_MEBIBYTES = 4;

/** No network, no other programs, no native code, and files are written only where they belong. */
function flagsOf({ memory }: ProcessLimits, writable: readonly string[]): string[] {
  return [
    `--max-old-space-size=${Math.max(16, Math.round(memory / MEBIBYTE))}`,
    // Mappers make much that is soon done with; more room for it costs memory and gains no time (docs/performance.md).
    `--max-semi-space-size=${YOUNG_MEBIBYTES}`,
    "--permission",
    "--allow-fs-read=*",
    ...[...new Set(writable)].map((folder) => `--allow-fs-write=${folder}`),
    // For the thread that ends a busy process whose parent has gone.
    "--allow-worker",
    "--disable-warning=PERM0006",
  ];
}

/** Mappers see nothing of the environment, where secrets may stand; workbooks need the directory for temporary files. */
function environment(cache: string | null): Record<string, string> {
  return {
    ...{ TMPDIR: tmpdir(), TEMP: tmpdir(), TMP: tmpdir(), TZ: "UTC" },
    ...(cache === null ? {} : { NODE_COMPILE_CACHE: cache }),
  };
}

/** Where the parent cannot measure it, the child watches itself, by a thread that no mapper can keep busy. */
function limitFromWithin({ memory }: ProcessLimits): number {
  return rssOf(process.pid) === null ? memory + 2 * MEMORY_SLACK : Number.MAX_SAFE_INTEGER;
}

function exitWords(code: number | null, signal: NodeJS.Signals | null): string {
  return signal === null ? `ended its process with exit code ${code}` : `ended its process with ${signal}`;
}

/** What the runtime said last, such as why it aborted. */
function lastWords(stderr: string): string {
  const line = stderr.split("\n").findLast((one) => /^(?:FATAL ERROR|#|Error|\w*Error:)/.test(one));
  return line === undefined ? "" : ` (${line.trim()})`;
}
