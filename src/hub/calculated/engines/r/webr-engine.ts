/** The engine `webr`: scripts wait in one line, and run in processes of which each serves one account. */
import { TransientError } from "#core/errors.ts";
import type { CalculationEngine, CalculationInput, CalculationResult } from "../engine.ts";
import { inputBytes } from "./input.ts";
import { failed, resultOf } from "./output.ts";
import { type ProcessLimits, WebrProcess } from "./webr-process.ts";

export interface WebrOptions extends ProcessLimits {
  readonly outputRows: number;
  readonly processes: number;
  readonly idleMs: number;
}

interface Turn {
  readonly accountId: number;
  readonly take: (process: WebrProcess) => void;
  readonly refuse: (reason: unknown) => void;
}

export const KILLED_TWICE = "the process of R was killed twice while it ran the script (memory of the machine?)";

export class WebrEngine implements CalculationEngine {
  readonly #options: WebrOptions;
  readonly #turns: Turn[] = [];
  readonly #busy = new Set<WebrProcess>();
  /** In the order of their last use, with the timer that ends each. */
  readonly #idle = new Map<WebrProcess, NodeJS.Timeout>();
  #isClosed = false;

  constructor(options: WebrOptions) {
    this.#options = options;
  }

  /** Ids of the processes, for tests. */
  get pids(): readonly (number | undefined)[] {
    return [...this.#busy, ...this.#idle.keys()].map(({ pid }) => pid);
  }

  async run(input: CalculationInput, signal: AbortSignal): Promise<CalculationResult> {
    signal.throwIfAborted();
    // A neighbour may have taken the machine's memory; a script that ends its own process does so again.
    return (await this.#attempt(input, signal)) ?? (await this.#attempt(input, signal)) ?? failed(KILLED_TWICE);
  }

  /** Null when the process was killed from outside. */
  async #attempt(input: CalculationInput, signal: AbortSignal): Promise<CalculationResult | null> {
    const process = await this.#processFor(input.accountId, signal);
    let isOver = true;
    try {
      const answer = await process.run(inputBytes(input), signal);
      if (answer.kind === "killed") return null;
      if (answer.kind === "failed") return failed(answer.message);
      isOver = answer.isOver;
      return await resultOf(answer.bytes, this.#options);
    } finally {
      this.#release(process, isOver);
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    for (const { refuse } of this.#turns.splice(0)) refuse(closedError());
    for (const [process, timer] of this.#idle) {
      clearTimeout(timer);
      process.end("the hub stops");
    }
    this.#idle.clear();
    for (const process of this.#busy) process.end("the hub stops");
  }

  #processFor(accountId: number, signal: AbortSignal): Promise<WebrProcess> {
    if (this.#isClosed) throw closedError();
    return new Promise((resolve, reject) => {
      const leave = () => {
        this.#turns.splice(this.#turns.indexOf(turn), 1);
        reject(signal.reason);
      };
      const turn: Turn = {
        accountId,
        take: (process) => {
          signal.removeEventListener("abort", leave);
          resolve(process);
        },
        refuse: reject,
      };
      signal.addEventListener("abort", leave, { once: true });
      this.#turns.push(turn);
      this.#serve();
    });
  }

  /** The oldest waiting turn gets an idle process of its account, a new one, or the place of an idle one of others. */
  #serve(): void {
    for (let turn = this.#turns[0]; turn !== undefined; turn = this.#turns[0]) {
      const { accountId } = turn;
      if (this.#busy.size >= this.#options.processes) return;
      this.#turns.shift();
      const own = [...this.#idle.keys()].find((process) => process.accountId === accountId && !process.isOver);
      const process = own ?? this.#newProcess(accountId);
      clearTimeout(this.#idle.get(process));
      this.#idle.delete(process);
      this.#busy.add(process);
      turn.take(process);
    }
  }

  #newProcess(accountId: number): WebrProcess {
    const [oldest] = this.#idle.keys();
    if (oldest !== undefined && this.#busy.size + this.#idle.size >= this.#options.processes) this.#retire(oldest);
    return new WebrProcess(accountId, this.#options);
  }

  #retire(process: WebrProcess): void {
    clearTimeout(this.#idle.get(process));
    this.#idle.delete(process);
    process.end("it was idle");
  }

  #release(process: WebrProcess, isOver: boolean): void {
    this.#busy.delete(process);
    if (isOver || process.isOver || this.#isClosed) process.end("its last script has run");
    else this.#idle.set(process, setTimeout(() => this.#retire(process), this.#options.idleMs).unref());
    this.#serve();
  }
}

function closedError(): TransientError {
  return new TransientError("HG-HUB-011", {
    operation: "run a script",
    subject: "webr",
    message: "the hub stops",
  });
}
