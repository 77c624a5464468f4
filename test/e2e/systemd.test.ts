import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { delimiter, join, resolve } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { stringify } from "yaml";
import { silentLog } from "#core/log.ts";
import { ServiceManager } from "#gateway/operations/service-manager.ts";
import { until } from "./wait.ts";

const MAIN = resolve(import.meta.dirname, "../../src/main.ts");

let folder: string;
let said: string;
let gateway: ChildProcess | null;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "headgate-"));
  said = join(folder, "said");
  gateway = null;
  // Where systemd is, this program sends its arguments to the manager.
  mkdirSync(join(folder, "bin"));
  const program = join(folder, "bin", "systemd-notify");
  writeFileSync(program, `#!/bin/sh\necho "$NOTIFY_SOCKET $*" >> ${said}\n`);
  chmodSync(program, 0o755);
});
afterEach(async () => {
  if (gateway !== null && gateway.exitCode === null) {
    const ended = new Promise((done) => gateway?.once("exit", done));
    gateway.kill("SIGKILL");
    await ended;
  }
  rmSync(folder, { recursive: true });
});

const lines = () => (existsSync(said) ? readFileSync(said, "utf8").trimEnd().split("\n") : []);
const saidOnce = (words: RegExp) =>
  until(`the manager was told ${words}`, () => lines().some((line) => words.test(line)));

function configure(every: string): void {
  mkdirSync(join(folder, "in"), { recursive: true });
  const at = "http://127.0.0.1:9";
  const credentials = { clientId: "c", clientSecret: "s", username: "u", password: "p" };
  writeFileSync(
    join(folder, "gateway.yaml"),
    stringify({
      services: [{ name: "hub", base: at, push: at, token: at, credentials }],
      drops: [{ name: "in", kind: "local", path: "./in", every, watch: false }],
      operations: { listen: "127.0.0.1:0", reload: { every: "1h" } },
    }),
  );
}

test("systemd is notified when the gateway is ready, alive, reloading and stopping", async () => {
  configure("10s");
  gateway = spawn(process.execPath, [MAIN, "gateway", "-c", join(folder, "gateway.yaml")], {
    stdio: "ignore",
    env: {
      ...process.env,
      PATH: `${join(folder, "bin")}${delimiter}${process.env["PATH"] ?? ""}`,
      NOTIFY_SOCKET: "/run/notify",
      WATCHDOG_USEC: "400000",
    },
  });
  await saidOnce(/^\/run\/notify READY=1 STATUS=in force since/);
  await saidOnce(/WATCHDOG=1$/);
  expect(lines().some((line) => line.includes("RELOADING"))).toBe(false);
  configure("20s");
  gateway.kill("SIGHUP");
  await saidOnce(/RELOADING=1 MONOTONIC_USEC=\d+$/);
  await until("ready again", () => lines().filter((line) => line.includes("READY=1")).length === 2);
  const ended = new Promise<number | null>((done) => gateway?.once("exit", done));
  gateway.kill("SIGTERM");
  expect(await ended).toBe(0);
  expect(lines().at(-1)).toMatch(/STOPPING=1$/);
});

/** Ends by itself, as systemd would see it. */
async function exitOf(config: string): Promise<number | null> {
  gateway = spawn(process.execPath, [MAIN, "gateway", "-c", config], { stdio: "ignore" });
  const ended = new Promise<number | null>((done) => gateway?.once("exit", done));
  return await ended;
}

describe("a start that fails", () => {
  const unit = (name: string) => readFileSync(resolve(import.meta.dirname, "../../docs", name), "utf8");
  const final = (name: string) => /^RestartPreventExitStatus=(.*)$/m.exec(unit(name))?.[1]?.split(" ") ?? [];

  test("for a taken port is retried by the unit, and for a wrong configuration is not", async () => {
    configure("10s");
    const config = join(folder, "gateway.yaml");
    const other = createServer().listen(0, "127.0.0.1");
    await once(other, "listening");
    const { port } = other.address() as AddressInfo;
    const written = readFileSync(config, "utf8");
    try {
      writeFileSync(config, written.replace("listen: 127.0.0.1:0", `listen: 127.0.0.1:${port}`));
      expect(final("headgate.service")).not.toContain(String(await exitOf(config)));
    } finally {
      other.close();
    }
    writeFileSync(config, written.replace("every: 10s", "evry: 10s"));
    expect(final("headgate.service")).toContain(String(await exitOf(config)));
  });

  test("beside another gateway that owns the ledger is retried, since that one may still be ending", async () => {
    configure("10s");
    const first = spawn(process.execPath, [MAIN, "gateway", "-c", join(folder, "gateway.yaml")], {
      stdio: ["ignore", "ignore", "pipe"],
    });
    try {
      let log = "";
      first.stderr.on("data", (chunk) => {
        log += chunk;
      });
      await until("it runs", () => log.includes("gateway started"));
      expect(await exitOf(join(folder, "gateway.yaml"))).toBe(1);
    } finally {
      const ended = once(first, "exit");
      first.kill("SIGKILL");
      await ended;
    }
  });

  test.each(["headgate.service", "headgate-hub.service"])("the unit %s retries without a limit", (name) => {
    expect(unit(name)).toMatch(/^Restart=on-failure$/m);
    expect(unit(name)).toMatch(/^StartLimitIntervalSec=0$/m);
    expect(final(name)).toEqual(["2"]);
  });
});

test("the watchdog is not notified while the scheduler stands still", async () => {
  const manager = new ServiceManager({
    program: join(folder, "bin", "systemd-notify"),
    socket: "/run/notify",
    watchdogUsec: "20000",
    log: silentLog,
  });
  const hung = Promise.withResolvers<void>();
  let asked = 0;
  manager.watch(() => {
    asked += 1;
    return asked === 2 ? hung.promise : Promise.resolve();
  });
  await until("it was asked again", () => asked === 2);
  // Told after the watchdog's messages, were there more of them.
  await manager.ready("marks the place");
  await manager.ready("and another");
  expect(lines().filter((line) => line.includes("WATCHDOG"))).toHaveLength(1);
  hung.resolve();
  await until("it goes on when that goes on", () => asked > 2);
  await manager.stopping();
});

test("no notification is sent without a listener", async () => {
  const manager = new ServiceManager({
    program: join(folder, "bin", "systemd-notify"),
    socket: undefined,
    watchdogUsec: undefined,
    log: silentLog,
  });
  await manager.ready("");
  await manager.stopping();
  expect(lines()).toEqual([]);
});
