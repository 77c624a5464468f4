/**
 * The process in which scripts run on webR, one after the other (`webr-process.ts` starts it and says with which
 * rights). Frames on its standard input are inputs; its answers are frames on standard output. A second thread ends it
 * with the hub; the right to start threads is given up before the first script.
 */
import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { besideModule } from "#core/threads/beside.ts";
import { confineThread } from "#core/threads/rights.ts";
import { PRELUDE } from "./prelude.ts";
import { ANSWERS, FrameReader, headOf, type WorkerStart } from "./webr-frames.ts";
import {
  type EmscriptenFiles,
  type EmscriptenModule,
  type Exports,
  HOME,
  load,
  type RuntimeLimits,
  type Trail,
} from "./webr-module.ts";

const PAGE = 65_536;
const ROOM = "/tmp/headgate";
const IN = `${ROOM}/in`;
const OUT = `${ROOM}/out`;
/** A memory that grew by more is not kept for the next script: to clear it costs more than to start again. */
const KEPT_GROWTH = 128 * 1024 * 1024;

class RuntimeR {
  readonly #module: EmscriptenModule;
  readonly #exports: Exports;
  readonly #limits: RuntimeLimits;
  readonly #image: Uint8Array;
  readonly #stack: number;
  readonly #functions: number;
  readonly #streams: number;
  readonly #trail: Trail;

  private constructor(module: EmscriptenModule, exports: Exports, limits: RuntimeLimits, trail: Trail) {
    this.#module = module;
    this.#exports = exports;
    this.#limits = limits;
    this.#trail = trail;
    this.#stack = exports.emscripten_stack_get_current();
    this.#image = new Uint8Array(exports.memory.buffer).slice();
    this.#functions = exports.__indirect_function_table.length;
    this.#streams = openStreams(module);
    const grow = exports.memory.grow.bind(exports.memory);
    const most = this.#image.length + limits.memory;
    // R then says itself that it cannot allocate, and the script ends as by any error.
    exports.memory.grow = (pages) => {
      if (exports.memory.buffer.byteLength + pages * PAGE > most) throw new RangeError("over the limit of memory");
      return grow(pages);
    };
    watchFiles(module.FS, trail);
  }

  static async start(folder: string, limits: RuntimeLimits): Promise<RuntimeR> {
    const trail = { isTouched: false, words: "" };
    const { module, exports } = await load(folder, limits, trail);
    startR(module);
    module.FS.mkdirTree(ROOM);
    module.FS.writeFile(IN, Buffer.from(PRELUDE));
    module.FS.writeFile(OUT, Buffer.alloc(0));
    evaluate(module, `source("${IN}", local = globalenv(), keep.source = FALSE)`);
    return new RuntimeR(module, exports, limits, trail);
  }

  run(input: Uint8Array): RunEnd {
    const { FS } = this.#module;
    const trail = this.#trail;
    this.#restore();
    FS.writeFile(IN, input);
    FS.writeFile(OUT, new Uint8Array(0));
    trail.words = "";
    trail.isTouched = false;
    try {
      evaluate(this.#module, `.headgate("${IN}", "${OUT}")`);
    } catch (thrown) {
      return { end: "crash", words: crashWords(thrown, trail.words) };
    }
    const { size } = FS.stat(OUT);
    if (size > this.#limits.outputBytes)
      return { end: "crash", words: `its output of ${size} bytes is over the limit (\`calculated.outputBytes\`)` };
    const bytes = Uint8Array.from(FS.readFile(OUT));
    return { end: "result", bytes, isReusable: !trail.isTouched && this.#isWhole() };
  }

  #isWhole(): boolean {
    const grown = this.#exports.memory.buffer.byteLength - this.#image.length;
    return (
      grown <= KEPT_GROWTH &&
      this.#exports.__indirect_function_table.length === this.#functions &&
      openStreams(this.#module) === this.#streams
    );
  }

  #restore(): void {
    const memory = new Uint8Array(this.#exports.memory.buffer);
    memory.set(this.#image);
    memory.fill(0, this.#image.length);
    const { _emscripten_stack_restore: restoreStack } = this.#exports;
    restoreStack(this.#stack);
    this.#module.FS.chdir(HOME);
  }
}

const CHANGES = [
  "mknod",
  "write",
  "truncate",
  "ftruncate",
  "unlink",
  "rmdir",
  "rename",
  "symlink",
  "chmod",
  "utime",
  "mount",
];

const { folder, limits } = JSON.parse(process.argv[2] ?? "{}") as WorkerStart;

function end(): void {
  process.kill(process.pid, "SIGKILL");
}

function answer(kind: number, body: Uint8Array, sent?: () => void): void {
  process.stdout.write(headOf(kind, body));
  process.stdout.write(body, sent);
}

function perform(runtime: RuntimeR, input: Uint8Array): void {
  const ended = runtime.run(input);
  if (ended.end === "crash") answer(ANSWERS.crash, Buffer.from(ended.words), end);
  else if (ended.isReusable) answer(ANSWERS.result, ended.bytes);
  else answer(ANSWERS.lastResult, ended.bytes, end);
}

for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => undefined);
for (const event of ["end", "close", "error"] as const) process.stdin.on(event, end);
const watchdog = new Worker(besideModule(import.meta.url, "webr-watchdog"));
watchdog.unref();
watchdog.on("error", end);
const watching = once(watchdog, "message");
const runtime = await RuntimeR.start(folder, limits);
await watching;
await confineThread("a script");
process.permission.drop("worker");
const reader = new FrameReader(Number.MAX_SAFE_INTEGER);
process.stdin.on("data", (chunk: Buffer) => {
  const frame = reader.next(chunk);
  if (frame !== null) perform(runtime, frame.body);
});
answer(ANSWERS.ready, Buffer.alloc(0));

// R as WebAssembly, in the main thread of its process: webR's own loader wants a thread, and threads are a right that
// scripts must not find. Only the compiled R of the package is used, started as webR's loader starts it.
//
// R's whole state is its memory and its folder. The memory is copied once R is up, and both are put back before each
// script, so that none finds what another has left. What a script changes beside them (files, libraries) ends the
// process after the script.

type RunEnd =
  | { readonly end: "result"; readonly bytes: Uint8Array; readonly isReusable: boolean }
  /** R itself came to its end; the process must end too. */
  | { readonly end: "crash"; readonly words: string };

function openStreams({ FS }: EmscriptenModule): number {
  return FS.streams.filter((stream) => stream !== null && stream !== undefined).length;
}

function crashWords(thrown: unknown, said: string): string {
  const error = thrown as { readonly name?: string; readonly message?: string };
  if (error.name === "ExitStatus") return "the script ended R (quit)";
  if (thrown instanceof RangeError) return "the script nests its calls deeper than R can hold";
  const last = said.trim();
  return `R ended while it ran the script${last === "" ? (error.message ? `: ${error.message}` : "") : `: ${last}`}`;
}

function evaluate(module: EmscriptenModule, code: string): void {
  const { _free: free } = module;
  const text = module.allocateUTF8(code);
  module._R_ParseEvalString(text, module.getValue(module._R_GlobalEnv, "*"));
  free(text);
}

function startR(module: EmscriptenModule): void {
  const words = ["R", "--no-save", "--no-restore", "--quiet", "--no-readline"];
  const { _malloc: allocate, _setup_Rmainloop: setUp } = module;
  const list = allocate(4 * (words.length + 1));
  for (const [index, word] of words.entries()) module.setValue(list + 4 * index, module.allocateUTF8(word), "*");
  module._Rf_initialize_R(words.length, list);
  setUp();
  module.setValue(module._R_Interactive, 0, "i8");
}

/** Any change of a file but the output's: it would be there for the next script. */
function watchFiles(files: EmscriptenFiles, trail: Trail): void {
  const output = files.lookupPath(OUT, {}).node;
  const own = new Set<unknown>([output, IN, OUT]);
  const methods = files as unknown as Record<string, (...parts: unknown[]) => unknown>;
  for (const name of CHANGES) {
    const method = methods[name];
    if (method === undefined) throw new Error(`this version of webR has no FS.${name}`);
    methods[name] = (...parts) => {
      const [first] = parts as [{ readonly node?: unknown; readonly tty?: unknown } | undefined];
      const isOwn = own.has(first) || own.has(first?.node) || Boolean(first?.tty);
      if (!isOwn) trail.isTouched = true;
      return method.apply(files, parts);
    };
  }
}
