/** How a migration holds itself back. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { constants, getPriority } from "node:os";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { ErrorShare, parseShare } from "#gateway/migration/run/error-share.ts";
import { parseRate } from "#gateway/migration/run/rate.ts";
import { behind } from "#gateway/migration/run/run.ts";
import { Window } from "#gateway/migration/run/window.ts";
import { PATIENTLY } from "../e2e/wait.ts";
import { GatewayRig } from "../runs/gateway-rig.ts";
import { AMONG_OTHERS, headgate, main, migrate } from "./migrate-command.ts";

vi.setConfig(PATIENTLY);

const opens = (window: string, at: string) =>
  Window.parse(window).opensAt(Temporal.Instant.from(at))?.toString() ?? null;

describe("hours", () => {
  it("cross midnight by the clock of their zone", () => {
    const night = "22:00-05:00 Europe/Paris";
    expect(opens(night, "2026-01-10T20:59:59Z")).toBe("2026-01-10T21:00:00Z");
    expect(opens(night, "2026-01-10T21:00:00Z")).toBeNull();
    expect(opens(night, "2026-01-11T03:59:59Z")).toBeNull();
    expect(opens(night, "2026-01-11T04:00:00Z")).toBe("2026-01-11T21:00:00Z");
  });

  it("follow the clock on days on which it is changed", () => {
    // On 2026-03-29 the clock of Paris goes from 02:00 to 03:00, on 2026-10-25 from 03:00 to 02:00.
    expect(opens("02:30-04:00 Europe/Paris", "2026-03-29T00:00:00Z")).toBe("2026-03-29T01:30:00Z");
    expect(opens("02:00-03:00 Europe/Paris", "2026-03-29T00:30:00Z")).toBe("2026-03-30T00:00:00Z");
    expect(opens("02:00-03:30 Europe/Paris", "2026-10-25T02:15:00Z")).toBeNull();
  });

  it("are refused without a zone, and when they are invalid", () => {
    for (const text of ["22:00-05:00", "25:00-05:00 UTC", "22:00-05:00 Mars/Base", "05:00-05:00 UTC"])
      expect(() => Window.parse(text)).toThrow(RangeError);
  });
});

it("reads rates of readings and of bytes, and shares", () => {
  expect(parseRate("5000/s")).toMatchObject({ of: "readings", perSecond: 5000 });
  expect(parseRate("2MB/s")).toMatchObject({ of: "bytes", perSecond: 2_000_000 });
  for (const text of ["5000", "0/s", "2 apples/s"]) expect(parseRate(text)).toBeUndefined();
  expect(parseShare("5%")).toBe(0.05);
  expect(parseShare("5")).toBeUndefined();
});

it("concludes nothing from few files, and names the first of too many", () => {
  const share = new ErrorShare(0.05);
  const good = { path: "a", state: "accepted", reason: null, points: { mapped: 1, rejected: 0 } } as never;
  const bad = { path: "b", state: "quarantined", reason: null, points: { mapped: 0, rejected: 0 } } as never;
  share.add(bad);
  for (let at = 0; at < 8; at += 1) share.add(good);
  expect(share.reason).toBeNull();
  share.add(good);
  expect(share.reason).toBe("1 of 10 files (10 %) need a person, which is more than 5 %; first b is quarantined");
});

async function history(files: number, content: (variable: number, at: number) => string): Promise<GatewayRig> {
  const rig = await GatewayRig.start();
  onTestFinished(() => rig.close());
  rig.configure({});
  const variable = await rig.variable("a");
  for (let at = 0; at < files; at += 1) rig.put(`history/${at}.csv`, content(variable, at));
  return rig;
}

const row = (variable: number, at: number) =>
  `variable_id,date,value\n${variable},${new Date(Date.UTC(2025, 0, 1 + at)).toISOString()},${at}\n`;

it("pauses when too many files need attention, with the reason and the way to continue", async () => {
  const rig = await history(150, (variable, at) =>
    at < 20 ? "variable_id,date,value\n1,never,1\n" : row(variable, at),
  );
  const { code, stdout } = await migrate(rig, "--pause-on-errors", "5%");
  expect(code).toBe(1);
  expect(stdout).toMatch(
    /^paused: \d+ of \d+ files \(.*\) need a person, which is more than 5 %; first \d+\.csv is quarantined/m,
  );
  // None but those of the first group, however long it takes to know what is wrong with them.
  expect(Number(/(\d+) pending .* stored unknown,/.exec(stdout)?.[1])).toBeGreaterThanOrEqual(90);
});

it("finishes running calls when it is interrupted, and waits at its rate", async () => {
  const rig = await history(20, row);
  const args = [main, "migrate", "history/*.csv", "-c", rig.config, "-m", "standard", "--rate", "1/s"];
  const child = spawn(process.execPath, [...args, ...AMONG_OTHERS], {
    cwd: rig.folder,
    stdio: ["ignore", "pipe", "inherit"],
  });
  let said = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    said += text;
  });
  await expect.poll(() => said, { timeout: 60_000 }).toContain("waits: the rate of 1/s readings");
  expect(getPriority(child.pid)).toBe(getPriority());
  child.kill("SIGINT");
  await once(child, "close");
  expect(child.exitCode).toBe(1);
  expect(said).toMatch(/stopped; the same command resumes it/);
  expect(said).toMatch(/^files 20: .*pending/m);
  const { stdout } = await migrate(rig, "--json");
  expect(JSON.parse(stdout)).toMatchObject({ how: "done", points: { accepted: 20 } });
});

it("has a lower priority than other processes by default, and never a raised one", async () => {
  const { PRIORITY_BELOW_NORMAL, PRIORITY_LOW } = constants.priority;
  expect(behind(PRIORITY_LOW)).toBe(PRIORITY_LOW);
  expect(behind(0)).toBe(PRIORITY_BELOW_NORMAL);
  const rig = await history(1, row);
  const args = [main, "migrate", "history/*.csv", "-c", rig.config, "-m", "standard", "--rate", "1/s"];
  const child = spawn(process.execPath, args, { cwd: rig.folder, stdio: "ignore" });
  const ended = once(child, "close");
  await expect.poll(() => getPriority(child.pid), { timeout: 60_000 }).toBe(behind(getPriority()));
  child.kill("SIGKILL");
  await ended;
  const refused = await headgate(rig, "migrate", "history/*.csv", "--priority", "high");
  expect(refused).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("high is neither low nor normal"),
  });
});
