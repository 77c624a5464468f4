/** The executable itself: what runs for long begins with a smaller heap, and stays the process that was started. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { GatewayRig } from "./runs/gateway-rig.ts";

const PROGRAM = join(import.meta.dirname, "../src/headgate.js");
const SMALLER = "--max-semi-space-size=12";
let rig: GatewayRig;
let child: ChildProcess | null = null;
beforeEach(async () => {
  rig = await GatewayRig.start();
  rig.configure({});
});
afterEach(async () => {
  if (child?.exitCode === null && child.signalCode === null) child.kill("SIGKILL");
  await rig.close();
});

function start(nodeFlags: readonly string[], ...words: readonly string[]): ChildProcess {
  child = spawn(process.execPath, [...nodeFlags, PROGRAM, ...words], { cwd: rig.folder, stdio: "pipe" });
  child.stdout?.resume();
  return child;
}

/** When the log says so. */
async function started(process: ChildProcess, words = '"gateway started"'): Promise<void> {
  if (process.stderr === null) throw new Error("it has no log");
  for await (const line of createInterface({ input: process.stderr })) if (line.includes(words)) return;
  throw new Error("it did not start");
}

function wordsOf(pid: number | undefined, of: "cmdline" | "environ" = "cmdline"): readonly string[] {
  return readFileSync(`/proc/${pid}/${of}`, "utf8").split("\0");
}

it("starts the sources of a checkout, whatever the name of its folder", async () => {
  const folder = join(rig.folder, "a b#c?d%25 é");
  mkdirSync(join(folder, "src/deep"), { recursive: true });
  copyFileSync(PROGRAM, join(folder, "src/headgate.js"));
  writeFileSync(join(folder, "package.json"), '{ "type": "module" }');
  writeFileSync(
    join(folder, "src/main.ts"),
    'import { word } from "./deep/deep.ts";\nconsole.log(word satisfies string);',
  );
  writeFileSync(join(folder, "src/deep/deep.ts"), 'export { word } from "../word.ts";');
  writeFileSync(
    join(folder, "src/word.ts"),
    'import { sep } from "node:path";\nexport const word: string = `it${sep}starts`;',
  );
  child = spawn(process.execPath, [join(folder, "src/headgate.js")], { stdio: "pipe" });
  const [said, [code]] = await Promise.all([text(child.stdout ?? Readable.from([])), once(child, "close")]);
  expect([said, code]).toEqual(["it/starts\n", 0]);
});

describe.skipIf(process.platform !== "linux")("a long-running command", () => {
  it("is the process that was started, with a smaller heap, and ends by its signals", async () => {
    const gateway = start([], "gateway", "-c", rig.config);
    await started(gateway);
    expect(wordsOf(gateway.pid)).toEqual(expect.arrayContaining([SMALLER]));
    expect(wordsOf(gateway.pid, "environ")).toContain("MALLOC_ARENA_MAX=1");
    gateway.kill("SIGTERM");
    expect(await once(gateway, "close")).toEqual([0, null]);
  });

  it("has a heap of its own size as a hub", async () => {
    const options = {
      listen: "127.0.0.1:0",
      store: { kind: "sqlite", path: join(rig.folder, "hub.sqlite") },
      accounts: [{ id: 1, name: "Account" }],
      clients: [{ id: "gateway", secret: "gateway-secret" }],
      users: [{ username: "manager", password: "manager-password", accounts: [1], roles: ["Manager"] }],
    };
    const config = join(rig.folder, "hub.yaml");
    writeFileSync(config, JSON.stringify(options));
    const hub = start([], "hub", "-c", config);
    await started(hub, '"hub listens"');
    expect(wordsOf(hub.pid)).toContain("--max-semi-space-size=8");
    expect(wordsOf(hub.pid, "environ")).toEqual(
      expect.arrayContaining(["MALLOC_ARENA_MAX=2", "UV_THREADPOOL_SIZE=12"]),
    );
    hub.kill("SIGTERM");
    expect(await once(hub, "close")).toEqual([0, null]);
  });

  it.each(["--max_semi_space_size=16", "--heap-growing-percent=100"])("has the heap of %s", async (flag) => {
    const gateway = start([flag], "gateway", "-c", rig.config);
    await started(gateway);
    expect(wordsOf(gateway.pid)).not.toContain(SMALLER);
    gateway.kill("SIGKILL");
    expect(await once(gateway, "close")).toEqual([null, "SIGKILL"]);
  });

  it("returns the exit code of a wrong configuration", async () => {
    const [code] = await once(start([], "migrate", "*.csv", "-c", "missing.yaml", "-m", "standard"), "close");
    expect(code).toBe(2);
  });
});
