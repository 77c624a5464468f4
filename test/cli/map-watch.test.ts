/** `headgate map --watch`: what an author sees while editing. */
import { type ChildProcessByStdio, spawn } from "node:child_process";
import { mkdir, mkdtemp, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import type { Readable } from "node:stream";
import { afterEach, beforeEach, expect, it } from "vitest";

const main = resolve(import.meta.dirname, "../../src/main.ts");
let site: string;
let child: ChildProcessByStdio<null, Readable, Readable>;
let shown = "";

beforeEach(async () => {
  site = await realpath(await mkdtemp(join(tmpdir(), "headgate-")));
  await mkdir(join(site, "mappers"));
});
afterEach(async () => {
  child.kill("SIGKILL");
  await rm(site, { recursive: true, force: true });
});

const mapper = (body: string) => `import { defineMapper } from "headgate/mapper";
export default defineMapper({ name: "acme", summary: "Files of ACME", async map({ file, emit, eachRow, number }) {
  await eachRow(file.csv({ columns: true }), (row) => { ${body} });
} });
`;
const EMIT = 'emit({ target: { variableId: 7 }, date: row.date ?? "", value: number(row.value ?? "") });';

async function sees(text: string): Promise<void> {
  while (!shown.includes(text))
    await new Promise<void>((done) => {
      child.stdout.once("data", () => done());
      child.stderr.once("data", () => done());
    });
  shown = shown.slice(shown.indexOf(text) + text.length);
}

it("maps again after each change of the mapper and of the file, through faults of both", async () => {
  const module = join(site, "mappers/acme.ts");
  const input = join(site, "a.csv");
  await writeFile(module, mapper(EMIT));
  await writeFile(input, "date,value\n2026-03-01T00:00:00Z,1\n");
  child = spawn(process.execPath, [main, "map", input, "--mapper", "acme", "--watch"], {
    cwd: site,
    stdio: ["ignore", "pipe", "pipe"],
  });
  for (const stream of [child.stdout, child.stderr])
    stream.on("data", (bytes: Buffer) => {
      shown += bytes.toString();
    });
  await sees("1 point of 1 target,");
  await sees("waiting for a change");
  await writeFile(input, "date,value\n2026-03-01T00:00:00Z,1\n2026-03-02T00:00:00Z,x\n");
  await sees('"x" is not a number');
  await sees("waiting for a change");
  await writeFile(module, "this is no module");
  await sees("cannot be loaded");
  await sees("waiting for a change");
  await writeFile(module, mapper(`if (row.value === "x") return; ${EMIT}`));
  await sees("1 point of 1 target,");
  const ended = new Promise((done) => child.once("close", done));
  child.kill("SIGINT");
  expect(await ended).toBe(0);
});
