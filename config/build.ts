/**
 * Makes what the published package holds, in `dist/`: the bundled sources, the compiled mappers, the types of both, and
 * beside them every file that they read at run time. `npm pack` runs it; a checkout needs no build.
 */
import { execFileSync } from "node:child_process";
import { cpSync, existsSync, globSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { bundleInto } from "./bundle.ts";

const root = join(import.meta.dirname, "..");
const dist = join(root, "dist");

/**
 * Where a source looks for its own files, it looks from its place in the tree; so the tree below `dist/` is
 * the same.
 */
const READ_AT_RUN_TIME = [
  "package.json",
  "config/*.{yaml,json}",
  "samples/**/*",
  "src/**/*.{sql,json,html,css}",
  "mappers/*/README.md",
  "mappers/*/cases/**/*",
];

rmSync(dist, { recursive: true, force: true });
execFileSync(process.execPath, [join(root, "node_modules/typescript/bin/tsc"), "-p", "tsconfig.build.json"], {
  cwd: root,
  stdio: "inherit",
});
// The compiler wrote each source; of them only the types are wanted.
for (const path of globSync("src/**/*.js", { cwd: dist })) rmSync(join(dist, path));
await bundleInto(dist);
execFileSync(process.execPath, [join(root, "config/pages.ts"), join(dist, "src/pages")], {
  cwd: root,
  stdio: "inherit",
});
for (const path of globSync(READ_AT_RUN_TIME, { cwd: root, exclude: (path) => path.endsWith(".ts") })) {
  const target = join(dist, path);
  if (!existsSync(target)) cpSync(join(root, path), target, { recursive: true });
}
// The types of the rooms import each other by name: where those are is said by the next package.json above them.
const manifest = join(dist, "package.json");
const facts = JSON.parse(readFileSync(manifest, "utf8")) as { imports: Record<string, string> };
const imports = Object.entries(facts.imports).map(([name, path]) => [name, path.replace(/\.ts$/, ".d.ts")]);
writeFileSync(manifest, `${JSON.stringify({ ...facts, imports: Object.fromEntries(imports) }, null, 2)}\n`);
