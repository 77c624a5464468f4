/** Headgate's commands as real child processes. Each is ended when its test (or rig) ends, by its own pid. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { until } from "./wait.ts";

const MAIN = fileURLToPath(new URL("../../src/main.ts", import.meta.url));
export const PROJECT = fileURLToPath(new URL("../..", import.meta.url));

export interface Ended {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
  /** Milliseconds from start to end. */
  readonly tookMs: number;
}

export interface StartOptions {
  /** Where the process is to be killed: the name of a fault point, `#N` for its N-th time. */
  readonly fault?: string | undefined;
  readonly cwd?: string;
  /** The user (and group) that it runs as; only root can say so. */
  readonly uid?: number | undefined;
  /** A command that starts it, such as one that enters a namespace. */
  readonly through?: readonly string[];
}

export class HeadgateProcess {
  readonly #child: ChildProcess;
  readonly #startedMs = performance.now();
  readonly #ended: Promise<Ended>;
  stdout = "";
  stderr = "";

  constructor(args: readonly string[], { fault, cwd = PROJECT, uid, through = [] }: StartOptions = {}) {
    const { HEADGATE_FAULT: _, ...environment } = process.env;
    const [program = process.execPath, ...words] = [...through, process.execPath, MAIN, ...args];
    this.#child = spawn(program, words, {
      cwd,
      env: fault === undefined ? environment : { ...environment, HEADGATE_FAULT: fault },
      stdio: ["ignore", "pipe", "pipe"],
      ...(uid === undefined ? {} : { uid, gid: uid }),
    });
    this.#collect("stdout");
    this.#collect("stderr");
    // `close` comes when the streams have ended too.
    this.#ended = once(this.#child, "close").then(([code, signal]) => ({
      code,
      signal,
      stdout: this.stdout,
      stderr: this.stderr,
      tookMs: performance.now() - this.#startedMs,
    }));
  }

  get running(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  ended(): Promise<Ended> {
    return this.#ended;
  }

  /** Such as SIGSTOP, which nobody answers. */
  send(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  /** Resolves with the end; does nothing when it has ended already. */
  end(signal: NodeJS.Signals): Promise<Ended> {
    if (this.running) this.#child.kill(signal);
    return this.#ended;
  }

  /** The first match in what it wrote, once it is there. Throws when the process ends before. */
  async said(stream: "stdout" | "stderr", pattern: RegExp): Promise<RegExpExecArray> {
    return await until(`${pattern} on ${stream}`, () => {
      const match = pattern.exec(this[stream]);
      if (match === null && !this.running) throw new Error(`it ended without ${pattern}: ${this.stderr}`);
      return match;
    });
  }

  #collect(stream: "stdout" | "stderr"): void {
    const source = this.#child[stream];
    if (source === null) return;
    createInterface({ input: source }).on("line", (line) => {
      this[stream] += `${line}\n`;
    });
  }
}

/** Runs a command to its end. */
export function headgate(args: readonly string[], options: StartOptions = {}): Promise<Ended> {
  return new HeadgateProcess(args, options).ended();
}
