/**
 * A process in which scripts run on webR. It may read the code of webR and of Headgate, and nothing else: no other
 * file, no network, no program, no thread, no environment. Its memory and time are watched from here.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { realpathSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, extname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { TransientError, wordsOf } from "#core/errors.ts";
import { preferWhenMemoryIsShort, rssOf } from "#core/threads/resident-memory.ts";
import { ANSWERS, type Frame, FrameReader, headOf, INPUT, LIFELINE, type WorkerStart } from "./webr-frames.ts";

export interface ProcessLimits {
  /** Bytes of one script beyond those of R itself. */
  readonly memory: number;
  readonly outputBytes: number;
  readonly timeoutMs: number;
  /** See `RuntimeLimits`. */
  readonly javaScript: boolean;
}

/** `isOver`: the process has ended, or must not be used again. */
export type ProcessAnswer =
  | { readonly kind: "result"; readonly bytes: Buffer; readonly isOver: boolean }
  /** By the kernel, a person, or the script itself: from here they are the same. */
  | { readonly kind: "killed" }
  | { readonly kind: "failed"; readonly message: string };

const MEBIBYTE = 1024 * 1024;
/** How long R may take to start: seconds of work on a machine that is busy with other things. */
const START_MS = 120_000;
/** Interval at which memory is measured. */
const WATCH_MS = 100;
/** Bytes that the runtime takes beside the memory of R: buffers of input and output, the heap of JavaScript. */
const SLACK = 192 * MEBIBYTE;
const HEAP_MEBIBYTES = 256;
/** Kilobytes of the stack on which R's calls nest, well within the 8 MB that systems give to a main thread. */
const STACK_KILOBYTES = 3_000;
const STDERR_MAX = 4_000;

interface Waiting {
  readonly resolve: (frame: Frame) => void;
  readonly reject: (ended: EndedError) => void;
}

class EndedError extends Error {}

export class WebrProcess {
  readonly accountId: number;
  readonly #child: ChildProcess;
  readonly #limits: ProcessLimits;
  readonly #ready: Promise<Frame>;
  #waiting: Waiting | null = null;
  #ended: string | null = null;
  /** Why this process was ended from here. */
  #reason: string | null = null;
  #rssMax = Number.MAX_SAFE_INTEGER;
  #stderr = "";

  constructor(accountId: number, limits: ProcessLimits) {
    this.accountId = accountId;
    this.#limits = limits;
    this.#child = spawnWorker(limits);
    preferWhenMemoryIsShort(this.#child.pid);
    this.#listen();
    this.#ready = this.#answer(START_MS, "R did not start in time");
    this.#ready.catch(() => undefined);
  }

  get isOver(): boolean {
    return this.#ended !== null || this.#reason !== null;
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  /** One at a time. Throws a `TransientError` when R does not start, and the reason of `signal`. */
  async run(input: Buffer, signal: AbortSignal): Promise<ProcessAnswer> {
    const stop = () => this.end("the run was cancelled");
    signal.addEventListener("abort", stop);
    try {
      signal.throwIfAborted();
      await this.#start();
      return await this.#perform(input);
    } catch (thrown) {
      signal.throwIfAborted();
      throw thrown;
    } finally {
      signal.removeEventListener("abort", stop);
    }
  }

  end(reason: string): void {
    this.#reason ??= reason;
    this.#child.kill("SIGKILL");
  }

  async #start(): Promise<void> {
    try {
      await this.#ready;
    } catch (cause) {
      throw new TransientError("HG-HUB-011", { operation: "start R", subject: "webr", message: wordsOf(cause) });
    }
    if (this.#rssMax === Number.MAX_SAFE_INTEGER)
      this.#rssMax = (rssOf(this.#child.pid) ?? 0) + this.#limits.memory + SLACK;
  }

  async #perform(input: Buffer): Promise<ProcessAnswer> {
    const { timeoutMs } = this.#limits;
    const watch = setInterval(() => this.#watchMemory(input.length), WATCH_MS);
    const answer = this.#answer(
      timeoutMs,
      `the script took longer than ${timeoutMs / 1000} s (\`calculated.timeout\`) and was ended`,
    );
    this.#child.stdin?.write(headOf(INPUT, input));
    this.#child.stdin?.write(input);
    try {
      const { kind, body } = await answer;
      if (kind === ANSWERS.crash) {
        this.end("R ended");
        return { kind: "failed", message: body.toString("utf8") };
      }
      return { kind: "result", bytes: body, isOver: kind !== ANSWERS.result };
    } catch (ended) {
      if (this.#reason === null && this.#child.signalCode === "SIGKILL") return { kind: "killed" };
      return { kind: "failed", message: this.#reason ?? `the script ended the process of R (${wordsOf(ended)})` };
    } finally {
      clearInterval(watch);
    }
  }

  #watchMemory(inputBytes: number): void {
    const most = this.#rssMax + 3 * inputBytes;
    if ((rssOf(this.#child.pid) ?? 0) > most)
      this.end(
        `the script needed more memory than ${Math.round(this.#limits.memory / 1_000_000)} MB ` +
          "(`calculated.memory`) and was ended",
      );
  }

  #answer(limitMs: number, tooLate: string): Promise<Frame> {
    const timer = setTimeout(() => this.end(tooLate), limitMs);
    return new Promise<Frame>((resolve, reject) => {
      if (this.#ended === null) this.#waiting = { resolve, reject };
      else reject(new EndedError(this.#ended));
    }).finally(() => clearTimeout(timer));
  }

  #listen(): void {
    const { stdout, stderr, stdin } = this.#child;
    const reader = new FrameReader(this.#limits.outputBytes);
    stdout?.on("data", (chunk: Buffer) => {
      try {
        const frame = reader.next(chunk);
        if (frame === null) return;
        const waiting = this.#waiting;
        this.#waiting = null;
        if (waiting === null) throw new RangeError("an answer to no input");
        waiting.resolve(frame);
      } catch (thrown) {
        stdout.removeAllListeners("data");
        this.end(`the script disturbed the process of R (${wordsOf(thrown)})`);
      }
    });
    stderr?.on("data", (chunk: Buffer) => {
      this.#stderr = `${this.#stderr}${chunk.toString("utf8")}`.slice(-STDERR_MAX);
    });
    // Its end says more than a write that fails.
    for (const channel of [stdin, this.#child.stdio[LIFELINE]]) channel?.on("error", () => undefined);
    this.#child.on("error", (thrown) => this.#end(wordsOf(thrown)));
    this.#child.on("close", (code, signal) => this.#end(signal ?? `exit code ${code}`));
  }

  #end(how: string): void {
    const last = this.#stderr.trim().split("\n").at(-1) ?? "";
    this.#ended ??= this.#reason ?? `${how}${last === "" ? "" : `: ${last}`}`;
    this.#waiting?.reject(new EndedError(this.#ended));
    this.#waiting = null;
  }
}

/** Folder of webR's files, with links resolved: the permission model asks for the place itself. */
export function webrFolder(): string {
  return dirname(realpathSync(createRequire(import.meta.url).resolve("webr")));
}

function spawnWorker({ memory, outputBytes, javaScript }: ProcessLimits): ChildProcess {
  const entry = realpathSync(fileURLToPath(new URL(`./webr-worker${extname(import.meta.url)}`, import.meta.url)));
  const sources = join(dirname(entry), "../../../..");
  const folder = webrFolder();
  const start: WorkerStart = { folder, limits: { memory, outputBytes, javaScript } };
  const flags = [
    "--permission",
    `--allow-fs-read=${join(sources, "hub/calculated/engines/r")}`,
    `--allow-fs-read=${join(sources, "core/threads")}`,
    // Says what kind of modules these are.
    `--allow-fs-read=${join(sources, "../package.json")}`,
    `--allow-fs-read=${folder}`,
    // For the watchdog; the main thread gives up this right before it runs a script.
    "--allow-worker",
    "--disable-warning=PERM0006",
    // The optimising compiler takes a second and 150 MB to make R itself fast, which few scripts earn back.
    "--liftoff-only",
    `--stack-size=${STACK_KILOBYTES}`,
    `--max-old-space-size=${HEAP_MEBIBYTES}`,
  ];
  return spawn(process.execPath, [...flags, entry, JSON.stringify(start)], {
    env: {},
    cwd: folder,
    stdio: ["pipe", "pipe", "pipe", "pipe"],
  });
}
