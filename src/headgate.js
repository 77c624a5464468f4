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
// What was compiled once is kept in the folder for temporary files: the next start takes a third of the time.
enableCompileCache?.();
const sources = new URL("./main.ts", import.meta.url);
await import(existsSync(sources) ? sources.href : new URL("../dist/src/main.js", import.meta.url).href);
