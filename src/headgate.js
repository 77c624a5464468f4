#!/usr/bin/env node
/**
 * Starts Headgate: in a checkout from its TypeScript sources, in the published package from what was compiled of them, since Node
 * strips no types below `node_modules`. JavaScript that any Node reads, so that an old one is told what is missing.
 */
const NODE_MIN = 26;
/**
 * For a command that runs for long: a small young generation, by the size of its semi-space in megabytes, and few
 * arenas of the allocator.
 */
const LEAN = new Map([
  ["gateway", { young: 12, arenas: "1" }],
  ["hub", { young: 8, arenas: "2" }],
  ["migrate", { young: 8, arenas: "2" }],
]);
/** File system calls of a hub at one time: those that sync uploads wait for the disk, and must not hold up the others. */
const HUB_DISK_CALLS = "12";
/** For the allocator of the GNU C library, which else keeps what large buffers and other threads have given back; others pass it over. */
const THRIFTY = {
  MALLOC_MMAP_THRESHOLD_: "131072",
  // What is given back is asked for again in the next moment: a few megabytes stay, in place of calls to the system for each kilobyte.
  MALLOC_TRIM_THRESHOLD_: "8388608",
  MALLOC_TOP_PAD_: "1048576",
};

if (Number.parseInt(process.versions.node, 10) < NODE_MIN) {
  process.stderr.write(
    `headgate needs Node ${NODE_MIN} or newer, and this is ${process.version} (${process.execPath}).\n` +
      "Install a newer Node, or add the npm package `node` to the project: it brings the runtime along.\n",
  );
  process.exit(2);
}

if (process.argv[2] === "hub") process.env.UV_THREADPOOL_SIZE ??= HUB_DISK_CALLS;
beginAgainLean();

const { existsSync } = await import("node:fs");
const { enableCompileCache, registerHooks } = await import("node:module");
const { homedir, tmpdir } = await import("node:os");
const { isAbsolute, join, relative } = await import("node:path");
// What was compiled once is kept: the next start takes a third of the time. A folder that cannot be made is done without.
const folder = cacheFolder();
if (folder !== null) enableCompileCache?.(folder);
const sources = new URL("./main.ts", import.meta.url);
const isCheckout = existsSync(sources);
if (isCheckout) resolveAsWritten();
await import(isCheckout ? sources.href : new URL("../dist/src/main.js", import.meta.url).href);

/**
 * Sources import each other by rooms or relative paths with their extension, so that there is nothing to look for: the
 * questions to the disk for 400 modules took a tenth of the time until the first poll of a gateway.
 */
function resolveAsWritten() {
  const folder = new URL("./", import.meta.url).href;
  registerHooks({
    resolve(specifier, context, next) {
      const { parentURL } = context;
      if (!/^(\.{1,2}\/|#).*\.ts$/.test(specifier) || parentURL?.startsWith(folder) !== true)
        return next(specifier, context);
      const url = specifier.startsWith("#") ? new URL(specifier.slice(1), folder) : new URL(specifier, parentURL);
      return { url: url.href, format: "module-typescript", shortCircuit: true };
    },
  });
}

/**
 * What runs for long begins with a smaller heap: most of what it makes is soon done with, and more room for it costs
 * memory and gains next to no time (docs/dev/decisions/0016). That is fixed when Node starts, so this process puts
 * another
 * in its own place: the same process id, parent, streams and signals, and nobody in between. Where there is no such
 * call (Windows), or the user chose the size, it continues unchanged.
 */
function beginAgainLean() {
  const command = process.argv.slice(2).find((word) => !word.startsWith("-"));
  const lean = LEAN.get(command ?? "");
  const chosen = [...process.execArgv, process.env.NODE_OPTIONS ?? ""].join(" ");
  // A channel to a parent that forked this process would be lost.
  if (lean === undefined || process.send !== undefined) return;
  if (
    process.execve === undefined ||
    /--(?:max[-_]semi[-_]space[-_]size|initial[-_]old[-_]space[-_]size|heap[-_]growing[-_]percent)/.test(chosen)
  )
    return;
  const words = [...process.execArgv, `--max-semi-space-size=${lean.young}`, ...process.argv.slice(1)];
  try {
    process.execve(process.execPath, [process.execPath, ...words], {
      MALLOC_ARENA_MAX: lean.arenas,
      ...THRIFTY,
      ...process.env,
    });
  } catch {
    // It takes more memory, and does the same.
  }
}

/** Null where there is none, or only one in the folder for temporary files: mappers may write there, and would change the program. */
function cacheFolder() {
  try {
    const folder = join(process.env.XDG_CACHE_HOME || join(homedir(), ".cache"), "headgate", "compiled");
    return isAbsolute(folder) && relative(tmpdir(), folder).startsWith("..") ? folder : null;
  } catch {
    // A user that the system does not know has no home.
    return null;
  }
}
