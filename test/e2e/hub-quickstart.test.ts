/** The quick start of the hub does what it says: its commands run in their order, in one shell, and answer as shown. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, expect, test } from "vitest";
import { freePort } from "../drops/intake-rig.ts";
import { PROJECT } from "./processes.ts";

const BLOCK = /^```(\w+)( run)?\n([\s\S]*?)^```$/gm;
/** Printed behind the output of each block. */
const END = "-- end of the block --";

interface Step {
  readonly commands: string;
  /** The lines that the document shows; `…` stands for any characters. Absent: it shows none. */
  shown?: readonly string[];
  printed: readonly string[];
}

const steps: Step[] = [];
let folder: string;
let errors = "";

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "headgate-"));
  await mkdir(join(folder, "bin"));
  await writeFile(
    join(folder, "bin/npx"),
    `#!/bin/sh\nshift\nexec "${process.execPath}" "${PROJECT}/src/main.ts" "$@"\n`,
  );
  await chmod(join(folder, "bin/npx"), 0o755);
  let document = await readFile(join(PROJECT, "docs/hub-quickstart.md"), "utf8");
  for (const port of ["8070", "9465"]) document = document.replaceAll(port, String(await freePort()));
  for (const [, language, run, content = ""] of document.matchAll(BLOCK)) {
    const last = steps.at(-1);
    if (run !== undefined) steps.push({ commands: content, printed: [] });
    else if (language === "json" && last !== undefined) last.shown = content.trimEnd().split("\n");
  }
  await runAll();
}, 120_000);
afterAll(() => rm(folder, { recursive: true, force: true }));

/** `kill %1` reaches the whole job where the shell controls its jobs, as in a terminal. */
async function runAll(): Promise<void> {
  const script = steps.map(({ commands }) => `${commands}\necho '${END}'\n`);
  const shell = spawn("timeout", ["100", "bash", "-c", `set -m\ntrap 'kill %1' EXIT\n${script.join("")}wait\n`], {
    cwd: folder,
    env: { ...process.env, PATH: `${join(folder, "bin")}${delimiter}${process.env["PATH"] ?? ""}` },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const [output, said] = await Promise.all([text(shell.stdout), text(shell.stderr), once(shell, "close")]);
  errors = said;
  const parts = output.split(`${END}\n`);
  for (const [at, step] of steps.entries()) step.printed = (parts[at] ?? "").trimEnd().split("\n");
}

const pattern = (line: string) =>
  line
    .split("…")
    .map((part) => RegExp.escape(part))
    .join(".*");

test("every command runs, and answers what the document shows", () => {
  expect(steps.length, errors).toBe(8);
  const showing = steps.filter(({ shown }) => shown !== undefined);
  expect(showing.length).toBe(5);
  for (const { commands, shown = [], printed } of showing) {
    const words = `${commands}\nprinted:\n${printed.join("\n")}\n${errors}`;
    expect(printed.length, words).toBe(shown.length);
    for (const [at, line] of shown.entries()) expect(printed[at], words).toMatch(new RegExp(`^${pattern(line)}$`));
  }
});

test("the configuration passes the check, and the hub ends when told so", async () => {
  for (const line of steps[0]?.printed ?? []) expect(line).toMatch(/^ok /);
  const log = await readFile(join(folder, "hub.log"), "utf8");
  expect(log.trimEnd().split("\n").at(-1)).toContain("stopped");
});
