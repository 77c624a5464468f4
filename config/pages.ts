/** Builds the explorer for the image and the published package, which then need no build when they run. */
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { BUILT, buildExplorer } from "../src/hub/explorer/bundle.ts";

const folder = resolve(process.argv[2] ?? BUILT);
const files = await buildExplorer();
rmSync(folder, { recursive: true, force: true });
mkdirSync(folder, { recursive: true });
for (const { name, content } of files) writeFileSync(join(folder, name), content);
