/** `headgate init` and `headgate completion` as a person runs them. */
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { hubText } from "#app/cli/init/init.ts";
import { parseConfigText } from "#core/config/document.ts";
import { hubOptions } from "#hub/options.ts";
import { HeadgateProcess } from "../e2e/processes.ts";

let folder: string;
const started: HeadgateProcess[] = [];
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "headgate-init-"));
});
afterEach(async () => {
  await Promise.all(started.splice(0).map((process) => process.end("SIGKILL")));
  rmSync(folder, { recursive: true });
});

function start(...args: string[]): HeadgateProcess {
  const process = new HeadgateProcess(args, { cwd: folder });
  started.push(process);
  return process;
}

const run = (...args: string[]) => start(...args).ended();

const SECRETS = {
  HUB_CLIENT_SECRET: "a secret of the client",
  HUB_USER_PASSWORD: "a password of the user",
  HUB_WEBHOOK_SECRET: "a secret of the webhooks",
  HEADGATE_CLIENT_SECRET: "a secret of the client",
  HEADGATE_PASSWORD: "a password of the user",
};

describe("headgate init", () => {
  it("writes a hub and a gateway that work without changes, with their secrets in the environment", async () => {
    Object.assign(process.env, SECRETS);
    try {
      expect(await run("init", "hub", "--listen", "127.0.0.1:0")).toMatchObject({ code: 0 });
      const hub = start("hub");
      const [, url = ""] = await hub.said("stdout", /^hub: base (\S+)/m);
      mkdirSync(join(folder, "drop"));
      const written = await run("init", "--service", url, "--account", "1", "--json");
      expect(JSON.parse(written.stdout)).toEqual({
        file: "./gateway.yaml",
        secrets: ["HEADGATE_CLIENT_SECRET", "HEADGATE_PASSWORD"],
        next: ["headgate check -c ./gateway.yaml"],
      });
      const { code, stdout } = await run("check");
      expect(code, stdout).toBe(0);
      expect(stdout).toMatch(/service service.*token/);
    } finally {
      for (const name of Object.keys(SECRETS)) delete process.env[name];
    }
  });

  it("shows only existing settings in the comments of a hub", () => {
    const answers = { listen: "127.0.0.1:0", account: "Main", clientId: "gateway", username: "pusher" };
    const text = hubText(answers).replace(/\$\{\w+:[^}]+\}/g, "a secret that is not set");
    const shown = text.replace(/^# (?=\w+: )/gm, "");
    expect(shown).not.toBe(text);
    expect(() => parseConfigText(shown, hubOptions, "hub.yaml")).not.toThrow();
  });

  it("overwrites no file, and writes no invalid configuration", async () => {
    writeFileSync(join(folder, "gateway.yaml"), "mine\n");
    const service = ["--service", "http://127.0.0.1:9"];
    expect(await run("init", ...service)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("HG-CLI-009"),
    });
    expect(readFileSync(join(folder, "gateway.yaml"), "utf8")).toBe("mine\n");
    const refusals: [readonly string[], string][] = [
      [[], "--service"],
      [["--service", "no address"], "services[0].base"],
      [[...service, "--drop", "sftp://files.example.com/out"], "names no user"],
      [[...service, "--drop", "sftp://a:secret@files.example.com/out"], "holds a password"],
      [[...service, "--drop", "http://files.example.com"], "neither a folder"],
    ];
    for (const [flags, words] of refusals) {
      const refused = await run("init", "gateway", ...flags, "-o", "other.yaml");
      expect(refused, words).toMatchObject({ code: 2, stderr: expect.stringContaining(words) });
    }
    expect(() => readFileSync(join(folder, "other.yaml"))).toThrow("ENOENT");
  });

  it.each([
    ["sftp://meter@files.example.com:2022/out", /kind: sftp[\s\S]*port: 2022\n\s+path: \/out[\s\S]*hostKeys: \[\]/],
    ["ftps://meter@files.example.com", /kind: ftp[\s\S]*path: \/\n[\s\S]*tls: explicit/],
    ["ftp://meter@files.example.com/a%20b", /path: \/a b\n[\s\S]*tls: none # /],
  ])("accepts files from %s", async (place, expected) => {
    const { code, stderr } = await run("init", "--service", "http://127.0.0.1:9", "--drop", place);
    expect(code, stderr).toBe(0);
    expect(readFileSync(join(folder, "gateway.yaml"), "utf8")).toMatch(expected);
  });
});

describe("headgate completion", () => {
  it("prints a script by which bash completes commands, subcommands and options", async () => {
    const { stdout, code } = await run("completion", "bash");
    expect(code).toBe(0);
    const complete = (...words: string[]): string[] => {
      const line = words.map((word) => `'${word}'`).join(" ");
      const program =
        `${stdout}\nCOMP_WORDS=(headgate ${line}); COMP_CWORD=${words.length}; _headgate; ` +
        `printf '%s\\n' "\${COMPREPLY[@]}"`;
      return execFileSync("bash", ["-c", program], { encoding: "utf8" }).trim().split("\n");
    };
    expect(complete("quar")).toEqual(["quarantine"]);
    expect(complete("mapper", "n")).toEqual(["new"]);
    expect(complete("mapper", "new", "--sam")).toEqual(["--sample"]);
    expect(complete("runs", "-c", "x.yaml", "--wai")).toEqual(["--waiting"]);
    expect(await run("completion", "tcsh")).toMatchObject({ code: 2 });
    expect((await run("completion", "fish")).stdout).toContain("-a quarantine");
  });
});
