/** The engine `rscript`: the system's R, a process for each script, which sees the folder of its run and R alone. */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { constants, tmpdir } from "node:os";
import { join } from "node:path";
import { ConfigError, systemCode, TransientError, wordsOf } from "#core/errors.ts";
import type { CalculatedOptions } from "../../options.ts";
import type { CalculationEngine, CalculationInput, CalculationResult, FailedCalculation } from "../engine.ts";
import { inputBytes } from "./input.ts";
import { failed, resultOf } from "./output.ts";
import { Places } from "./places.ts";
import { PRELUDE } from "./prelude.ts";
import { commandOf, ROOM } from "./rscript-sandbox.ts";
import { KILLED_TWICE } from "./webr-engine.ts";

const STDERR_MAX = 4_000;
/** Exit code with which a sandbox or a shell says that the kernel ended R, beside the number of the signal. */
const KERNEL = 128;

const SCRIPT = `${PRELUDE}
local({
  room <- commandArgs(trailingOnly = TRUE)[1L]
  .headgate(file.path(room, "${ROOM.input}"), file.path(room, "${ROOM.output}"))
})
`;

interface Ended {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stderr: string;
  readonly isLate: boolean;
}

export class RscriptEngine implements CalculationEngine {
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
