/** Builds the live pages for the image and the published package, which then need no build when they run. */
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { buildPage, builtFolder, LIVE_PAGES } from "#core/pages/bundle.ts";

const [web] = process.argv.slice(2);
for (const page of LIVE_PAGES) {
  const folder = web === undefined ? builtFolder(page) : builtFolder(page, resolve(web));
  const files = await buildPage(page);
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  for (const { name, content } of files) writeFileSync(join(folder, name), content);
}
