/** The engine of R scripts that the configuration names. */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { constants, tmpdir } from "node:os";
import { join } from "node:path";
import { ConfigError, systemCode, TransientError, wordsOf } from "#core/errors.ts";
import type { CalculatedOptions } from "../../options.ts";
import type {
  CalculationEngine,
  CalculationInput,
  CalculationResult,
  FailedCalculation,
  InputForm,
  InputVariable,
} from "../engine.ts";
import { failed, resultOf } from "./output.ts";
import { PRELUDE } from "./prelude.ts";
import { bytesOf, doubles, INTEGER_MAX, list, NA_INTEGER, type RValue, strings } from "./values.ts";
import { DEFAULT_PACKAGES } from "./webr-module.ts";
import { type ProcessLimits, WebrProcess } from "./webr-process.ts";

/** NaN that R takes for NA: the payload of its low word is 1954. */
const NA_REAL_BITS = 0x7ff00000000007a2n;

const KILLED_TWICE = "the process of R was killed twice while it ran the script (memory of the machine?)";

/** Names in the room of a run: a folder that holds only what the run reads and writes. */
const ROOM = { script: "run.R", input: "in", output: "out" } as const;

/** Bytes of address space that R takes before any script: libraries of linear algebra reserve more than they use. */
const R_ITSELF = 1024 * 1024 * 1024;
const SEARCH_PATH = "/usr/local/bin:/usr/bin:/bin";
/** Place of the room inside the sandbox. */
const INSIDE = "/run/headgate";

/** All of the system that R reads; neither homes, nor the hub's own folders, nor the configuration in /etc. */
const SYSTEM = [
  "/usr",
  "/bin",
  "/sbin",
  "/lib",
  "/lib64",
  "/etc/R",
  "/etc/alternatives",
  "/etc/ld.so.cache",
  "/etc/localtime",
] as const;

const STDERR_MAX = 4_000;
/** Exit code with which a sandbox or a shell says that the kernel ended R, beside the number of the signal. */
const KERNEL = 128;

const SCRIPT = `${PRELUDE}
local({
  room <- commandArgs(trailingOnly = TRUE)[1L]
  .headgate(file.path(room, "${ROOM.input}"), file.path(room, "${ROOM.output}"))
})
`;

/** Starts no process before the first run. */
export function createREngine(options: CalculatedOptions): CalculationEngine {
  if (options.engine === "rscript") return new RscriptEngine(options);
  if (options.engine === "none") return noEngine;
  const { memory, outputBytes, outputRows, processes, timeout, idle } = options;
  const times = { timeoutMs: timeout, idleMs: idle };
  return new WebrEngine({ memory, outputBytes, outputRows, processes, ...times, javaScript: false });
}

const noEngine: CalculationEngine = {
  run: async () => failed("this hub runs no R scripts (`calculated.engine: none`)"),
  close: async () => undefined,
};

/** A script whose value is known. */
const TRIAL = "list(TimeSeries = data.frame(Dates = 0L, Values = sqrt(1764)))";

/** Runs a trivial script as the configuration says, for `headgate check`; returns words, or throws what is wrong. */
export async function tryREngine(options: CalculatedOptions): Promise<string> {
  if (options.engine === "none") return "R scripts are refused (`calculated.engine: none`)";
  const engine = createREngine(options);
  try {
    const nothing = { variables: [], forms: [], constants: [], window: { fromMs: 0, toMs: 0 }, zone: "UTC" };
    const input = { accountId: 0, formula: TRIAL, defaultVersion: "", ...nothing };
    const result = await engine.run(input, AbortSignal.timeout(options.timeout + 120_000));
    if (result.kind === "computed" && result.values[0] === 42)
      return `the engine ${options.engine} runs R scripts${trust(options)}`;
    const message = result.kind === "failed" ? result.message : "a trivial script gave a wrong result";
    throw new ConfigError("HG-HUB-012", { operation: "try R", subject: options.engine, message });
  } finally {
    await engine.close();
  }
}

function trust({ engine, rscript }: CalculatedOptions): string {
  return engine === "rscript" && rscript.trusted ? ", without a sandbox (`calculated.rscript.trusted`)" : "";
}

interface Ended {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stderr: string;
  readonly isLate: boolean;
}

/** The engine `rscript`: the system's R, a process for each script, which sees the folder of its run and R alone. */
class RscriptEngine implements CalculationEngine {
  readonly #options: CalculatedOptions;
  readonly #places: Places;
  readonly #running = new Set<ChildProcess>();

  constructor(options: CalculatedOptions) {
    this.#options = options;
    this.#places = new Places(options.processes);
  }

  async run(input: CalculationInput, signal: AbortSignal): Promise<CalculationResult> {
    return (await this.#attempt(input, signal)) ?? (await this.#attempt(input, signal)) ?? failed(KILLED_TWICE);
  }

  /** Null when R was killed from outside. */
  async #attempt(input: CalculationInput, signal: AbortSignal): Promise<CalculationResult | null> {
    await this.#places.take(signal);
    try {
      return await this.#runInRoom(await mkdtemp(join(tmpdir(), "headgate-r-")), input, signal);
    } finally {
      this.#places.give();
    }
  }

  async #runInRoom(room: string, input: CalculationInput, signal: AbortSignal): Promise<CalculationResult | null> {
    try {
      await writeFile(join(room, ROOM.script), SCRIPT);
      await writeFile(join(room, ROOM.input), inputBytes(input));
      const ended = await this.#perform(room, signal);
      signal.throwIfAborted();
      const output = await this.#output(room, ended);
      return output instanceof Uint8Array ? await resultOf(Buffer.from(output), this.#options) : output;
    } finally {
      await rm(room, { recursive: true, force: true });
    }
  }

  async close(): Promise<void> {
    for (const child of this.#running) endGroup(child);
  }

  async #perform(room: string, signal: AbortSignal): Promise<Ended> {
    // An abort that came while the room was filled no longer calls a listener.
    signal.throwIfAborted();
    const { program, words, environment } = commandOf(this.#options, room);
    // A group of its own, so that what the script starts ends with it.
    const child = spawn(program, words, {
      env: environment,
      cwd: room,
      detached: true,
      stdio: ["ignore", "ignore", "pipe"],
    });
    this.#running.add(child);
    let stderr = "";
    let isLate = false;
    child.stderr.on("data", (chunk: Buffer) => {
      stderr = `${stderr}${chunk.toString("utf8")}`.slice(-STDERR_MAX);
    });
    const stop = () => endGroup(child);
    const timer = setTimeout(() => {
      isLate = true;
      stop();
    }, this.#options.timeout);
    signal.addEventListener("abort", stop);
    return new Promise<Ended>((resolve, reject) => {
      child.once("error", (thrown) => reject(startFault(program, thrown)));
      child.once("close", (code, by) => resolve({ code, signal: by, stderr: stderr.trim(), isLate }));
    }).finally(() => {
      clearTimeout(timer);
      signal.removeEventListener("abort", stop);
      this.#running.delete(child);
    });
  }

  /** The bytes that the script wrote, or why there are none. */
  async #output(room: string, { code, signal, stderr, isLate }: Ended): Promise<Uint8Array | FailedCalculation | null> {
    const { timeout, outputBytes, rscript } = this.#options;
    if (isLate) return failed(`the script took longer than ${timeout / 1000} s (\`calculated.timeout\`) and was ended`);
    if (code === 0 && signal === null) {
      const path = join(room, ROOM.output);
      const size = await stat(path).then(
        (found) => found.size,
        () => 0,
      );
      if (size > outputBytes)
        return failed(`its output of ${size} bytes is over the limit (\`calculated.outputBytes\`)`);
      return size === 0 ? failed("the script ended R (quit)") : readFile(path);
    }
    if (signal === "SIGXFSZ" || code === KERNEL + constants.signals.SIGXFSZ)
      return failed("its output is over the limit (`calculated.outputBytes`)");
    const sandbox = /^bwrap: .*$/m.exec(stderr)?.[0];
    if (sandbox !== undefined && !rscript.trusted) throw sandboxFault(rscript.sandbox, sandbox);
    if (code === 127 || code === 126) throw pathFault(rscript.path, stderr);
    if (signal === "SIGKILL" || code === KERNEL + constants.signals.SIGKILL) return null;
    const last = stderr.split("\n").slice(-3).join(" ");
    return failed(
      `R ended while it ran the script (${signal ?? `exit code ${code}`})${last === "" ? "" : `: ${last}`}`,
    );
  }
}

function endGroup(child: ChildProcess): void {
  try {
    if (child.pid !== undefined) process.kill(-child.pid, "SIGKILL");
  } catch (thrown) {
    // It may have just ended.
    if (systemCode(thrown) !== "ESRCH") throw thrown;
  }
}

function startFault(program: string, thrown: Error): Error {
  if (systemCode(thrown) === "ENOENT" || systemCode(thrown) === "EACCES") return sandboxFault(program, wordsOf(thrown));
  return new TransientError("HG-HUB-011", {
    operation: "start R",
    subject: program,
    message: wordsOf(thrown),
    cause: thrown,
  });
}

function sandboxFault(program: string, words: string): ConfigError {
  return new ConfigError("HG-HUB-012", {
    operation: "run a script",
    subject: "calculated.rscript.sandbox",
    message: `the sandbox ${program} for R scripts cannot be started: ${words}`,
    hint:
      "Install bubblewrap and let this user make namespaces, use `engine: webr`, or, where every Manager may do all " +
      "that the hub can, set `calculated.rscript.trusted: true`.",
  });
}

function pathFault(path: string, words: string): ConfigError {
  return new ConfigError("HG-HUB-012", {
    operation: "run a script",
    subject: "calculated.rscript.path",
    message: `R cannot be started by ${path}: ${words}`,
    hint:
      "Install R (Debian: r-base-core), correct `calculated.rscript.path`, or name the folders of an R outside of " +
      "/usr in `calculated.rscript.readable`.",
  });
}

/** A number of places that are taken in turn. */
class Places {
  #free: number;
  readonly #waiting: (() => void)[] = [];

  constructor(count: number) {
    this.#free = count;
  }

  /** Waits for a place; throws the reason of `signal` when it is aborted before. */
  async take(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    if (this.#free > 0) {
      this.#free -= 1;
      return;
    }
    await new Promise<void>((resolve, reject) => {
      const leave = () => {
        this.#waiting.splice(this.#waiting.indexOf(enter), 1);
        reject(signal.reason);
      };
      const enter = () => {
        signal.removeEventListener("abort", leave);
        resolve();
      };
      signal.addEventListener("abort", leave, { once: true });
      this.#waiting.push(enter);
    });
  }

  give(): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#free += 1;
    else next();
  }
}

// The command that runs R for one script: inside bubblewrap, or without it where the operator trusts the authors.

interface RCommand {
  readonly program: string;
  readonly words: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
}

function commandOf(options: CalculatedOptions, room: string): RCommand {
  const { rscript } = options;
  const place = rscript.trusted ? room : INSIDE;
  const inner = ["/bin/sh", "-c", limitsOf(options), "sh", rscript.path, "--vanilla", join(place, ROOM.script), place];
  const environment = {
    PATH: SEARCH_PATH,
    HOME: rscript.trusted ? room : "/tmp",
    TMPDIR: rscript.trusted ? room : "/tmp",
    LANG: "C.UTF-8",
    TZ: "UTC",
    R_DEFAULT_PACKAGES: DEFAULT_PACKAGES,
    // Scripts run side by side already; threads of linear algebra would take each other's processors.
    OMP_NUM_THREADS: "1",
    OPENBLAS_NUM_THREADS: "1",
  };
  const [shell = "", ...words] = inner;
  if (rscript.trusted) return { program: shell, words, environment };
  return { program: rscript.sandbox, words: [...wallsOf(options, room), ...inner], environment };
}

function wallsOf({ rscript, memory }: CalculatedOptions, room: string): string[] {
  const readable = [...SYSTEM, ...rscript.readable].flatMap((path) => ["--ro-bind-try", path, path]);
  return [
    // Own users, processes, network and host name: nothing of the machine is seen or reached.
    ...["--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL"],
    ...readable,
    ...["--proc", "/proc", "--dev", "/dev", "--size", String(memory), "--tmpfs", "/tmp"],
    ...["--bind", room, INSIDE, "--chdir", "/tmp", "--"],
  ];
}

/** Limits of the kernel on R and all that it starts; `$0` and what follows is R's own command. */
function limitsOf({ memory, timeout, outputBytes }: CalculatedOptions): string {
  const blocks = Math.ceil(outputBytes / 512);
  const kibibytes = Math.ceil((memory + R_ITSELF) / 1024);
  const seconds = Math.ceil(timeout / 1000) + 1;
  return `ulimit -c 0; ulimit -f ${blocks}; ulimit -v ${kibibytes}; ulimit -t ${seconds}; exec "$@"`;
}

// The engine `webr`: scripts wait in one line, and run in processes of which each serves one account.

interface WebrOptions extends ProcessLimits {
  readonly outputRows: number;
  readonly processes: number;
  readonly idleMs: number;
}

interface Turn {
  readonly accountId: number;
  readonly take: (process: WebrProcess) => void;
  readonly refuse: (reason: unknown) => void;
}

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

type Scalar = string | number | boolean | null;

/** The variables that a script finds (docs/r-scripts.md), from what a calculation reads. */
function inputBytes(input: CalculationInput): Buffer {
  const byAlias = <T extends { readonly alias: string }>(all: readonly T[], of: (one: T) => RValue) =>
    list(all.map((one) => [one.alias, of(one)]));
  const bound = list([
    ["inputVariables", byAlias(input.variables, variableOf)],
    [
      "inputFormsTimeSliced",
      byAlias(
        input.forms.filter(({ timeSliced }) => timeSliced),
        slicesOf,
      ),
    ],
    [
      "inputForms",
      byAlias(
        input.forms.filter(({ timeSliced }) => !timeSliced),
        ({ values }) => scalarOf(values[0] ?? null),
      ),
    ],
    ["inputConstants", byAlias(input.constants, ({ value }) => scalarOf(value))],
    [
      "calculation",
      list([
        ["From", seconds([input.window.fromMs])],
        ["To", seconds([input.window.toMs])],
        ["TimeZone", strings([input.zone])],
        ["DefaultVersion", strings([input.defaultVersion])],
      ]),
    ],
  ]);
  const formula = input.formula.replaceAll(/\r\n?/g, "\n");
  return bytesOf(
    list([
      ["bound", bound],
      ["formula", strings([formula])],
    ]),
  );
}

function variableOf({ metadata, atMs, values, versions, tags }: InputVariable): RValue {
  const count = atMs.length;
  const texts = (of: (row: number) => string) => strings(Array.from({ length: count }, (_, row) => of(row)));
  return list([
    ["Variable", list(Object.entries(metadata).map(([name, value]) => [name, scalarOf(value)]))],
    [
      "TimeSeries",
      list([
        ["Dates", seconds(atMs)],
        ["Values", doubles(values)],
      ]),
    ],
    ["Version", texts((row) => versions?.[row] ?? "")],
    ["Tags", texts((row) => tagsOf(tags?.[row] ?? null, versions?.[row] ?? null))],
  ]);
}

/** The reserved key says the version of a row also where the tags came without it. */
function tagsOf(tags: Readonly<Record<string, string>> | null, version: string | null): string {
  const all = version === null || version === "" ? tags : { ...tags, version };
  return all === null ? "" : JSON.stringify(all);
}

function slicesOf({ fromMs, untilMs, values }: InputForm): RValue {
  return list([
    ["EffectiveDates", seconds(fromMs)],
    ["EndDates", seconds(untilMs)],
    ["Values", vectorOf(values)],
  ]);
}

/** A vector of one type: text as soon as one value is text. */
function vectorOf(values: readonly Scalar[]): RValue {
  const is = (type: string) => values.every((value) => value === null || typeof value === type);
  if (is("number")) return numbers(values.map((value) => value as number | null));
  if (is("boolean"))
    return { type: "logical", data: Int32Array.from(values, (value) => (value === null ? NA_INTEGER : Number(value))) };
  return strings(values.map((value) => (value === null ? null : String(value))));
}

function scalarOf(value: Scalar): RValue {
  return value === null ? null : vectorOf([value]);
}

function numbers(values: readonly (number | null)[]): RValue {
  const data = Float64Array.from(values, (value) => value ?? 0);
  const bits = new BigUint64Array(data.buffer);
  values.forEach((value, index) => {
    if (value === null) bits[index] = NA_REAL_BITS;
  });
  return { type: "double", data };
}

/**
 * UNIX seconds: integers as the specification says. A vector with a date that integers of R cannot hold (beyond
 * 2038-01-19, or with a fraction of a second) is numeric as a whole, since a wrong date is worse than another type.
 */
function seconds(atMs: ArrayLike<number | null>): RValue {
  const all = Array.from(atMs, (at) => (at === null ? null : at / 1000));
  const fits = (value: number | null) => value === null || (Number.isInteger(value) && Math.abs(value) <= INTEGER_MAX);
  if (!all.every(fits)) return numbers(all);
  return { type: "integer", data: Int32Array.from(all, (value) => value ?? NA_INTEGER) };
}
