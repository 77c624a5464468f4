/** Loads the compiled R of webR into this thread, with the few parts of webR's loader that R itself calls. */
import fs from "node:fs";
import path from "node:path";
import { Script } from "node:vm";
import { gunzipSync } from "node:zlib";

/** The parts of Emscripten's module that are used. */
export interface EmscriptenModule {
  readonly FS: EmscriptenFiles;
  readonly ENV: Record<string, string>;
  createLazyFilesystem(): void;
  _malloc(size: number): number;
  _free(pointer: number): void;
  setValue(pointer: number, value: number, type: string): void;
  getValue(pointer: number, type: string): number;
  allocateUTF8(text: string): number;
  UTF8ToString(pointer: number): string;
  _Rf_initialize_R(count: number, words: number): void;
  _setup_Rmainloop(): void;
  _R_ParseEvalString(code: number, environment: number): number;
  _Rf_error(message: number): void;
  readonly _R_GlobalEnv: number;
  readonly _R_NilValue: number;
  readonly _R_Interactive: number;
}

export interface FileNode {
  contents: Uint8Array;
}

export interface EmscriptenFiles {
  readonly filesystems: {
    readonly WORKERFS: {
      readonly FILE_MODE: number;
      reader?: { readAsArrayBuffer(data: Uint8Array): ArrayBuffer };
      createNode(parent: FileNode, name: string, mode: number, device: number, contents: object): void;
    };
  };
  readonly streams: readonly unknown[];
  mkdirTree(path: string): void;
  chdir(path: string): void;
  writeFile(path: string, data: Uint8Array): void;
  readFile(path: string): Uint8Array;
  stat(path: string): { readonly size: number };
  lookupPath(path: string, options: object): { readonly node: FileNode };
}

export interface Exports {
  readonly memory: WebAssembly.Memory;
  readonly __indirect_function_table: WebAssembly.Table;
  emscripten_stack_get_current(): number;
  _emscripten_stack_restore(pointer: number): void;
}

export interface RuntimeLimits {
  /** Bytes that a script may take beyond those of R itself. */
  readonly memory: number;
  readonly outputBytes: number;
  /** Whether `webr::eval_js` runs JavaScript: for tests of the walls around this process. */
  readonly javaScript: boolean;
}

/** Traces of the script that runs. */
export interface Trail {
  /** Something beside R's memory has changed. */
  isTouched: boolean;
  /** Last lines on standard error. */
  words: string;
}

/** Folder in which each script begins. */
export const HOME = "/home/web_user";
/** Characters of R's own last words that are kept. */
const WORDS_MAX = 2_000;
/** Attached as by `Rscript`, without the two that draw. */
export const DEFAULT_PACKAGES = "methods,stats,utils";

export async function load(
  folder: string,
  limits: RuntimeLimits,
  trail: Trail,
): Promise<{ module: EmscriptenModule; exports: Exports }> {
  const place = (name: string) => path.join(folder, name);
  const ready = Promise.withResolvers<void>();
  let instance: WebAssembly.Instance | undefined;
  const settings = {
    preRun: [() => prepareFiles(module)],
    noExitRuntime: true,
    noInitialRun: true,
    noImageDecoding: true,
    noAudioDecoding: true,
    noWasmDecoding: true,
    locateFile: place,
    print: () => undefined,
    printErr: (text: string) => {
      trail.words = `${trail.words}${text}\n`.slice(-WORDS_MAX);
    },
    instantiateWasm(
      imports: WebAssembly.Imports,
      done: (instance: WebAssembly.Instance, from: WebAssembly.Module) => void,
    ) {
      const compiled = new WebAssembly.Module(fs.readFileSync(place("R.wasm")));
      instance = new WebAssembly.Instance(compiled, imports);
      done(instance, compiled);
    },
    downloadFileContent: () => ({ status: 403, response: "scripts have no network" }),
    mountImagePath: (image: string, at: string) => mountImage(module.FS, image, at),
    onRuntimeInitialized: () => ready.resolve(),
    webr: callsOfR(() => module, limits, trail),
  };
  const module = settings as unknown as EmscriptenModule;
  const script = place("R.js");
  Object.assign(globalThis, { Module: settings, require: requireOf(), __filename: script, __dirname: folder });
  // The permission model takes it away, and R's code asks it for the flags of files.
  Object.assign(process, { binding: () => ({ fs: fs.constants }) });
  new Script(fs.readFileSync(script, "utf8"), { filename: script }).runInThisContext();
  await ready.promise;
  if (instance === undefined) throw new Error("R was not instantiated");
  return { module, exports: instance.exports as unknown as Exports };
}

/** Modules that R's code asks for. It would start a shell for the folder of temporary files as it ends. */
function requireOf(): (name: string) => unknown {
  const modules: Record<string, unknown> = { fs, path, child_process: { spawnSync: () => ({ status: 1 }) } };
  return (name) => modules[name.replace(/^node:/, "")] ?? process.getBuiltinModule(name);
}

function prepareFiles(module: EmscriptenModule): void {
  module.createLazyFilesystem();
  module.FS.mkdirTree(HOME);
  module.FS.chdir(HOME);
  for (const name of Object.keys(module.ENV)) if (name === "_") delete module.ENV[name];
  Object.assign(module.ENV, {
    HOME,
    R_HOME: "/usr/lib/R",
    R_DEFAULT_PACKAGES: DEFAULT_PACKAGES,
    R_ENABLE_JIT: "0",
    FONTCONFIG_PATH: "/etc/fonts",
    TZ: "UTC",
  });
}

/** The functions of webR's loader that R's code calls. */
function callsOfR(module: () => EmscriptenModule, limits: RuntimeLimits, trail: Trail) {
  return {
    readConsole: () => 0,
    setPrompt: () => undefined,
    handleEvents: () => undefined,
    dataViewer: () => undefined,
    evalJs(code: number): number {
      trail.isTouched = true;
      let words = "webr::eval_js is not there for the scripts of calculated variables";
      if (limits.javaScript)
        try {
          // The walls around this process are tried by their tests with it.
          words = `JavaScript gave: ${String(new Script(module().UTF8ToString(code)).runInThisContext())}`;
        } catch (thrown) {
          words = `JavaScript failed: ${String(thrown)}`;
        }
      module()._Rf_error(module().allocateUTF8(words));
      return 0;
    },
  };
}

interface ImageFacts {
  readonly gzip?: boolean;
  readonly files: readonly { readonly filename: string; readonly start: number; readonly end: number }[];
}

/** Files of R that the package keeps in one image, such as the time zones; they are read when R first asks for one. */
function mountImage(files: EmscriptenFiles, image: string, at: string): void {
  const base = image.replace(/\.data(\.gz)?$|\.js\.metadata$/, "");
  const facts = JSON.parse(fs.readFileSync(`${base}.js.metadata`, "utf8")) as ImageFacts;
  const packed = fs.readFileSync(`${base}.data${facts.gzip === true ? ".gz" : ""}`);
  const data = facts.gzip === true ? gunzipSync(packed) : packed;
  const { WORKERFS } = files.filesystems;
  WORKERFS.reader ??= { readAsArrayBuffer: (part) => Uint8Array.from(part).buffer };
  for (const { filename, start, end } of facts.files) {
    const place = path.posix.parse(at + filename);
    WORKERFS.createNode(
      files.lookupPath(place.dir, {}).node,
      place.base,
      WORKERFS.FILE_MODE,
      0,
      slices(data.subarray(start, end)),
    );
  }
}

/** A part of an image as Emscripten reads it: like a `Blob`. */
function slices(part: Buffer): object {
  return Object.assign(part, {
    size: part.length,
    slice: (from: number, to: number) => slices(part.subarray(from, to)),
  });
}
