/** What all commands have in common: which configuration they find, and how errors come to programs. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { COMMANDS } from "#app/cli/program.ts";
import { HeadgateProcess } from "../e2e/processes.ts";

const EMPTY = "services: []\n";
let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "headgate-commands-"));
});
afterAll(() => rmSync(folder, { recursive: true }));

async function run(...args: string[]) {
  return await new HeadgateProcess(args, { cwd: folder }).ended();
}

function errorIn(stderr: string): unknown {
  const lines = stderr.trim().split("\n");
  expect(lines).toHaveLength(1);
  return JSON.parse(lines[0] ?? "");
}

describe("without -c", () => {
  it("a command names the file that it expects, and uses it once it exists", async () => {
    const missing = await run("runs");
    expect(missing).toMatchObject({ code: 2, stderr: expect.stringContaining("./gateway.yaml") });
    expect(missing.stderr).toMatch(/HEADGATE_CONFIG.*headgate init/);
    expect((await run("hub")).stderr).toContain("./hub.yaml");
    writeFileSync(join(folder, "gateway.yaml"), `${EMPTY}unknown: 1\n`);
    expect(await run("runs")).toMatchObject({ code: 2, stderr: expect.stringContaining("unknown key") });
    // One that needs no configuration takes it, too.
    writeFileSync(join(folder, "data.csv"), "variable_id,date,value\n1,2026-03-01T00:00:00Z,1\n");
    expect(await run("map", "data.csv", "-m", "standard")).toMatchObject({ code: 2 });
    rmSync(join(folder, "gateway.yaml"));
    expect(await run("map", "data.csv", "-m", "standard")).toMatchObject({ code: 0 });
  });

  it("HEADGATE_CONFIG names it", async () => {
    process.env["HEADGATE_CONFIG"] = join(folder, "elsewhere.yaml");
    try {
      expect((await run("runs")).stderr).toContain("elsewhere.yaml");
    } finally {
      delete process.env["HEADGATE_CONFIG"];
    }
  });
});

describe("with --json", () => {
  it("an error is one object on standard error, whether of the configuration or the command line", async () => {
    const missing = await run("runs", "--json", "-c", "none.yaml");
    expect(missing).toMatchObject({ code: 2, stdout: "" });
    expect(errorIn(missing.stderr)).toEqual({
      error: {
        code: "HG-CONF-001",
        operation: "read configuration",
        subject: "none.yaml",
        message: expect.stringContaining("no such file"),
        hint: expect.stringContaining("-c"),
      },
    });
    const unknown = await run("runs", "--json", "--wating");
    expect(unknown).toMatchObject({ code: 2, stdout: "" });
    expect(errorIn(unknown.stderr)).toMatchObject({
      error: { code: "HG-CLI-001", message: expect.stringContaining("--wating") },
    });
  });
});

describe("help", () => {
  it("lists every command, and shows the options of the one that is named", async () => {
    const list = await run("--help");
    expect(list).toMatchObject({ code: 0, stderr: "" });
    for (const [words, { description }] of Object.entries(COMMANDS)) {
      expect(list.stdout.split("\n")).toContainEqual(expect.stringContaining(`  ${words} `));
      expect(list.stdout.replaceAll(/\s+/g, " ")).toContain(description);
    }
    const own = await run("trace", "--help");
    expect(own.stdout).toMatch(/--target.*Examples:/s);
    expect((await run("help", "trace")).stdout).toBe(own.stdout);
    expect((await run("tarce")).stderr).toContain("Did you mean trace?");
  });
});
