import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { transform } from "esbuild";
import { afterEach, beforeEach, expect, it } from "vitest";
import { createLog } from "#core/log.ts";
import { withSourcePlaces } from "#core/package/source-places.ts";

/** Below the package, as the bundle is. */
const CACHE = join(import.meta.dirname, "../../node_modules/.cache");

let folders: string[];
beforeEach(async () => {
  await mkdir(CACHE, { recursive: true });
  folders = await Promise.all([CACHE, tmpdir()].map((parent) => mkdtemp(join(parent, "headgate-"))));
});
afterEach(() => Promise.all(folders.map((folder) => rm(folder, { recursive: true, force: true }))));

const SOURCE = `interface Meter { readonly name: string }

export function read(meter: Meter): never {
  throw new Error(meter.name);
}
`;

/** The trace of the source's fault, as it is in the module that was made of it. */
async function traceOfBundled(folder = folders[0] ?? ""): Promise<{ trace: string; module: string }> {
  const { code, map } = await transform(SOURCE, { loader: "ts", sourcemap: true, sourcefile: "../../src/meters.ts" });
  const path = join(folder, "chunk.js");
  await writeFile(path, code);
  await writeFile(`${path}.map`, map);
  const module = pathToFileURL(path).href;
  return { trace: `Error: M-1\n    at read (${module}:2:9)\n    at file:///nowhere/else.js:3:4`, module };
}

it("names the source of a bundled module, and other modules as they are", async () => {
  const { trace } = await traceOfBundled();
  expect(withSourcePlaces(trace)).toBe(
    "Error: M-1\n    at read (src/meters.ts:4:9)\n    at file:///nowhere/else.js:3:4",
  );
});

it("reads no map of a module elsewhere, which a message may name", async () => {
  const { trace } = await traceOfBundled(folders[1]);
  expect(withSourcePlaces(trace)).toBe(trace);
});

it("names sources in the log", async () => {
  const { trace, module } = await traceOfBundled();
  const lines: string[] = [];
  const log = createLog("info", { write: (line) => void lines.push(line) });
  log.warn({ err: Object.assign(new Error("M-1"), { stack: trace }) }, "a fault");
  expect(lines.join("")).toContain("at read (src/meters.ts:4:9)");
  expect(lines.join("")).not.toContain(module);
});
