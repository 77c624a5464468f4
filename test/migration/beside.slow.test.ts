/** A migration while calls of others, or its own, take their time. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { PATIENTLY } from "../e2e/wait.ts";
import { GatewayRig, oneReading } from "../runs/gateway-rig.ts";
import { type HeldPushes, holdPushes } from "./held-pushes.ts";
import { AMONG_OTHERS, main, migrate } from "./migrate-command.ts";

vi.setConfig(PATIENTLY);

const FILES = 5;
const PATIENCE = { timeout: 60_000 };
let rig: GatewayRig;
let pushes: HeldPushes;
let child: ChildProcess | null = null;
let said = "";
beforeEach(async () => {
  rig = await GatewayRig.start();
  pushes = await holdPushes(rig.hub.url);
});
afterEach(async () => {
  if (child?.exitCode === null && child.signalCode === null) child.kill("SIGKILL");
  await pushes.close();
  await rig.close();
});

const services = () => [{ ...rig.service("hub"), push: pushes.url }];

async function putHistory(): Promise<number> {
  const variable = await rig.variable("history", true);
  for (let at = 1; at <= FILES; at += 1)
    rig.put(`history/${at}.csv`, oneReading(variable, at, `2025-01-0${at}T00:00:00Z`));
  return variable;
}

function startMigration(): ChildProcess {
  const args = [main, "migrate", "history/*.csv", "-c", rig.config, "-m", "standard", ...AMONG_OTHERS];
  const started = spawn(process.execPath, args, { cwd: rig.folder, stdio: ["ignore", "pipe", "inherit"] });
  said = "";
  started.stdout.setEncoding("utf8").on("data", (text: string) => {
    said += text;
  });
  child = started;
  return started;
}

it("sends nothing while a running gateway delivers, reports it, and continues when that is idle", async () => {
  const history = await putHistory();
  const live = await rig.variable("live");
  rig.put("in/live.csv", oneReading(live, 7, "2026-03-01T00:00:00Z"));
  const gateway = await rig.open({ services: services() });
  await expect.poll(() => pushes.calls, PATIENCE).toBe(1);

  const migration = startMigration();
  const ended = once(migration, "close");
  await expect
    .poll(() => said, PATIENCE)
    .toMatch(/5 mapped, 0 accepted; .*waits: a running gateway delivers its own files first/);
  expect(pushes.calls).toBe(1);
  expect(await rig.stored(history)).toEqual({});

  pushes.releaseAll();
  await ended;
  expect(migration.exitCode, said).toBe(0);
  expect(await gateway.isIdle()).toBe(true);
  expect(await rig.stored(live)).toEqual({ "2026-03-01": 7 });
  await expect.poll(() => rig.versions(history), PATIENCE).toBe(FILES);
});

it("stops at once when it is interrupted twice, and the same command resumes", async () => {
  const history = await putHistory();
  rig.configure({ services: services() });
  const migration = startMigration();
  const ended = once(migration, "close");
  await expect.poll(() => pushes.calls, PATIENCE).toBeGreaterThan(0);
  migration.kill("SIGINT");
  await expect.poll(() => said, PATIENCE).toContain("Ctrl-C again stops at once");
  // The call under way is never answered.
  expect(migration.exitCode).toBeNull();
  migration.kill("SIGINT");
  await ended;
  expect(migration.exitCode).toBe(130);
  expect(said).not.toContain("stopped;");
  expect(await rig.stored(history)).toEqual({});

  pushes.releaseAll();
  const { stdout } = await migrate(rig, "--json");
  expect(JSON.parse(stdout)).toMatchObject({ how: "done", points: { accepted: FILES } });
  await expect.poll(() => rig.versions(history), PATIENCE).toBe(FILES);
});
