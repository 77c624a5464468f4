#!/usr/bin/env node
/**
 * Starts Headgate: in a checkout from its TypeScript sources, in the published package from what was compiled of them, since Node
 * strips no types below `node_modules`. JavaScript that any Node reads, so that an old one is told what is missing.
 */
const NODE_MIN = 26;

if (Number.parseInt(process.versions.node, 10) < NODE_MIN) {
  process.stderr.write(
    `headgate needs Node ${NODE_MIN} or newer, and this is ${process.version} (${process.execPath}).\n` +
      "Install a newer Node, or add the npm package `node` to the project: it brings the runtime along.\n",
  );
  process.exit(2);
}

const { existsSync } = await import("node:fs");
const { enableCompileCache } = await import("node:module");
const { homedir, tmpdir } = await import("node:os");
const { isAbsolute, join, relative } = await import("node:path");
// What was compiled once is kept: the next start takes a third of the time. A folder that cannot be made is done without.
const folder = cacheFolder();
if (folder !== null) enableCompileCache?.(folder);
const sources = new URL("./main.ts", import.meta.url);
await import(existsSync(sources) ? sources.href : new URL("../dist/src/main.js", import.meta.url).href);

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
