/**
 * The tutorial for authors of mappers does what it says: its files are written, and its commands run, in
 * their order.
 */
import { execFile } from "node:child_process";
import { mkdir, mkdtemp, readFile, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, it } from "vitest";
import { parse } from "yaml";
import { digestMapper, loadMapper, mapPath, mapperContract } from "#mapping/authoring/kit/index.ts";

const run = promisify(execFile);
const root = resolve(import.meta.dirname, "..");
const BLOCK = /^```(\w+)((?: \S+)*)\n([\s\S]*?)^```$/gm;
let site: string;
const printed: string[] = [];

beforeAll(async () => {
  site = await realpath(await mkdtemp(join(tmpdir(), "headgate-")));
  const text = await readFile(join(root, "docs/mapper-tutorial.md"), "utf8");
  for (const [, language, words = "", content = ""] of text.matchAll(BLOCK)) {
    const file = /file=(\S+)/.exec(words)?.[1];
    if (file !== undefined) {
      await mkdir(dirname(join(site, file)), { recursive: true });
      await writeFile(join(site, file), content);
    }
    if (language === "console" && words.includes("run")) printed.push(await inShell(content));
  }
}, 120_000);
afterAll(() => rm(site, { recursive: true, force: true }));

async function inShell(block: string): Promise<string> {
  const command = block.replace(/^\$ npx headgate/, `"${process.execPath}" "${join(root, "src/main.ts")}"`);
  return (await run("bash", ["-c", command], { cwd: site })).stdout;
}

it("creates a mapper of the sample, and settings equal to the trigger shown", async () => {
  const proposed = parse(printed[0]?.match(/^ {2}mapper: delimited\n(?: {2}.*\n)*/m)?.[0] ?? "");
  const text = await readFile(join(root, "docs/mapper-tutorial.md"), "utf8");
  const shown = parse(/^```yaml\n(triggers:[\s\S]*?)^```$/m.exec(text)?.[1] ?? "");
  const { mapper, metadata } = shown.triggers[0];
  expect(proposed).toEqual({ mapper, metadata });
});

it("ends with a mapper whose cases pass, like the settings", async () => {
  expect(printed.at(-1)).toMatch(/cases \d+: \d+ ok\n$/);
  const path = join(site, "mappers/acme/mapper.ts");
  const mapper = await loadMapper(path, await digestMapper(path));
  const sample = { path: join(site, "acme_2026-03.csv"), settings: { timeZone: "Europe/Brussels" } };
  const { points, rejectedCount } = await mapPath(mapper, sample.path, sample);
  expect([points, rejectedCount]).toEqual([4, 0]);
  for (const check of mapperContract(mapper, sample)) await check.run();
});

it("shows a bad row with its column", async () => {
  const expected = await readFile(join(site, "mappers/acme/cases/strange-meter/expected.err"), "utf8");
  expect(JSON.parse(expected)).toMatchObject({ place: { row: 3, column: "Meter", text: "B-1" } });
});
